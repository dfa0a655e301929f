"""The events of a session as a program reads them: those of the journal, then live ones."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from ..journal.codec import decode_entry
from ..journal.history import record_at
from ..journal.record import SessionRecord, apply, forget_conversation
from ..journal.store import Store
from .events.contract import Event as EventFields
from .events.contract import Stamp
from .events.translation import translate
from .outcome import later
from .wording.formats import iso

UNREAD = 10_000
"""Events that wait for a program that does not read them; then they are read from the journal."""
_PAGE = 500  # entries that are read at once


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


class Pages:
    """Reads a session's journal as events, page by page; `after` is the last entry that was read.

    `until` is the last entry that is read; none: all that there are.
    """

    def __init__(
        self,
        store: Store,
        session: str,
        after: int,
        until: int | None = None,
    ) -> None:
        self.after = after
        self._until = until
        self._store = store
        self._session = session
        self._record: SessionRecord | None = None

    def next(self) -> list[Event]:
        """Return the events of the next entries that have any; none at the end."""
        record = self._record
        if record is None:
            record = self._record = record_at(self._store, self._session, self.after)
        found: list[Event] = []
        while not found:
            before = self.after
            upto = before + _PAGE if self._until is None else min(before + _PAGE, self._until)
            for stored in self._store.entries(self._session, before, upto):
                entry = decode_entry(stored.data)
                apply(record, entry, stored.seq, stored.time)
                at = Stamp(seq=stored.seq, time=iso(stored.time), session=self._session)
                found += map(Event, translate(entry, record, at))
                self.after = stored.seq
            forget_conversation(record)  # no event needs it
            if self.after == before:
                break
        return found


class SessionFeed:
    """The live events of one reader of a session; one that does not read for long falls behind.

    Then it reads the journal up to `known`, in which the questions of subagents are not: those are kept
    in any case, without their number, which is of another journal.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._events: deque[EventFields] = deque()
        self.is_behind = False
        self.known = 0

    def begin(self, last: int) -> None:
        """Keep what comes after the entry `last` of the journal."""
        self._drop(len(self._events))
        self.is_behind, self.known = False, last

    def hear(self, event: EventFields) -> None:
        """Keep an event; of an entry whose events do not all have room, none."""
        if event["session"] != self._session:
            if event["type"] in ("question", "answered"):
                self._events.append(cast("EventFields", {**event, "seq": None}))
        elif not self.is_behind and len(self._events) < UNREAD:
            self._events.append(event)
        elif not self.is_behind:
            self.is_behind = True
            while self._events and self._events[-1]["seq"] == event["seq"] is not None:
                self._events.pop()
        later(self._loop, self._woken.set)

    async def live(self, after: int, *, is_over: bool) -> AsyncIterator[Event]:
        """Yield events as they come, until it is behind: those that follow entry `after`.

        `is_over`: none comes any more, so only those that are there.
        """
        while True:
            self._woken.clear()
            while self._events:
                event = self._events.popleft()
                if event["seq"] is None or event["seq"] > after:
                    yield Event(event)
            if self.is_behind or is_over:
                return
            await self._woken.wait()

    def _drop(self, count: int) -> None:
        """Drop the oldest events, except the questions of subagents."""
        dropped = [self._events.popleft() for _ in range(count)]
        kept = (event for event in reversed(dropped) if event["session"] != self._session)
        self._events.extendleft(kept)
