"""Processes that outlived the program that started them, although they should have ended.

A program of ours starts two kinds of child processes: the spawner, with a supervisor for each command,
and the server of the embedded model. Both have the id of the process that started them as their last
argument. What they started is below them. Commands carry a mark in their environment, which names the
process that started them: so they are found also when the processes above them were killed. Reads /proc;
where there is none, nothing is found.
"""

import os
import time
from collections.abc import Iterator
from functools import cache

from ...machines.value import Value
from .ancestry import arguments, read, started
from .tree import descendants, end_pass

_KINDS = (
    ("/ports/process/__main__.py", "a supervisor of commands"),
    ("/extensions/embedded/server.py", "the server of the embedded model"),
)
_COMMAND = "a process of a command"
_AGAIN = 0.002  # seconds between two looks for processes that are being killed
_QUIET = 25  # looks in a row that find nothing: one misses a child that is born during it
_GIVE_UP = 5.0  # seconds of killing after which survivors are reported
MARK = "STEERSMAN_COMMAND"
"""The variable in the environment of each command; see `mark_of`."""
_PLACES = range(2, 5)  # where in the argument list the script stands, after Python's options


class Leftover(Value):
    """One such process: its kind, the process id that started it, and the processes below it."""

    pid: int
    what: str
    owner: int
    below: tuple[int, ...]


def leftovers() -> list[Leftover]:
    """List this user's child processes whose owner is dead, the uppermost of each tree, by process id."""
    found: list[Leftover] = []
    for pid in _own_processes():
        what, owner = _kind(arguments(pid))
        marked = [] if what else _mark(pid).split(".")
        if len(marked) == 3 and all(part.isdecimal() for part in marked):
            if started(int(marked[0])) != int(marked[1]):
                what, owner = _COMMAND, int(marked[0])
        if not what:
            continue
        start = started(pid)
        # A process that started later than its child only has the owner's number.
        if start and not 0 < started(owner) <= start:
            found.append(
                Leftover(pid=pid, what=what, owner=owner, below=tuple(sorted(descendants(pid))))
            )
    below = {pid for leftover in found for pid in leftover.below}
    return sorted(
        (leftover for leftover in found if leftover.pid not in below), key=lambda item: item.pid
    )


def orphaned_commands() -> list[str]:
    """Say which processes of commands run on, though their program and their supervisor are dead."""
    return [
        f"process {leftover.pid} is left over from a command of process {leftover.owner}, which is dead: "
        f"`kill -9 {' '.join(map(str, (leftover.pid, *leftover.below)))}` ends it"
        for leftover in leftovers()
        if leftover.what == _COMMAND
    ]


def mark_of(token: int) -> str:
    """Return the mark of a command of this process: process id and start of the owner, and a number."""
    return f"{_owner(os.getpid())}.{token}"


@cache
def _owner(pid: int) -> str:
    """Name this process uniquely: a fork of it has another id."""
    return f"{pid}.{started(pid)}"


def end_marked(mark: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Kill the processes of a command, and those below them; return the killed and the survivors.

    For a command whose supervisor and spawner are both dead. Blocks until all are dead, at most some
    seconds. A process that took the mark off its environment is only found below another.
    """
    killed: set[int] = set()
    found: set[int] = set()
    until = time.monotonic() + _GIVE_UP
    quiet = 0
    while quiet < _QUIET and time.monotonic() < until:
        found = set(end_pass(lambda: dict.fromkeys(_marked(mark), "")))
        killed |= found
        quiet = 0 if found else quiet + 1
        time.sleep(_AGAIN)
    return tuple(sorted(killed - found)), tuple(sorted(found))


def _marked(mark: str) -> set[int]:
    found = {pid for pid in _own_processes() if _mark(pid) == mark}
    found |= {below for pid in found for below in descendants(pid)}
    return {pid for pid in found if started(pid)}


def _mark(pid: int) -> str:
    """Return the mark in the environment of a process, or nothing."""
    environ = read(f"/proc/{pid}/environ")
    _, _, rest = f"\0{environ}".partition(f"\0{MARK}=")
    return rest.partition("\0")[0]


def _own_processes() -> Iterator[int]:
    user = os.geteuid()
    try:
        with os.scandir("/proc") as entries:
            names = [entry.name for entry in entries if entry.name.isdigit()]
    except OSError:
        return
    for name in names:
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                yield int(name)
        except OSError:
            continue  # it ended in the meantime


def _kind(words: list[str]) -> tuple[str, int]:
    """Return the kind of a process by its arguments, and its owner; empty for other programs' ones."""
    for place in _PLACES:
        for script, what in _KINDS:
            is_it = place < len(words) and words[place].endswith(script)
            if is_it and words[-1].isdigit():
                return what, int(words[-1])
    return "", 0
