"""The events of any session of a home, as a client of the network reads them.

First those of the journal, then live ones, wherever the session is open: here, in another process, or
nowhere at the moment. A client that was cut off goes on after the number that it saw last, also in
another life of the server.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from functools import partial
from itertools import groupby
from typing import Any, cast

from ...journal.lock import Owner
from ...machines.errors import SteersmanError
from ..event_feed import Pages
from ..events.contract import Event, Stamp
from ..home.trash import Trash
from ..host.host import Host
from ..hosts import Hosts
from ..remote import Remote, is_near
from ..views.saved_queues import told_saved
from ..wording.formats import iso

UNREAD = 2_000
"""Events that wait for a client that does not read; then they are read from the journal."""
LOOK = 0.5
"""Seconds without an event after which it is looked who has the session open."""
PAUSE = 0.05
"""Seconds before a client that lost its place finds a new one."""

Batch = tuple[int, list[Event]]
"""Events, and the number of the newest journal entry all of whose events were sent with them."""


class StreamFeed:
    """The live events of one reader, in whole entries; they come from another thread.

    `known` is the entry of the journal that they follow; none where they follow nothing.
    """

    def __init__(self) -> None:
        self.known: int | None = None
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._mutex = threading.Lock()
        self._fresh: list[Event] = []
        self._ready: deque[Event] = deque()
        self._is_over = False

    def begin(self, last: int) -> None:
        """Note the entry of the journal that the events will follow."""
        self.known = last

    def hear(self, host: Host, event: Event) -> None:
        """Keep an event of a session here until its publisher has told all of the entry."""
        with self._mutex:
            is_first = not self._fresh
            self._fresh.append(event)
        if is_first:
            host.runtime.loop.call_soon_threadsafe(self.flush)

    def hear_alone(self, event: Event) -> None:
        """Keep an event that may not be the last of its entry."""
        with self._mutex:
            self._fresh.append(event)
        self.flush()

    def flush(self) -> None:
        """Let what was kept be read."""
        with self._mutex:
            if not self._is_over:
                self._ready.extend(self._fresh)
            self._fresh.clear()
            if len(self._ready) > UNREAD:
                self._ready.clear()
                self._is_over = True
        self._wake()

    def end(self) -> None:
        """Say that nothing more comes from there."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self._woken.set)

    async def next(self, seconds: float) -> list[Event] | None:
        """Wait for events and return all that are there; none after that many seconds.

        An empty list: nothing more comes, or too many waited.
        """
        if not self._ready and not self._is_over:
            self._woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), seconds)
            if not self._ready and not self._is_over:
                return None
        with self._mutex:
            found = list(self._ready)
            self._ready.clear()
        return found


class Doorbell:
    """Wakes the readers of sessions that were not open here, when one is; any thread.

    `listeners` get all events of the program's sessions.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[Host, Event], None]] = []
        self._feeds: dict[str, tuple[StreamFeed, ...]] = {}

    def hear(self, host: Host, event: Event) -> None:
        """Pass an event on, and send the readers of its session to its host."""
        for listener in self.listeners:
            listener(host, event)
        for feed in self._feeds.get(event["session"], ()):
            feed.end()

    def wait(self, session: str, feed: StreamFeed) -> Callable[[], None]:
        """Add a reader of a session, and return the function that removes it."""
        self._feeds[session] = (*self._feeds.get(session, ()), feed)

        def leave() -> None:
            rest = tuple(known for known in self._feeds.get(session, ()) if known is not feed)
            if rest:
                self._feeds[session] = rest
            else:
                self._feeds.pop(session, None)

        return leave


class SessionStream:
    """Reads one session; `after` is the number of the entry that the client saw last."""

    def __init__(self, hosts: Hosts, doorbell: Doorbell, session: str, after: int) -> None:
        self.after = after
        self._hosts = hosts
        self._doorbell = doorbell
        self._host: Host | None = None
        self._session = session

    async def batches(self) -> AsyncGenerator[Batch]:
        """Yield what happened and what happens, without end; nothing for a while: an empty batch."""
        is_new = not self.after
        while True:
            owner = await asyncio.to_thread(self._owner)
            feed = StreamFeed()
            leave = await asyncio.to_thread(self._follow, owner, feed)
            try:
                async with aclosing(self._written(feed.known)) as written:
                    async for batch in written:
                        yield batch
                if is_new:
                    is_new = False
                    yield self.after, await asyncio.to_thread(self._saved)
                while True:
                    found = await feed.next(LOOK)
                    if found is None:
                        if await asyncio.to_thread(self._has_moved, owner):
                            break
                        yield self.after, []
                    elif not found:
                        break
                    elif fresh := [event for event in found if not self._is_known(event)]:
                        yield self._confirmed(fresh, is_whole=owner is None), fresh
            finally:
                leave()
            await asyncio.sleep(PAUSE)

    async def _written(self, until: int | None) -> AsyncGenerator[Batch]:
        """Yield what is in the journal, up to an entry."""
        pages = Pages(self._hosts.store, self._session, self.after, until)
        while page := await asyncio.to_thread(pages.next):
            self.after = pages.after
            yield self.after, [cast("Event", event.data) for event in page]
        self.after = max(self.after, pages.after)

    def _saved(self) -> list[Event]:
        """Return what a client of a session in which nothing was said is told of others' queues."""
        row = self._hosts.row(self._session)
        if row.has_begun:
            return []
        at = Stamp(seq=None, time=iso(time.time()), session=row.session)
        trash = Trash(self._hosts.paths.state)
        return list(told_saved(self._hosts.store, trash, row.folder, at))

    def _is_known(self, event: Event) -> bool:
        return event["seq"] is not None and event["seq"] <= self.after

    def _confirmed(self, events: list[Event], is_whole: bool) -> int:
        numbers = [event["seq"] for event in events if event["seq"] is not None]
        if not numbers:
            return self.after
        known = self.after
        self.after = max(numbers) if is_whole else max(known, max(numbers) - 1)
        return self.after

    def _owner(self) -> Owner | None:
        """Return the other process that has the session open; none if it is open here or nowhere."""
        if self._hosts.with_live(self._session) is not None:
            return None
        return self._hosts.owner(self._session)

    def _has_moved(self, owner: Owner | None) -> bool:
        """Whether something else has the session now, or entries came of which no event told."""
        if (host := self._hosts.with_live(self._session)) is not None:
            return host is not self._host
        is_silent = owner is None or not is_near(self._hosts.paths.state, owner)
        return self._owner() != owner or (
            is_silent and self._hosts.row(self._session).seq > self.after
        )

    def _follow(self, owner: Owner | None, feed: StreamFeed) -> Callable[[], None]:
        host = self._host = self._hosts.with_live(self._session) if owner is None else None
        if host is not None:
            hear = partial(self._hear, host, feed)
            return host.event_bus.follow(self._session, hear, feed.begin)
        if owner is None:
            return self._doorbell.wait(self._session, feed)
        return self._follow_elsewhere(owner, feed)

    def _hear(self, host: Host, feed: StreamFeed, event: Event) -> None:
        """Keep an event of the session itself."""
        if event["session"] == self._session:
            feed.hear(host, event)

    def _follow_elsewhere(self, owner: Owner, feed: StreamFeed) -> Callable[[], None]:
        state = self._hosts.paths.state
        if not is_near(state, owner):  # from another machine only the journal tells
            return lambda: None
        try:
            remote = Remote.connect(state, self._session, owner)
            feed.known, events = remote.events()
        except SteersmanError:
            feed.end()
            return lambda: None

        def listen() -> None:
            with suppress(SteersmanError, OSError, ValueError):
                for event in events:
                    if event["session"] == self._session:
                        feed.hear_alone(event)
            feed.end()

        threading.Thread(target=listen, name="web-follow", daemon=True).start()
        return remote.close


def frames(batch: Batch) -> list[dict[str, Any]]:
    """Return the events as server-sent events; the last one of an entry bears the entry's number."""
    confirmed, events = batch
    found: list[dict[str, Any]] = []
    for seq, group in groupby(events, key=lambda event: event["seq"]):
        told: list[dict[str, Any]] = [{"data": event} for event in group]
        if seq is not None and seq <= confirmed:
            told[-1]["id"] = str(seq)
        found += told
    return found
