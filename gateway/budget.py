"""Keeps the copies of files within their budget, and says whose are gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ..journal.store import Store
from ..journal.workspace.prune import prune
from .retention import is_saved

__all__ = ["Budget"]

NAMED = 5
"""Sessions that are named; of more it is said how many."""


class Budget:
    """What the copies of a home (`state`) may take, in bytes; `say` tells the people who are there."""

    def __init__(self, state: Path, store: Store, limit: int, say: Callable[[str], None]) -> None:
        self._state, self._store = state, store
        self._limit, self._say = limit, say
        self._keeping: Future[None] | None = None

    def keep(self) -> None:
        """Look, once, beside whatever goes on; delete the oldest copies if all take too much."""
        if self._keeping is None:
            worker = ThreadPoolExecutor(1, "steersman-budget")
            self._keeping = worker.submit(self._keep)
            worker.shutdown(wait=False)

    def wait(self) -> None:
        """Wait for the end of it."""
        if self._keeping is not None:
            self._keeping.result()

    def _keep(self) -> None:
        try:
            self._prune()
        except OSError as error:
            self._say(f"copies of files cannot be kept within `checkpoints.budget`: {error}")

    def _prune(self) -> None:
        unfinished = {row.session for row in self._store.sessions() if is_saved(row)}

        def is_needed(session: str) -> bool:
            return session in unfinished or self._store.is_owned(session)

        done = prune(self._state / "workspaces", is_needed, time.time(), self._limit)
        if done.sessions:
            more = len(done.sessions) - NAMED
            names = ", ".join(done.sessions[:NAMED]) + (f" and {more} more" if more > 0 else "")
            self._say(
                f"Copies of files took {_size(done.left + done.freed)}, and `checkpoints.budget` is "
                f"{_size(self._limit)}: what these sessions changed can no longer be reverted: {names}."
            )
        if done.left > self._limit:
            self._say(
                f"Copies of files take {_size(done.left)}, and `checkpoints.budget` is "
                f"{_size(self._limit)}, but they are still needed. "
                "`steersman sessions list --size` shows by whom."
            )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 10**9 else f"{count / 1e6:.1f} MB"
