"""Streamed text, gathered so that a fast model does not flood whoever reads along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Pieces"]

COALESCE = 0.03
"""Seconds for which pieces of text are gathered before they are passed on."""


class Pieces:
    """Gathers streamed text: the first piece goes at once, later ones every `COALESCE` seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[str], None]) -> None:
        self._loop = loop
        self._send = send
        self._gathered: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, piece: str) -> None:
        """Take a piece."""
        self._gathered.append(piece)
        if self._timer is None:
            self.flush()
            self._timer = self._loop.call_later(COALESCE, self._tick)

    def flush(self) -> None:
        """Pass on what has gathered."""
        if self._gathered:
            self._send("".join(self._gathered))
            self._gathered.clear()

    def close(self) -> None:
        """Pass on the rest and end."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = None
        if self._gathered:
            self.flush()
            self._timer = self._loop.call_later(COALESCE, self._tick)
