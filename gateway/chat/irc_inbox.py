"""What was heard on IRC: it waits for the reader, and what is remembered of it is never further on."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress

from .irc_room import IrcHeard, IrcRooms
from .platform import Memory, Said

SEEN_SECONDS = 30.0  # how often the time of the last line is remembered, at most
WAITING = 1000  # messages that wait for the reader; then the server waits


class IrcInbox:
    """Messages on their way to the reader.

    `heard_at` is when the last line came, in seconds since 1970; `marks` the last message of each room
    that the server can find again, as `TIME ID`.
    """

    def __init__(self, rooms: IrcRooms) -> None:
        self.heard_at = 0.0
        self.marks: dict[str, str] = {}
        self._rooms = rooms
        self._items: asyncio.Queue[IrcHeard | None] = asyncio.Queue(WAITING)
        self._in_hand: IrcHeard | None = None
        self._memory: Memory | None = None
        self._seen_at = 0.0

    def recall(self, memory: Memory) -> None:
        """Take over what was remembered when this ended."""
        self._memory = memory
        word = memory.get("seen")
        since = float(word) if re.fullmatch(r"\d+(\.\d+)?", word) else None
        for room in self._rooms:
            room.since = since
            self.marks[room.name] = memory.get(f"mark {room.name}")

    def note_line(self) -> None:
        """Note that a line came."""
        self.heard_at = time.time()

    async def put(self, heard: IrcHeard) -> None:
        """Hand something on to the reader, as soon as there is room."""
        if heard.mark and isinstance(heard.item, Said):
            self.marks[heard.item.room] = heard.mark
        await self._items.put(heard)

    async def take(self) -> IrcHeard | None:
        """Return what the reader gets next, none at the end. Raises `TimeoutError` after a while."""
        async with asyncio.timeout(SEEN_SECONDS):
            heard = await self._items.get()
        self._in_hand = heard
        return heard

    async def taken(self) -> None:
        """Remember what has to be remembered of that, which is on disk now."""
        heard, self._in_hand = self._in_hand, None
        if heard is None or self._memory is None:
            return
        if heard.mark and isinstance(heard.item, Said):
            await self._memory.put(f"mark {heard.item.room}", heard.mark)
        if self.heard_at - self._seen_at > SEEN_SECONDS:
            await self.remember_seen()

    async def remember_seen(self) -> None:
        """Remember when we last heard the server, but nothing after what waits for the reader."""
        if self._rooms.is_behind or not self._items.empty():
            return
        at = self.heard_at
        if self._in_hand is not None:
            at = min(at, self._in_hand.at)
        if self._memory is not None and at > self._seen_at:
            self._seen_at = at
            await self._memory.put("seen", f"{at:.3f}")

    def end(self) -> None:
        """Wake the reader, if it waits: nothing comes any more."""
        with suppress(asyncio.QueueFull):  # then it does not wait
            self._items.put_nowait(None)

    def close(self) -> None:
        """Drop what waits, and wake the reader."""
        while not self._items.empty():
            self._items.get_nowait()
        self.end()
