"""Processes that outlived the program that started them, although they should have ended.

A program of ours starts two kinds of child processes: the spawner, with a supervisor for each command,
and the server of the embedded model. Both have the id of the process that started them as their last
argument. What they started is below them. Reads /proc; where there is none, nothing is found.
"""

import os
from collections.abc import Iterator

from ...machines.value import Value
from .ancestry import arguments, started
from .tree import descendants

_KINDS = (
    ("/ports/process/__main__.py", "a supervisor of commands"),
    ("/ports/models/embedded/server.py", "the server of the embedded model"),
)
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
        start = started(pid)
        # A process that started later than its child only has the owner's number.
        if what and start and not 0 < started(owner) <= start:
            found.append(
                Leftover(pid=pid, what=what, owner=owner, below=tuple(sorted(descendants(pid))))
            )
    below = {pid for leftover in found for pid in leftover.below}
    return sorted(
        (leftover for leftover in found if leftover.pid not in below), key=lambda item: item.pid
    )


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
