"""Waits for what a judge named: some time, the end of a process, or a file that comes or changes.

Looks every `PAUSE` seconds: none of the three can be waited for on every system. A process is known by
its start, too, for ids are used again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..machines.verdict import Condition
from .agents.ancestry import is_alive, process

__all__ = ["PAUSE", "await_condition"]

PAUSE = 0.25


async def await_condition(
    condition: Condition, folder: Path, limit: float, since: float = 0.0
) -> bool:
    """Return when it has happened; false if that took more than `limit` seconds.

    A file that came or changed after `since` (seconds since the epoch; 0: from now on) has done so.
    """
    try:
        async with asyncio.timeout(limit):
            await _happens(condition, folder, since)
    except TimeoutError:
        return False
    return True


async def _happens(condition: Condition, folder: Path, since: float) -> None:
    match condition.kind:
        case "time":
            await asyncio.sleep(condition.seconds)
        case "process":
            known = process(condition.process)
            while known and is_alive(known[0], known[1]):
                await asyncio.sleep(PAUSE)
        case "file":
            path = folder / condition.file
            before = _look(path)
            if before and 0 < since < before[0] / 1e9:
                return
            while _look(path) == before:
                await asyncio.sleep(PAUSE)


def _look(path: Path) -> tuple[int, int, int] | None:
    """Tell when a file came or changed last, in nanoseconds, its size, and which one it is."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return max(found.st_mtime_ns, found.st_ctime_ns), found.st_size, found.st_ino
