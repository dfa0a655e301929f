"""The line transport of the editor protocol: JSON-RPC messages, one a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any, cast

from acp.exceptions import RequestError
from pydantic import ValidationError

from ...machines.json_shape import parse_json


def quiet_about_refusals(record: logging.LogRecord) -> bool:
    """Whether a record is about more than an input that was refused; for the filter of a logger.

    The protocol's library writes a traceback for each notification that is refused.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, RequestError | ValidationError)


def _fault(message: dict[str, Any]) -> str:
    """Say why a message is none of JSON-RPC, on which the library would give up; empty if it is one."""
    if not isinstance(message.get("id"), str | int | float | None):
        return "an `id` is a text or a number"
    if not isinstance(message.get("method", ""), str):
        return "a `method` is a text"
    if "method" not in message and not isinstance(message.get("error"), dict | None):
        return "an `error` is an object"
    return ""


class LineTransport:
    """A transport of the protocol's library; lives on one asyncio loop.

    `lines` are those that are read, none at the end of the input; `write` takes one and must not block.
    """

    def __init__(self, lines: asyncio.Queue[str | None], write: Callable[[str], None]) -> None:
        self._lines, self._write = lines, write
        self._unanswered = 0
        self._is_settled = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        if "method" not in message:
            self._unanswered -= 1
        # ASCII, of which nothing has to be escaped for a terminal: that would be no JSON any more
        self._write(json.dumps(message, default=str) + "\n")
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
                data = parse_json(line)
            except (ValueError, RecursionError):
                data = None
            if not isinstance(data, dict):
                await self._refuse(None, -32700, "this line is no JSON object")
                continue
            message = cast("dict[str, Any]", data)
            if fault := _fault(message):
                key = message.get("id")
                await self._refuse(key if isinstance(key, str | int) else None, -32600, fault)
                continue
            self._unanswered += "method" in message and "id" in message
            return message
        return None

    async def _refuse(self, key: str | int | None, code: int, why: str) -> None:
        self._unanswered += 1
        await self.send({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": why}})

    async def close(self) -> None:
        """End the input."""
        self._lines.put_nowait(None)
