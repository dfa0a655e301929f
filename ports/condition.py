"""Waits for what a judge named: some time, the end of a process, or a file that comes or changes.

Looks every `PAUSE` seconds: none of the three can be waited for on every system.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..machines.verdict import Condition
from .process.tree import is_running

__all__ = ["PAUSE", "await_condition"]

PAUSE = 0.25


async def await_condition(condition: Condition, folder: Path, limit: float) -> bool:
    """Return when it has happened; false if that took more than `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            await _happens(condition, folder)
    except TimeoutError:
        return False
    return True


async def _happens(condition: Condition, folder: Path) -> None:
    match condition.kind:
        case "time":
            await asyncio.sleep(condition.seconds)
        case "process":
            while is_running(condition.process):
                await asyncio.sleep(PAUSE)
        case "file":
            path = folder / condition.file
            before = _look(path)
            while _look(path) == before:
                await asyncio.sleep(PAUSE)


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
