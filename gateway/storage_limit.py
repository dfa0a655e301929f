"""Keeps the copies of files within their budget, and says whose are gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from ..journal.store import Store
from ..journal.workspace.prune import Pruned, prune
from ..machines.errors import StoreError
from .formats import size_text
from .retention import needs_copies

NAMED = 5
"""Sessions that are named; of more it is said how many."""


class StorageLimit:
    """What the copies of a home (`state`) may take, in bytes; `say` tells the people who are there."""

    def __init__(self, state: Path, store: Store, limit: int, say: Callable[[str], None]) -> None:
        self._state, self._store = state, store
        self._limit, self._say = limit, say
        self._keeping: Thread | None = None
        self._is_closing = False

    def keep(self) -> None:
        """Look, once, in the background; delete the oldest copies if all take too much."""
        if self._keeping is None:
            # a daemon: if a signal arrives while it starts, no code would stop it
            self._keeping = Thread(target=self._keep, name="steersman-budget", daemon=True)
            self._keeping.start()

    def close(self) -> None:
        """Delete nothing more, and wait for what is being deleted; the next start goes on."""
        self._is_closing = True
        if self._keeping is not None and self._keeping.is_alive():
            self._keeping.join()

    def _keep(self) -> None:
        if self._is_closing:
            return
        try:
            needed = needs_copies(self._store)
            done = prune(
                self._state / "workspaces",
                lambda session: self._is_closing or needed(session),
                time.time(),
                self._limit,
            )
        except (OSError, StoreError) as error:
            self._say(f"copies of files cannot be kept within `checkpoints.budget`: {error}")
        else:
            self._tell(done)

    def _tell(self, done: Pruned) -> None:
        if done.sessions:
            more = len(done.sessions) - NAMED
            names = ", ".join(done.sessions[:NAMED]) + (f" and {more} more" if more > 0 else "")
            self._say(
                f"Copies of files took {size_text(done.left + done.freed)}, and `checkpoints.budget` "
                f"is {size_text(self._limit)}: the changes of these sessions can no longer "
                f"be reverted: {names}."
            )
        if done.left > self._limit and not self._is_closing:
            self._say(
                f"Copies of files take {size_text(done.left)}, and `checkpoints.budget` is "
                f"{size_text(self._limit)}, but they are still needed. "
                "`steersman sessions list --size` shows the sessions."
            )
