"""The events of any session of a home, as every interface reads them.

First those of the journal, then live ones, wherever the session is open: here, in another process, or
nowhere at the moment. A reader that was cut off goes on after the number that it saw last, also in
another life of its program.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ..journal.codec import decode_entry
from ..journal.history import record_at
from ..journal.lock import Owner
from ..journal.record import apply, forget_conversation
from ..journal.store import Store
from ..machines.errors import UnknownSession
from .events.contract import Event as EventFields
from .events.contract import Stamp
from .events.translation import translate
from .outcome import LEFT_BEFORE, Outcome, StoredOutcome, later
from .wording.formats import iso

if TYPE_CHECKING:
    from .host.host import Host
    from .reach import SessionReach

UNREAD = 10_000
"""Events that wait for a program that does not read them; then they are read from the journal."""
Below = Literal["nothing", "questions", "all"]
"""What a reader of a session wants to know of its subagents."""
_PAGE = 500  # entries that are read at once
LOOK = 0.5
"""Seconds without an event after which it is looked who has the session open."""
PAUSE = 0.05
"""Seconds before a reader that lost its place finds a new one."""


class Event:
    """An event of docs/events.md: its fields are attributes, and keys.

    `event.type`, `event.seq` (its number in the journal, none for one that is not journalled),
    `event.time` and `event.session` are always there. `data` has all fields as a dictionary; the field
    `as`, which is no name in Python, is the attribute `taken_as`.
    """

    __slots__ = ("data",)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def type(self) -> str:
        """The event's name."""
        return str(self.data["type"])

    @property
    def seq(self) -> int | None:
        """The number of its journal entry; none if it is not journalled."""
        return cast("int | None", self.data["seq"])

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data["as" if name == "taken_as" else name]
        except KeyError:
            raise AttributeError(f"a `{self.type}` event has no field `{name}`") from None

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` where the event has none of that name."""
        return self.data.get(name, default)

    def __repr__(self) -> str:
        return f"Event({self.data!r})"


def pages(
    store: Store, session: str, after: int, until: int | None = None
) -> Iterator[tuple[int, list[Event]]]:
    """Read a session's journal behind an entry as events: yield the entry read last, and its page.

    `until` is the last entry that is read; none: all that there are. Only the last page may be empty.
    """
    record = record_at(store, session, after)
    found: list[Event] | None = None
    while found is None or found:
        found, before = [], -1
        while not found and before != after:
            before = after
            upto = before + _PAGE if until is None else min(before + _PAGE, until)
            for stored in store.entries(session, before, upto):
                entry = decode_entry(stored.data)
                apply(record, entry, stored.seq, stored.time)
                at = Stamp(seq=stored.seq, time=iso(stored.time), session=session)
                found += map(Event, translate(entry, record, at))
                after = stored.seq
            forget_conversation(record)  # no event needs it
        yield after, found


def _is_asked(event: EventFields) -> bool:
    return event["type"] in ("question", "answered")


class Feed:
    """The live events of one reader of a session, which come from other threads.

    `known` is the entry of the journal that they follow; none where they follow nothing. `below` is what
    is kept of subagents; if that is their questions, these come without a number, which is of another
    journal. A reader that does not read for long gets only these beside what waits, and is behind: the
    journal has the rest.
    """

    def __init__(self, session: str, below: Below = "nothing") -> None:
        self.known: int | None = None
        self.is_behind = False
        self._session = session
        self._below = below
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._mutex = threading.Lock()
        self._fresh: list[EventFields] = []
        self._ready: list[EventFields] = []
        self._is_over = False

    def begin(self, last: int) -> None:
        """Note the entry of the journal that the events will follow."""
        self.known = last

    def hear(self, event: EventFields, publisher: asyncio.AbstractEventLoop) -> None:
        """Keep an event until all of its entry was told: until the loop of its publisher goes on."""
        wanted = self._wanted(event)
        if wanted is None:
            return
        with self._mutex:
            is_first = not self._fresh
            self._fresh.append(wanted)
        if is_first:
            later(publisher, self.flush)

    def take(self, events: Sequence[EventFields]) -> None:
        """Keep events that are all of their entries."""
        wanted = [kept for event in events if (kept := self._wanted(event)) is not None]
        if wanted:
            with self._mutex:
                self._fresh += wanted
            self.flush()

    def _wanted(self, event: EventFields) -> EventFields | None:
        """Return an event as it is kept; none that is of no interest."""
        if event["session"] == self._session or self._below == "all":
            return event
        if self._below == "nothing" or not _is_asked(event):
            return None
        return cast("EventFields", {**event, "seq": None})

    def flush(self) -> None:
        """Let what was kept be read, all of it or none; entries are not divided."""
        with self._mutex:
            fresh, self._fresh = self._fresh, []
            if self._is_over or len(self._ready) + len(fresh) > UNREAD:
                self.is_behind = self.is_behind or not self._is_over
                self._is_over = True
                fresh = [
                    event
                    for event in fresh
                    if event["session"] != self._session and _is_asked(event)
                ]
            self._ready += fresh
        later(self._loop, self._woken.set)

    def end(self) -> None:
        """Say that nothing more comes from there."""
        self._is_over = True
        later(self._loop, self._woken.set)

    async def next(self, seconds: float | None) -> list[EventFields] | None:
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
            found, self._ready = self._ready, []
        return found


class Batch(NamedTuple):
    """Whole entries of events, and the number of the newest entry that was given with them.

    `is_joined`: without events, the reader has all that is written, and what happens from now on is live.
    """

    confirmed: int
    events: list[EventFields]
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
                yield Batch(self._after, [cast("EventFields", event.data) for event in page])

    def _is_known(self, event: EventFields) -> bool:
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

    async def of(
        self,
        item: str,
        *,
        with_turn: bool = False,
        after: int | None = None,
        hear: Callable[[Mapping[str, Any]], object] = lambda _: None,
    ) -> Outcome:
        """Wait for the outcome of a message; see `Outcomes.of`.

        `hear` gets the events meanwhile, from now on or behind the entry `after`. Raises
        `UnknownSession` if the session is left before.
        """
        stored = StoredOutcome(self._reach.store, self._session, item, with_turn=with_turn)
        follower = Follower(self._reach, self._session, after)
        async with aclosing(follower.batches()) as batches:
            async for batch in batches:
                for event in batch.events:
                    hear(event)
                is_news = batch.is_joined or any(event["seq"] for event in batch.events)
                if is_news and (found := await asyncio.to_thread(stored.look)) is not None:
                    return found
                if batch.is_joined and self._reach.owner(self._session) is None:
                    raise UnknownSession(*LEFT_BEFORE)  # who had it may just have died
        raise AssertionError("a follower goes on")
