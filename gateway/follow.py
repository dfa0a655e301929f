"""The events of any session of a home, as every interface reads them.

First those of the journal, then live ones, wherever the session is open: here, in another process, or
nowhere at the moment. A reader that was cut off goes on after the number that it saw last, also in
another life of its program.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple, cast

from ..journal.lock import Owner
from ..machines.errors import UnknownSession
from .event_feed import Below, Feed, pages
from .events.contract import Event
from .outcome import LEFT_BEFORE, Outcome, StoredOutcome
from .reach import SessionReach

if TYPE_CHECKING:
    from .host.host import Host

LOOK = 0.5
"""Seconds without an event after which it is looked who has the session open."""
PAUSE = 0.05
"""Seconds before a reader that lost its place finds a new one."""


class Batch(NamedTuple):
    """Whole entries of events, and the number of the newest entry that was given with them.

    `is_joined`: without events, the reader has all that is written, and what happens from now on is live.
    """

    confirmed: int
    events: list[Event]
    is_joined: bool = False


class Follower:
    """Reads one session; `after` is the number of the entry that was seen last, none: what comes.

    `below` is what is told of subagents. `is_over` says that nothing happens in the session any more, as
    far as this reader is concerned. `look` is in seconds, none: the session stays where it is. `is_tied`:
    it ends when it loses its owner's socket.
    """

    def __init__(
        self,
        reach: SessionReach,
        session: str,
        after: int | None = 0,
        *,
        below: Below = "nothing",
        is_over: Callable[[], bool] = lambda: False,
        look: float | None = LOOK,
        is_tied: bool = False,
    ) -> None:
        self._reach, self._session = reach, session
        self._after = after or 0
        self._is_new = after is None
        self._below: Below = below
        self._is_over, self._look, self._is_tied = is_over, look, is_tied

    async def batches(self) -> AsyncGenerator[Batch]:
        """Yield what happened and what happens; nothing for a while: an empty batch."""
        while True:
            host, owner = await asyncio.to_thread(self._place)
            feed = Feed(self._session, self._below)
            leave = await self._join(owner, feed)
            try:
                was_over = self._is_over()
                async with aclosing(self._written(None if was_over else feed.known)) as written:
                    async for batch in written:
                        yield batch
                if was_over:
                    return
                yield Batch(self._after, [], is_joined=True)
                while True:
                    found = await feed.next(self._look)
                    if found is None:
                        if await asyncio.to_thread(self._has_moved, host, owner):
                            break
                        yield Batch(self._after, [])
                    elif not found:
                        break
                    elif fresh := [event for event in found if not self._is_known(event)]:
                        own = [event for event in fresh if event["session"] == self._session]
                        self._after = max([self._after, *(event["seq"] or 0 for event in own)])
                        yield Batch(self._after, fresh)
            finally:
                leave()
            is_near = owner is not None and self._reach.is_near(owner)
            if self._is_tied and is_near and not feed.is_behind:
                return
            await asyncio.sleep(PAUSE)

    async def _join(self, owner: Owner | None, feed: Feed) -> Callable[[], None]:
        """Let the feed have the live events; a reader that ends meanwhile leaves at once."""
        follow = asyncio.to_thread(self._reach.follow, self._session, owner, feed)
        joining = asyncio.ensure_future(follow)
        try:
            return await asyncio.shield(joining)
        except asyncio.CancelledError:
            joining.add_done_callback(lambda joined: joined.result()())
            raise

    async def _written(self, until: int | None) -> AsyncGenerator[Batch]:
        """Yield what is in the journal, up to an entry."""
        if self._is_new:
            self._is_new = False
            row = await asyncio.to_thread(self._reach.store.row, self._session)
            self._after = row.seq if until is None else until
        if until is not None and until <= self._after:
            return
        read = pages(self._reach.store, self._session, self._after, until)
        while (found := await asyncio.to_thread(next, read, None)) is not None:
            self._after, page = found
            if page:
                yield Batch(self._after, [cast("Event", event.data) for event in page])

    def _is_known(self, event: Event) -> bool:
        is_own = event["session"] == self._session
        return is_own and event["seq"] is not None and event["seq"] <= self._after

    def _place(self) -> tuple[Host | None, Owner | None]:
        """Return the host here in which the session lives, or the other process that has it open."""
        host = self._reach.host_of(self._session)
        return host, self._reach.owner(self._session) if host is None else None

    def _has_moved(self, host: Host | None, owner: Owner | None) -> bool:
        """Whether something else has the session now, or entries came of which no event told."""
        if self._place() != (host, owner):
            return True
        is_silent = host is None and (owner is None or not self._reach.is_near(owner))
        return is_silent and self._reach.store.row(self._session).seq > self._after


class OutcomesElsewhere:
    """What becomes of the messages of a session that another program has open, by its journal."""

    def __init__(self, reach: SessionReach, session: str) -> None:
        self._reach, self._session = reach, session

    async def of(self, item: str, *, with_turn: bool = False) -> Outcome:
        """Wait for the outcome of a message; see `Outcomes.of`.

        Raises `UnknownSession` if the session is left before.
        """
        stored = StoredOutcome(self._reach.store, self._session, item, with_turn=with_turn)
        follower = Follower(self._reach, self._session, None)
        async with aclosing(follower.batches()) as batches:
            async for batch in batches:
                is_news = batch.is_joined or any(event["seq"] for event in batch.events)
                if is_news and (found := await asyncio.to_thread(stored.look)) is not None:
                    return found
                if batch.is_joined and self._reach.owner(self._session) is None:
                    raise UnknownSession(*LEFT_BEFORE)  # who had it may just have died
        raise AssertionError("a follower goes on")
