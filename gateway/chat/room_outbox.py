"""Sends what is to be said in a room, in order, no faster than its platform takes it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Never

from .book import Book, Letter, Stored
from .platform import NotSent, Outgoing, Platform
from .platform_parts import pauses
from .room_inbox import AGAIN

log = logging.getLogger("steersman.chat")

_BURST = 3  # messages that may follow each other at once
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds before a failed message is tried again
_UNKNOWN = ":unknown"  # ends the key of what says that it is not known whether a message arrived
_WARNING = 10.0  # seconds that a warning may take which is not kept


class RoomOutbox:
    """Sends what the book has for one room; `posted` is set when there is more."""

    def __init__(self, platform: Platform, book: Book, room: str, posted: asyncio.Event) -> None:
        self._platform = platform
        self._book = book
        self._room = room
        self._posted = posted

    async def run(self) -> Never:
        """Send one message after another."""
        waits, clock, free = (
            pauses(_FIRST_PAUSE, _LONGEST_PAUSE),
            asyncio.get_running_loop().time,
            0.0,
        )
        interval = self._platform.limits.interval
        while True:
            self._posted.clear()
            stored = await self._book.next_letter(self._room)
            if stored is None:
                await self._posted.wait()
                continue
            free = max(free, clock() - _BURST * interval) + interval
            await asyncio.sleep(max(0.0, free - clock()))
            wait = await self._send(stored)
            if wait is None:
                waits = pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
            else:
                pause = next(waits)
                await asyncio.sleep(wait or pause)

    async def _send(self, stored: Stored) -> float | None:
        """Send one message; return the seconds to wait before it is tried again, 0 for some time."""
        book, sent = self._book, stored.letter.outgoing
        is_notice = sent.key.endswith(_UNKNOWN)  # twice is better than never
        can_repeat = self._platform.limits.is_idempotent or bool(stored.message) or is_notice
        if stored.state == "sending" and not can_repeat:
            await self._is_unknown(stored)
            return None
        await book.mark(stored, "sending", stored.message)
        [outcome] = await asyncio.gather(self._pass_on(stored), return_exceptions=True)
        match outcome:
            case str():
                await book.mark(stored, "sent", outcome)
            case NotSent() if outcome.seconds:
                await book.mark(stored, "waiting", stored.message)
                return outcome.seconds
            case NotSent():
                log.warning("room %s: a message was refused: %s", self._room, outcome.message)
                await book.mark(stored, "refused")
            case OSError() if can_repeat:
                log.info("room %s: a message is sent again: %s", self._room, outcome)
                await book.mark(stored, "waiting", stored.message)
                return 0.0
            case OSError():
                log.info("room %s: a message may not have arrived: %s", self._room, outcome)
                await self._is_unknown(stored)
            case _:  # tried again it would fail again, and end the gateway each time
                log.error("room %s: a message cannot be sent", self._room, exc_info=outcome)
                await book.mark(stored, "refused")
        return None

    async def _pass_on(self, stored: Stored) -> str:
        """Send a message, or change the one that it takes the place of; return its id."""
        sent = stored.letter.outgoing
        if stored.message and self._platform.limits.can_edit:
            await self._platform.change(self._room, stored.message, sent)
            return stored.message
        return await self._platform.send(sent)

    async def _is_unknown(self, stored: Stored) -> None:
        """Say that it is not known whether a message arrived; it is not said twice unasked."""
        await self._book.mark(stored, "unknown")
        text = f"My last message may not have arrived: `!{AGAIN}` says it again."
        key = f"{stored.letter.outgoing.key}{_UNKNOWN}"
        await self._book.write(Letter(outgoing=Outgoing(key=key, room=self._room, text=text)))

    async def warn(self, key: str, text: str) -> None:
        """Say something that cannot be kept first, if that is possible now."""
        with suppress(NotSent, OSError):  # a time limit is an `OSError`, too
            async with asyncio.timeout(_WARNING):
                await self._platform.send(Outgoing(key=key, room=self._room, text=text))
