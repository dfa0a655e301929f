"""The events of a session as a program reads them: those of the journal, then live ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, cast

from ..journal.codec import decode_entry
from ..journal.history import record_at
from ..journal.record import apply, forget_conversation
from ..journal.store import Store
from .events.contract import Event as EventFields
from .events.contract import Stamp
from .events.translation import translate
from .outcome import later
from .wording.formats import iso

UNREAD = 10_000
"""Events that wait for a program that does not read them; then they are read from the journal."""
Below = Literal["nothing", "questions", "all"]
"""What a reader of a session wants to know of its subagents."""
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
