"""Messages that people of the network edit: none of them starts meanwhile, nor stays held for ever.

A terminal holds such a message for as long as it is connected. A request of HTTP is over at once, so here
it is held for some seconds, which the client renews; where it goes away, the message is let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from ...machines.errors import SteersmanError, UsageError
from ..control import Requests
from ..remote_session import RemoteSession

HOLD = 30.0
"""Seconds for which a message is held after its editor was heard of."""
MOST = 1_000
"""Messages that are held at a time."""

Key = tuple[str, str]
"""A session, and who edits in it."""


Holder: TypeAlias = Requests | RemoteSession
"""Carries out requests for one session; what one edits by it is held until it is closed."""


class Edits:
    """The messages that are held; on the loop of the server.

    `find` returns what carries out requests for a session, wherever that is open; none: nowhere.
    `ask` has it carry one out.
    """

    def __init__(
        self,
        find: Callable[[str], Awaitable[Holder | None]],
        ask: Callable[[Holder, str, str, dict[str, Any]], Awaitable[Any]],
    ) -> None:
        self._find, self._ask = find, ask
        self._held: dict[Key, tuple[Holder, asyncio.TimerHandle]] = {}
        self._order = WeakValueDictionary[Key, asyncio.Lock]()
        self._ending: set[asyncio.Task[None]] = set()

    async def begin(self, session: str, number: int, editor: str) -> dict[str, Any]:
        """Hold a message, or hold it on; return `{ok, reason}`. Raises `SteersmanError`."""
        key = (session, editor)
        async with self._order.setdefault(key, asyncio.Lock()):
            holder = self._taken(key)
            answer: dict[str, Any] = {"ok": False}
            try:
                if holder is not None:
                    with suppress(SteersmanError):  # its session is open elsewhere now, or nowhere
                        answer = await self._hold(holder, session, number)
                if holder is None or not answer["ok"]:
                    await self._close(holder)
                    if len(self._held) >= MOST:
                        raise UsageError("too many messages are being edited", "finish some")
                    holder = await self._find(session)
                    if holder is None:  # nothing in it starts
                        return {"ok": True}
                    answer = await self._hold(holder, session, number)
            finally:
                if not answer["ok"]:
                    await self._close(holder)
            if answer["ok"] and holder is not None:
                timer = asyncio.get_running_loop().call_later(HOLD, self._expire, key)
                self._held[key] = (holder, timer)
        return answer

    async def end(self, session: str, editor: str) -> None:
        """End the edit of a message in a session. Idempotent."""
        key = (session, editor)
        async with self._order.setdefault(key, asyncio.Lock()):
            await self._close(self._taken(key))

    async def aclose(self) -> None:
        """Let go of everything."""
        for session, editor in tuple(self._held):
            await self.end(session, editor)

    async def _hold(self, holder: Holder, session: str, number: int) -> dict[str, Any]:
        answer: dict[str, Any] = await self._ask(holder, session, "edit", {"number": number})
        return answer

    def _taken(self, key: Key) -> Holder | None:
        holder, timer = self._held.pop(key, (None, None))
        if timer is not None:
            timer.cancel()
        return holder

    def _expire(self, key: Key) -> None:
        task = asyncio.get_running_loop().create_task(self.end(*key))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _close(self, holder: Holder | None) -> None:
        if holder is not None:
            await asyncio.to_thread(holder.close)
