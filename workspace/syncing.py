"""Puts files and folders on disk; a file system does it faster for many at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 16
"""Threads; each only waits."""


def sync(paths: Iterable[Path]) -> None:
    """Sync each file, and the names in each folder, so that a power cut takes nothing back.

    What is gone or may not be opened is passed over. Raises `OSError`.
    """
    side_by_side(_sync, paths)


def side_by_side(work: Callable[[T], None], items: Iterable[T]) -> None:
    """Do the same with many things at once, and wait for all. Raises what the first of them raises."""
    todo = list(items)
    if len(todo) < 2:
        for item in todo:
            work(item)
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(work, todo):
            pass


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
