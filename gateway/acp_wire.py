"""JSON-RPC messages as lines: what comes is fed in, what goes is handed to a writer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

__all__ = ["LineTransport"]


class LineTransport:
    """A transport of the protocol's library; lives on one asyncio loop.

    `write` takes a line and must not block.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    def feed(self, line: str | None) -> None:
        """Take a line that came; none at the end."""
        self._lines.put_nowait(line)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._write(json.dumps(message, ensure_ascii=False) + "\n")

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, none at the end; what is none is answered with an error."""
        while (line := await self._lines.get()) is not None:
            if not line.strip():
                continue
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                data = None
            if isinstance(data, dict):
                return cast("dict[str, Any]", data)
            error = {"code": -32700, "message": "this line is no JSON object"}
            await self.send({"jsonrpc": "2.0", "id": None, "error": error})
        return None

    async def close(self) -> None:
        """Take no more."""
        self.feed(None)
