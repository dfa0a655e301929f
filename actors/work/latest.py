"""The last lines of what a command prints, told while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Latest"]

PATIENCE = 0.5
"""Seconds for which a command runs before anything is told: the result of a short one says it all."""
INTERVAL = 0.25
"""Seconds between two tellings."""
LINES = 10
LONGEST = 2_000
"""Characters that are told at most."""


class Latest:
    """Keeps the end of an output, and tells its last lines now and then."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[str], None]) -> None:
        self._loop = loop
        self._send = send
        self._from = loop.time() + PATIENCE
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take in what was printed next."""
        self._text = (self._text + text)[-LONGEST:]
        if self._timer is None:
            wait = max(INTERVAL, self._from - self._loop.time())
            self._timer = self._loop.call_later(wait, self._tell)

    def close(self) -> None:
        """Say no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        self._timer = None
        lines = self._text.rstrip("\n").split("\n")[-LINES:]
        self._send("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
