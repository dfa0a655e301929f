"""The line transport of the editor protocol: JSON-RPC messages, one a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, cast


class LineTransport:
    """A transport of the protocol's library; lives on one asyncio loop.

    `write` takes a line and must not block.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._unanswered = 0
        self._is_settled = asyncio.Event()

    def feed(self, line: str | None) -> None:
        """Add a line that was read; none at the end of the input."""
        self._lines.put_nowait(line)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        if "method" not in message:
            self._unanswered -= 1
        self._write(json.dumps(message, ensure_ascii=False) + "\n")
        self._look()

    async def settle(self, seconds: float) -> None:
        """Wait until every request is answered, at most so many seconds."""
        self._look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_settled.wait()

    def _look(self) -> None:
        if self._unanswered > 0:
            self._is_settled.clear()
        else:
            self._is_settled.set()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, none at the end; other lines are answered with an error."""
        while (line := await self._lines.get()) is not None:
            if not line.strip():
                continue
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                data = None
            if isinstance(data, dict):
                message = cast("dict[str, Any]", data)
                self._unanswered += "method" in message and "id" in message
                return message
            self._unanswered += 1
            error = {"code": -32700, "message": "this line is no JSON object"}
            await self.send({"jsonrpc": "2.0", "id": None, "error": error})
        return None

    async def close(self) -> None:
        """End the input."""
        self.feed(None)
