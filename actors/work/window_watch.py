"""How many tokens a model can look at: asked once, beside the first call, so that nobody waits."""

from __future__ import annotations

import asyncio

from ...ports.models.model import Model

__all__ = ["WindowWatch"]

PATIENCE = 0.5
"""Seconds that an answer may wait for the window to be known."""


class WindowWatch:
    """Asks `model` for its window; on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, model: Model) -> None:
        self._loop = loop
        self._model = model
        self._task: asyncio.Task[int] | None = None

    def begin(self) -> None:
        """Ask, unless that was done."""
        if self._task is None:
            self._task = self._loop.create_task(self._model.window())

    async def known(self) -> int:
        """Return the window, 0 while or where nobody knows it."""
        if self._task is None:
            return 0
        await asyncio.wait([self._task], timeout=PATIENCE)
        if not self._task.done() or self._task.cancelled() or self._task.exception():
            return 0
        return self._task.result()

    def close(self) -> None:
        """Stop asking. Idempotent."""
        if self._task is not None:
            self._task.cancel()
