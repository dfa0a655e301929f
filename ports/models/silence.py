"""Tells people that a model server is silent, long before the call is given up."""

import asyncio
from collections.abc import Callable

TOLD_AFTER = 30.0
"""Seconds of silence after which it is told; then after twice as long, and so on."""


class SilenceWatch:
    """Watches one call until it is closed: `heard` is called for each piece of its answer.

    `on_notice` is told of each silence, with the `limit`, in seconds, after which the call fails.
    """

    def __init__(self, on_notice: Callable[[str], None], limit: float) -> None:
        self._on_notice, self._limit = on_notice, limit
        self._loop = asyncio.get_running_loop()
        self.heard()
        self._timer = self._loop.call_later(self._next, self._look)

    def heard(self) -> None:
        """Note that a piece came now."""
        self._since, self._next = self._loop.time(), TOLD_AFTER

    async def aclose(self) -> None:
        """Watch no more."""
        self._timer.cancel()

    def _look(self) -> None:
        silent = self._loop.time() - self._since
        if silent >= self._next:
            told = f"the server has sent nothing for {silent:.0f} s"
            self._on_notice(f"{told}, the call is given up after {self._limit:g} s")
            self._next *= 2
        self._timer = self._loop.call_later(
            self._since + self._next - self._loop.time(), self._look
        )
