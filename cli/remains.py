"""What sessions leave behind, for the doctor: bytes on disk, and processes whose program is dead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from ..gateway.formats import size_text
from ..journal.sqlite import SqliteStore
from ..journal.workspace.prune import size_of
from ..ports.process.leftover import Leftover, leftovers
from ..workflows.paths import Paths
from .disk import disk_use
from .options import Finding

_LARGEST = 3  # sessions that are named
_ENDING = 2.0  # seconds in which the helpers of a program that just died end
_LOOK_AGAIN = 0.1


def disk_finding(store: SqliteStore, paths: Paths) -> Finding:
    """Tell what our folders take, and which sessions take most."""
    folders = {"state": paths.state, "cache": paths.cache}
    takes = [f"{name} {size_text(_size(path))}" for name, path in folders.items()]
    sizes = sorted(disk_use(store, paths.state).items(), key=lambda entry: -entry[1])
    largest = [f"{session} {size_text(size)}" for session, size in sizes[:_LARGEST] if size]
    if largest:
        takes.append(f"the largest sessions: {', '.join(largest)}")
    return Finding(name="use", verdict="ok", text="; ".join(takes))


def _size(path: Path) -> int:
    return size_of(path) if path.exists() else 0


def leftover_findings() -> Iterator[Finding]:
    """Name each process that outlived the program that started it, and how to end it."""
    left = _lasting()
    if not left:
        yield Finding(name="processes", verdict="ok", text="none is left over")
    for leftover in left:
        below = f", with {', '.join(map(str, leftover.below))} below it" if leftover.below else ""
        text = (
            f"{leftover.pid} is left over: {leftover.what}{below}; "
            f"started by process {leftover.owner}, which is dead"
        )
        ends = " ".join(map(str, (leftover.pid, *leftover.below)))
        yield Finding(name="processes", verdict="warn", text=text, hint=f"kill -9 {ends}")


def _lasting() -> list[Leftover]:
    """List the processes that are left after the time in which they would have ended."""
    until = time.monotonic() + _ENDING
    while (left := leftovers()) and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN)
    return left
