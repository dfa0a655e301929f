"""The queues that ended sessions of a home left: read, discarded, expired, and announced to people.

A change of a saved queue does not resume its session: nothing in it runs, and how it ended stays as
it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from ...journal.queue_record import ItemRecord, QueueRecord
from ...journal.recovery import is_cut_off, last_sign, load_record
from ...journal.revert_record import OVER, beside, result_of
from ...journal.store import RowFilter, SessionRow, Store
from ...machines import protocol as m
from ...machines.errors import ConfigError, StoreBusy, StoreDamaged
from ...machines.lifecycles import GOAL
from ...machines.value import Value
from ...ports.tools.text import counted
from ..events.contract import RecoveredEvent, SavedQueuesEvent, SavedQueueView, Stamp, ToolCallView
from ..events.translation import EventPublisher, calls_in, item_view, queue_of
from ..home.retention import moments_of
from ..home.trash import Thing, Trash
from ..wording.formats import age, call_words, iso, item_line, one_line

if TYPE_CHECKING:
    from ..host.host import Host

CUT = 40  # columns of an item's text in a sentence
WIDE = 60  # columns of the first item of a saved queue in a list
LOOKED_AT = 3
"""How many sessions of a folder are looked at for a goal when a chat starts."""
LISTED = 5
"""How many saved queues of a folder are listed when a chat starts."""


class Saved(Value):
    """The saved `queue` of one session: the session's row, and the items that can go on, in order.

    `is_crashed`: its process died. `unknown` are the tool calls that ran then. `last_active` is when a
    program last worked in it, in seconds since 1970. `children` are the subagents that worked beside its
    turns. `is_over`: it is a run that cannot go on.
    """

    row: SessionRow
    queue: QueueRecord
    items: tuple[ItemRecord, ...]
    is_crashed: bool
    last_active: float
    unknown: tuple[ToolCallView, ...]
    children: tuple[str, ...] = ()
    is_over: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could go on."""
        return not (self.items or self.children)

    def view(self) -> SavedQueueView:
        """Return the saved queue as programs see it."""
        view = SavedQueueView(
            session=self.row.session,
            name=self.row.name,
            folder=self.row.folder,
            cause="crash" if self.is_crashed else "exit",
            items=[item_view(item, is_held=item.state == "pending") for item in self.items],
            last_active=iso(self.last_active),
            unknown=list(self.unknown),
        )
        if self.children:
            view["children"] = list(self.children)
        return view


class SavedQueues:
    """The saved queues of a host's home; not for the loop's own thread."""

    def __init__(self, host: Host, trash: Trash) -> None:
        self._host, self._runtime, self._trash = host, host.runtime, trash

    @property
    def store(self) -> Store:
        """The home's store."""
        return self._runtime.store

    def saved(self) -> list[Saved]:
        """List the saved queues of sessions that no live process owns, newest activity first."""
        return list(found_saved(self.store, self._trash))

    def here(self, folder: Path) -> list[Saved]:
        """List the newest saved queues of a folder, newest first.

        Of chats, and of workflows' runs, there is one more than `LISTED` at most.
        """
        return list(found_saved(self.store, self._trash, str(folder), LISTED + 1))

    def of(self, row: SessionRow) -> Saved:
        """Read the saved queue of one session."""
        return read_saved(self.store, row)

    @contextmanager
    def tended(self, session: str) -> Generator[Callable[[Any], dict[str, Any]]]:
        """Own a session's queue without resuming the session; yields a function that asks the session.

        Raises `StoreBusy` if a live process owns the session.
        """
        only_copied = EventPublisher(session, self._host.observers.copy_queue, time.time)
        idle = self._host.opener.profiles.idle
        self._runtime.open_existing(session, idle, lambda _: (only_copied,), is_offline=True)
        try:
            yield lambda message: self._runtime.ask(session, message)
        finally:
            self._runtime.leave(session)

    def discard(self, session: str) -> Saved:
        """Withdraw every item of a session's saved queue, and return the saved queue."""
        with self.tended(session) as ask:
            row = self.store.load(session).row
            found = self.of(row)
            ask(m.QueueChange(op="discard"))
        return found

    def expire(self, now: float, hours: float) -> Iterator[str]:
        """Put the saved queues older than `hours` into the trash; discard what was there as long.

        Yields a sentence about each that has items.
        """
        moments = moments_of(self.store, self._trash)
        saved = {row.session: row for row in self.store.sessions(RowFilter(has_work=True))}
        things = [
            Thing(kind="queue", of=row.session, used=row.updated, where=row.folder)
            for row in saved.values()
        ]
        new, due = self._trash.look("queue", things, moments, now, hours)
        for thing, why in new:
            if not self.store.is_owned(thing.of):
                with suppress(StoreDamaged, OSError, ConfigError):  # or at another start
                    thing = replace(thing, what=_texts(self.of(saved[thing.of])))
                    self._trash.put(thing, why, moments, now, hours)
                    if thing.what:
                        yield (
                            f"The saved queue of session {thing.of}, last active "
                            f"{age(now - thing.used)} (kept for {hours:g} hours), is in the trash now: "
                            f"{thing.what}. `steersman home trash restore {thing.id}` restores it"
                        )
        for thing in due:
            with suppress(StoreBusy, StoreDamaged):  # the new owner reports the queue
                gone = _texts(self.discard(thing.of))
                self._trash.take_out(thing)
                if gone:
                    yield f"Deleted from the trash: the saved queue of session {thing.of}: {gone}"


def _texts(saved: Saved) -> str:
    return "; ".join(f'"{one_line(item.text, CUT, "...")}"' for item in saved.items)


def found_saved(store: Store, trash: Trash, folder: str = "", most: int = 0) -> Iterator[Saved]:
    """Read the saved queues, of a folder or all, that are not in the trash, newest activity first.

    `most` is the number of those of chats, and of those of workflows' runs; 0: all.
    Reads as few sessions as possible, since every chat starts with this. One that cannot be read is
    passed over: the list of sessions names it.
    """
    trashed = trash.holds("queue")
    left = dict.fromkeys((False, True), most or math.inf)
    for row in store.sessions(RowFilter(has_work=True, folder=folder)):
        if not left[bool(row.workflow)]:
            continue
        if trashed.get(row.session) != row.updated:
            with suppress(StoreDamaged):
                if not store.is_owned(row.session):
                    found = read_saved(store, row)
                    if not found.is_empty:
                        left[bool(row.workflow)] -= 1
                        yield found


def told_saved(store: Store, trash: Trash, folder: str, at: Stamp) -> Iterator[SavedQueuesEvent]:
    """Yield the event that tells a new session what others left in its folder, if there is anything."""
    found = found_saved(store, trash, folder, LISTED + 1)
    if saved := [queue.view() for queue in found if not queue.row.workflow]:
        yield saved_event(saved, at)


def saved_event(saved: list[SavedQueueView], at: Stamp) -> SavedQueuesEvent:
    """Return the event of saved queues; of more than `LISTED` it says that there are more."""
    event = SavedQueuesEvent(type="saved_queues", **at, saved=saved[:LISTED])
    if len(saved) > LISTED:
        event["more"] = True
    return event


def goals_left(store: Store, folder: str) -> Iterator[str]:
    """Say which of the newest sessions of a folder have a goal that is not over, and how it goes on."""
    newest = store.sessions(RowFilter(folder=folder, is_top=True, most=LOOKED_AT))
    for row in newest:
        if row.workflow or row.state == "finalized" or store.is_owned(row.session):
            continue
        with suppress(StoreDamaged):
            goal = load_record(store, row.session).goals.goal
            if goal is not None and goal.state not in GOAL.final:
                text = one_line(goal.text, CUT)
                yield (
                    f"Session {row.session} has a goal that is not reached: {text}. "
                    f"`/resume {row.session}`, then `/goal resume` goes on with it"
                )


def read_saved(store: Store, row: SessionRow) -> Saved:
    """Read a session's queue as a resume would find it, without changing it.

    What waited in a session that was finalized ended with it.
    """
    record = load_record(store, row.session)
    running = [item for item in record.queue.live() if item.state == "running"]
    queue = record.queue.unedited()
    queue = queue.having(*(replace(item, state="interrupted", editor="") for item in running))
    items = [*queue.live(), *record.queue.aside()]
    is_final = record.state == "finalized"
    items, children = ([], []) if is_final else (items, beside(record.children, record.reverts))
    is_over = record.run is not None and result_of(record.run, record.reverts) in OVER
    if record.run is not None and is_over:  # what waits are messages, not the run itself
        items = [item for item in items if item.id != record.run.item]
    return Saved(
        row=row,
        queue=record.queue,
        items=tuple(
            sorted(items, key=lambda item: item.state not in ("interrupted", "unanswered"))
        ),
        children=tuple(child.name for child in children),
        is_crashed=is_cut_off(record),
        last_active=last_sign(record),
        unknown=tuple(calls_in(record, "running", "stopping", "unknown")),
        is_over=is_over,
    )


def stored_queue(store: Store, row: SessionRow | None, *, is_all: bool = False) -> dict[str, Any]:
    """Return the durable queue; of a session that no process has open, as its next owner will find it."""
    if row is None:
        return {"session": None, "state": "open", "items": []}
    record = load_record(store, row.session)
    if store.is_owned(row.session):
        return {"session": row.session, **queue_of(record, is_all=is_all)}
    saved = read_saved(store, row)
    state = record.queue.state if saved.is_empty else "held"  # nothing runs before a person's word
    children = {"children": list(saved.children)} if saved.children else {}
    return {"session": row.session, "state": state, "items": saved.view()["items"], **children}


# Announcements ------------------------------------------------------------------------------------


def announce(
    event: RecoveredEvent | SavedQueueView,
    now: float,
    *,
    can_utf8: bool = True,
    sign: str = "/",
    is_resumed: bool = False,
) -> str:
    """Return the lines that announce the queue of a session that was resumed, or can be.

    `sign` stands before a command. `is_resumed`: the queue runs on without a person's word.
    """
    items, children = event["items"], cast("SavedQueueView", event).get("children", [])
    count = len(items) + len(children)
    what = "resuming" if is_resumed else "not auto-resuming"
    found = (
        f"Found saved queue from crashed session ({counted(count, 'item')}, {what})"
        if event["cause"] == "crash"
        else f"Found {counted(count, 'queued item')} from previous session ({what})"
    )
    lines = [f"📥 {found}" if can_utf8 else found]
    lines += [f"Last active: {_since(event['last_active'], now)}", "Saved items:"]
    lines += [item_line(item) for item in items]
    lines += [f"[INTERRUPTED] subagent {name}" for name in children]
    if not is_resumed:
        runs = children or any(item["state"] != "offered" for item in items)
        way = "resume` to continue" if runs else "keep` to let the answer wait like a message"
        lines.append(
            f"Use `{sign}queue restore` to list, `{sign}queue {way}, "
            f"or `{sign}queue discard` to delete"
        )
    lines += [f"Outcome unknown, not run again: {call_line(call)}" for call in event["unknown"]]
    looked_up = cast("dict[str, Any]", event).get("found", ())
    lines += [f"Outcome looked up, not run again: {call_line(call)}" for call in looked_up]
    return "\n".join(lines)


def call_line(call: ToolCallView) -> str:
    """Write a tool call on one line."""
    texts = {name: value for name, value in call["arguments"].items() if isinstance(value, str)}
    return f"{call['tool']} {one_line(' '.join(call_words(texts)), WIDE)}"


def announce_saved(event: SavedQueuesEvent, now: float, *, can_utf8: bool = True) -> str:
    """Return the lines that announce the saved queues of its folder to a new session."""
    saved = event["saved"]
    if len(saved) == 1:
        return announce(saved[0], now, can_utf8=can_utf8)
    has_more = event.get("more", False)
    count = f"more than {len(saved)}" if has_more else f"{len(saved)}"
    found = f"Found saved queues of {count} sessions (not auto-resuming)"
    return "\n".join(
        (
            f"📥 {found}" if can_utf8 else found,
            *choices(saved, now),
            *(["`/queue restore --list` lists all"] if has_more else []),
            "Use `/queue restore ID` to go to one, `/queue resume ID` to continue it, "
            "or `/queue discard ID` to delete it",
        )
    )


def choices(saved: Sequence[SavedQueueView], now: float) -> Iterator[str]:
    """Give a line about each of these saved queues: its session, and its first item."""
    for found in saved:
        how = "crashed" if found["cause"] == "crash" else "left"
        ago, children = _since(found["last_active"], now), found.get("children", [])
        lines = (*map(item_line, found["items"]), *(f"subagent {name}" for name in children))
        name, first = f" {found['name']}" if found["name"] else "", lines[0]
        count = counted(len(lines), "item")
        yield f"{found['session']}{name}, {how} {ago}, {count}: {one_line(first, WIDE)}"


def _since(moment: str, now: float) -> str:
    return age(max(0.0, now - datetime.fromisoformat(moment).timestamp()))
