"""A chat platform in memory: rooms in which tests are the people, and that outlive the gateway."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

from support.patience import seconds

from steersman.gateway.chat.platform import (
    Chosen,
    Inbound,
    Memory,
    NotSent,
    Outgoing,
    PlatformLimits,
    Removed,
    Said,
)

__all__ = ["Server", "ServerPlatform"]


class Server:
    """The platform: what people did, and what the rooms show. It outlives every connection.

    `faults` are raised by the next sends, in order, each together with whether the message arrives all
    the same.
    """

    def __init__(self) -> None:
        self.events: list[Inbound] = []
        self.shown: dict[str, Outgoing] = {}
        self.history: list[tuple[str, str]] = []
        self.faults: list[tuple[Exception, bool]] = []
        self.typing: list[bool] = []
        self._ids = itertools.count(1)
        self._keys = dict[str, str]()
        self._changed = asyncio.Condition()

    # People ---------------------------------------------------------------------------------------

    async def say(self, sender: str, text: str, **more: Any) -> str:
        """Say something in the room `#dev`; return the message's id."""
        said = Said(id=f"p{next(self._ids)}", room="#dev", sender=sender, text=text, **more)
        await self.do(said)
        return said.id

    async def choose(self, sender: str, message: str, choice: str) -> None:
        """Press a button."""
        event = Chosen(
            id=f"c{next(self._ids)}", room="#dev", sender=sender, message=message, choice=choice
        )
        await self.do(event)

    async def remove(self, sender: str, message: str) -> None:
        """Take a message back."""
        await self.do(Removed(room="#dev", sender=sender, message=message))

    async def do(self, event: Inbound) -> None:
        """Deliver what somebody did."""
        async with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    @property
    def texts(self) -> list[str]:
        """All messages of the gateway as the room shows them, the oldest first."""
        return [sent.text for sent in self.shown.values()]

    def find(self, text: str) -> tuple[str, Outgoing]:
        """Return the newest message of the gateway with a text in it."""
        return next(
            (name, sent) for name, sent in reversed(list(self.shown.items())) if text in sent.text
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        try:
            async with asyncio.timeout(seconds(20)), self._changed:
                await self._changed.wait_for(holds)
        except TimeoutError:
            raise AssertionError(f"it did not come; the room shows {self.texts}") from None

    async def seen(self, text: str, times: int = 1) -> None:
        """Wait until the gateway has said something, so often."""
        await self.until(lambda: sum(text in one for one in self.texts) >= times)

    # The gateway ----------------------------------------------------------------------------------

    async def take(self, sent: Outgoing, *, is_idempotent: bool) -> str:
        """Take a message of the gateway."""
        fault, arrives = self.faults.pop(0) if self.faults else (None, True)
        name = self._keys.get(sent.key, "") if is_idempotent else ""
        if arrives and not name:
            name = self._keys[sent.key] = f"g{next(self._ids)}"
            async with self._changed:
                self.shown[name] = sent
                self.history.append(("sent", sent.text))
                self._changed.notify_all()
        if fault is not None:
            raise fault
        return name

    async def alter(self, message: str, sent: Outgoing) -> None:
        """Change a message of the gateway."""
        async with self._changed:
            self.shown[message] = sent
            self.history.append(("changed", sent.text))
            self._changed.notify_all()

    async def after(self, place: int) -> Inbound:
        """Return what was done at a place, once it is there."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.events) > place)
            return self.events[place]


class ServerPlatform:
    """A connection to the server."""

    def __init__(self, server: Server, **limits: Any) -> None:
        self.server = server
        self.limits = PlatformLimits(**{"edit_interval": 0.05, **limits})
        self.own_name = "steers"
        self.is_closed = False

    def sender_of(self, name: str) -> str:
        """Names are what they are."""
        return name

    async def inbound(self, memory: Memory) -> AsyncIterator[Inbound]:
        """Yield what was done after the remembered place."""
        place = int(memory.get("place") or 0)
        while True:
            yield await self.server.after(place)
            place += 1
            await memory.put("place", str(place))

    async def send(self, message: Outgoing) -> str:
        """Send a message."""
        return await self.server.take(message, is_idempotent=self.limits.is_idempotent)

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Change a message."""
        if message not in self.server.shown:
            raise NotSent("it was deleted")
        await self.server.alter(message, sent)

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Note it."""
        self.server.typing.append(is_typing)

    async def check(self) -> list[str]:
        """Find everything in order."""
        return ["a room in memory"]

    async def aclose(self) -> None:
        """Disconnect."""
        self.is_closed = True
