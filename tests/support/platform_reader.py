"""Reads a chat platform as a gateway does, for the tests of platforms."""

import asyncio
from typing import Any

from support.patience import seconds

from steersman.gateway.chat.platform import Inbound, Platform, Said

__all__ = ["PlatformReader", "Words"]


class Words:
    """What a platform keeps over restarts."""

    def __init__(self, **words: str) -> None:
        self.words = words

    def get(self, name: str) -> str:
        """Return a word."""
        return self.words.get(name, "")

    async def put(self, name: str, word: str) -> None:
        """Keep a word."""
        self.words[name] = word


class PlatformReader:
    """Takes what a platform yields, in a task of its own; `items` is what came, oldest first."""

    def __init__(self, platform: Platform, memory: Words | None = None) -> None:
        self.items: list[Inbound] = []
        self._taken = 0
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(self._read(platform, memory or Words()))

    async def _read(self, platform: Platform, memory: Words) -> None:
        async for item in platform.inbound(memory):
            self.items.append(item)
            self._changed.set()

    async def first(self, count: int) -> list[Any]:
        """Return the first items, once there are so many; raises what the platform raised."""
        async with asyncio.timeout(seconds(20)):
            while len(self.items) < count:
                self._changed.clear()
                waiting = asyncio.create_task(self._changed.wait())
                await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if self.task.done() and len(self.items) < count:
                    self.task.result()
                    raise AssertionError("the platform ended")
        return self.items[:count]

    async def next(self) -> Any:
        """Return the next item."""
        self._taken += 1
        return (await self.first(self._taken))[-1]

    @property
    def is_empty(self) -> bool:
        """Whether nothing came that was not taken."""
        return len(self.items) == self._taken

    async def said(self) -> Said:
        """Return the next item, which is something that was said."""
        found = await self.next()
        assert isinstance(found, Said), found
        return found
