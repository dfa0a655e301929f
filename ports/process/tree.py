"""The processes below one process: find them, signal them, end them.

On Linux the process that asks is a subreaper: whatever its descendants do (`setsid`, double forks,
cleared environments), they stay below it, and `wait()` without children left proves them gone.
Elsewhere there is no subreaper: what left its parent is reached only through its process group, and
a daemon that left that, too, is missed. There the proof is weaker.

Only the standard library is imported here, and little of it: the spawner starts with it.
"""

from __future__ import annotations

import os
import signal
import sys

from .ancestry import read, stat_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator


_CHILDREN = "/proc/{0}/task/{0}/children"
_PR_SET_CHILD_SUBREAPER = 36
_STOP_PASSES = 4


_loaded: list[ctypes.CDLL] = []
"""The C library, once it is loaded: by the spawner, so that its forks have it already."""


def become_subreaper() -> None:
    """Adopt all orphaned descendants from now on (Linux; elsewhere nothing)."""
    if sys.platform != "linux":
        return
    if not _loaded:
        import ctypes

        _loaded.append(ctypes.CDLL(None, use_errno=True))
    if _loaded[0].prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")


def name_of(pid: int) -> str:
    """Return the name of a process's program (Linux); empty for none."""
    return read(f"/proc/{pid}/comm").rstrip("\n")


def descendants(root: int, spare: frozenset[int] = frozenset()) -> dict[int, str]:
    """List the processes below `root` as they are now: state letters by pid.

    Without `spare` and those below it. Linux names the children of a process: so a look costs what is
    below it, however many processes the machine has.
    """
    children = _named_children if os.path.exists(_CHILDREN.format(os.getpid())) else _all_children()
    found: dict[int, str] = {}
    todo = [root]
    while todo:
        for child, state in children(todo.pop()):
            if child not in spare and child not in found:
                found[child] = state
                todo.append(child)
    return found


def _named_children(parent: int) -> Iterator[tuple[int, str]]:
    """Read pid and state of a process's children; each thread has its own."""
    try:
        tasks = os.listdir(f"/proc/{parent}/task")
    except OSError:
        return
    for task in tasks:
        for name in read(f"/proc/{parent}/task/{task}/children").split():
            if (stat := stat_of(int(name))) is not None:
                yield int(name), stat[0]


def _all_children() -> Callable[[int], list[tuple[int, str]]]:
    """Look at all processes of the machine; return what gives pid and state of a process's children."""
    children: dict[int, list[tuple[int, str]]] = {}
    for pid, parent, state in _proc_rows() if sys.platform == "linux" else _ps_rows():
        children.setdefault(parent, []).append((pid, state))
    return lambda parent: children.get(parent, [])


def _proc_rows() -> Iterator[tuple[int, int, str]]:
    """Read pid, parent and state of every process from /proc."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := stat_of(int(name))) is not None:
            yield int(name), int(stat[1]), stat[0]


def _ps_rows() -> Iterator[tuple[int, int, str]]:
    """Ask `ps` for pid, parent and state of every process, where there is no /proc."""
    import subprocess  # only here: it would slow the start elsewhere

    table = subprocess.run(["/bin/ps", "-axo", "pid=,ppid=,state="], stdout=subprocess.PIPE)
    for line in table.stdout.decode().splitlines():
        pid, parent, state = line.split()
        yield int(pid), int(parent), state[:1]


def send(pid: int, number: int) -> None:
    """Signal one process; ignored if it has ended or belongs to another user."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return  # `reap` shows whether it still runs


def send_group(leader: int, number: int) -> None:
    """Signal a process group, where there is no subreaper to keep its members in sight."""
    if sys.platform != "linux" and leader:
        send(-leader, number)


def end_pass(look: Callable[[], dict[int, str]]) -> dict[int, str]:
    """Freeze all processes that `look` lists, then kill them; return them, with state letters.

    Freezing first keeps a program that forks all the time from running ahead of us. One pass may
    still miss a child born during the look: repeat until `reap` says that none is left.
    """
    found: dict[int, str] = {}
    for _ in range(_STOP_PASSES):
        fresh = look()
        for pid in found:
            fresh.pop(pid, None)
        if not fresh:
            break
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        found.update(fresh)
    for pid in found:
        send(pid, signal.SIGKILL)
    return found


def reap() -> tuple[dict[int, int], bool]:
    """Collect ended children, without waiting: wait statuses by pid, and whether none is left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, True
        if pid == 0:
            return ended, False
        ended[pid] = status
