"""Shows in a room that the agent is at work, and its answer while it is written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Never

from .book import Book, Letter
from .narrator import stream_key
from .parts import parts
from .platform import NotSent, Outgoing, Platform

_TYPING = 4.0  # seconds between two signs that the agent is at work


class LiveAnswer:
    """Shows that the agent is at work, and its answer as it is written, if messages can be changed."""

    def __init__(
        self, platform: Platform, book: Book, room: str, session: str, posted: asyncio.Event
    ) -> None:
        self._platform, self._book = platform, book
        self._room, self._session, self._posted = room, session, posted
        self._text = ""
        self._shown = ""
        self._showing = set[asyncio.Task[None]]()

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take in an event of the session."""
        kind = event["type"]
        if kind in ("turn_started", "turn_ended"):
            self._stop()
        if kind == "turn_started":
            task = asyncio.create_task(self._show(str(event["turn"])))
            self._showing.add(task)
            task.add_done_callback(self._showing.discard)
        elif kind == "text":
            self._text += event["delta"]
        elif kind == "tool_started":
            self._text = ""

    def _stop(self) -> None:
        for task in self._showing:
            task.cancel()
        self._text = self._shown = ""

    async def aclose(self) -> None:
        """Show nothing any more."""
        self._stop()
        if self._showing:
            await asyncio.wait(self._showing)

    async def _show(self, turn: str) -> None:
        try:
            await self._show_at_work(turn)
        finally:
            await self._platform.typing(self._room, is_typing=False)

    async def _show_at_work(self, turn: str) -> Never:
        """Show what has come, at the rate of the platform."""
        limits = self._platform.limits
        key, last = stream_key(self._session, turn), 0.0
        while True:
            now = time.monotonic()
            if now - last >= _TYPING:
                await self._platform.typing(self._room, is_typing=True)
                last = now
            await asyncio.sleep(max(limits.edit_interval, 0.05))
            begun = parts(self._text, limits)[:1] if limits.can_edit else []
            if not begun or begun[0] == self._shown:
                continue
            self._shown = begun[0]
            sent = Outgoing(key=key, room=self._room, text=self._shown, kind="answer")
            if message := await self._book.message(key):
                with suppress(NotSent, OSError):  # the end of the turn brings the whole
                    await self._platform.change(self._room, message, sent)
            else:
                await self._book.write(Letter(outgoing=sent))
                self._posted.set()
