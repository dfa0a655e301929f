"""Processes of ours whose program is gone: they should have ended by themselves, and did not.

A program of ours starts two kinds of helpers: the spawner, with a supervisor for each command, and the
server of the embedded model. Both name the process that started them as their last argument. What
they started is below them. Looks into /proc; elsewhere nothing is found.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from .tree import descendants

_KINDS = (
    ("/ports/process/__main__.py", "a supervisor of commands"),
    ("/ports/models/local_server.py", "the server of the embedded model"),
)
_PLACES = range(2, 5)  # where in the argument list the script stands, after Python's options
_START = 19  # place of the start time in /proc/PID/stat, behind the name


@dataclass(frozen=True, slots=True)
class Leftover:
    """One such process: what it is, the process id that started it, and what runs below it."""

    pid: int
    what: str
    owner: int
    below: tuple[int, ...]


def leftovers() -> list[Leftover]:
    """List this user's helpers whose owner is dead, the uppermost of each tree, by process id."""
    found: list[Leftover] = []
    for pid in _own_processes():
        what, owner = _kind(_read(pid, "cmdline").split("\0"))
        started = _started(pid)
        if what and started and not _is_older(owner, started):
            found.append(Leftover(pid, what, owner, tuple(sorted(descendants(pid)))))
    below = {pid for one in found for pid in one.below}
    return sorted((one for one in found if one.pid not in below), key=lambda one: one.pid)


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
            continue  # it ended while we looked


def _kind(arguments: list[str]) -> tuple[str, int]:
    """Tell what a process is by its arguments, and its owner; empty for what is not ours."""
    words = [word for word in arguments if word]
    for place in _PLACES:
        for script, what in _KINDS:
            is_it = place < len(words) and words[place].endswith(script)
            if is_it and words[-1].isdigit():
                return what, int(words[-1])
    return "", 0


def _is_older(owner: int, started: int) -> bool:
    """Whether the owner lives; a younger process only got its number."""
    at = _started(owner)
    return bool(at) and at <= started


def _started(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if it does not run."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    if len(fields) <= _START or fields[0] in ("Z", "X"):
        return 0
    return int(fields[_START])


def _read(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(4096).decode(errors="replace")
    except OSError:
        return ""
