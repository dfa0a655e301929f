"""The queues that ended sessions of a home left: read, discarded, expired, and announced to people.

A change of a saved queue does not resume its session: nothing in it runs, and how it ended stays as
it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..actors.agent_profile import AgentProfile
from ..actors.runtime import Runtime
from ..journal.queue_record import ItemRecord
from ..journal.record import SessionRecord
from ..journal.recovery import load_record
from ..journal.store import SessionRow, Store
from ..machines.errors import StoreBusy, StoreDamaged
from ..machines.messages import QueueChange
from ..machines.policy import Policy
from ..machines.value import Value
from .events.translation import EventPublisher, item_view
from .formats import age, call_words, item_line, one_line
from .retention import is_saved, outlived

CUT = 40  # columns of an item's text in a sentence


class Saved(Value):
    """The saved queue of one session: the session's row, and the items that have not ended, in order."""

    row: SessionRow
    items: tuple[ItemRecord, ...]

    def view(self) -> dict[str, Any]:
        """Return the saved queue as programs see it."""
        items = [item_view(item, is_held=item.state == "pending") for item in self.items]
        return {"session": self.row.session, "folder": self.row.folder, "items": items}


class SavedQueues:
    """The saved queues of a runtime's home; not for the loop's own thread."""

    def __init__(
        self, runtime: Runtime, max_queue_size: int, publisher: Callable[[str], EventPublisher]
    ) -> None:
        self._runtime = runtime
        self._policy = Policy(max_queue_size=max_queue_size)
        self._publisher = publisher

    @property
    def store(self) -> Store:
        """The home's store."""
        return self._runtime.store

    def saved(self) -> list[Saved]:
        """List the saved queues of sessions that no live process owns, newest activity first."""
        return [
            found
            for row in self.store.sessions()
            if is_saved(row) and not self.store.is_owned(row.session)
            if (found := self.of(row)).items
        ]

    def newest(self, folder: Path) -> tuple[Saved | None, int]:
        """Return the newest saved queue of a folder, and how many more there may be.

        Reads as few sessions as possible, since every chat starts with this call.
        """
        rows = [
            row
            for row in self.store.sessions()
            if is_saved(row) and row.folder == str(folder) and not self.store.is_owned(row.session)
        ]
        for number, row in enumerate(rows, 1):
            if (found := self.of(row)).items:
                return found, len(rows) - number
        return None, 0

    def of(self, row: SessionRow) -> Saved:
        """Read the saved queue of one session."""
        return Saved(row=row, items=tuple(saved_queue(self.store, row.session)))

    @contextmanager
    def tended(self, session: str) -> Generator[Callable[[Any], dict[str, Any]]]:
        """Own a session's queue without resuming the session; yields a function that asks the session.

        Raises `StoreBusy` if a live process owns the session.
        """
        self._runtime.open_existing(
            session, self._profile, lambda name: (self._publisher(name),), is_offline=True
        )
        try:
            yield lambda message: self._runtime.ask(session, message)
        finally:
            self._runtime.leave(session)

    def discard(self, session: str) -> Saved:
        """Withdraw every item of a session's saved queue, and return the saved queue."""
        with self.tended(session) as ask:
            row = self.store.load(session).row
            found = self.of(row)
            ask(QueueChange(op="clear"))
        return found

    def expire(self, now: float, hours: float) -> Iterator[str]:
        """Discard the saved queues that are older than `hours`; yields a sentence about each."""
        for row in outlived(self.store.sessions(), now, hours):
            if self.store.is_owned(row.session):
                continue
            with contextlib.suppress(StoreBusy, StoreDamaged):  # the new owner reports the queue
                gone = self.discard(row.session)
                texts = "; ".join(f'"{one_line(item.text, CUT, "...")}"' for item in gone.items)
                if gone.items:
                    yield (
                        f"Deleted the saved queue of session {row.session}, last active "
                        f"{age(now - row.updated)} (kept for {hours:g} hours): {texts}"
                    )

    def _profile(self, record: SessionRecord) -> AgentProfile:
        return AgentProfile(
            name=record.agent, model=None, system=record.system, tools=(), policy=self._policy
        )


def saved_queue(store: Store, session: str) -> list[ItemRecord]:
    """Read a session's queue as a resume would find it, without changing it."""
    items = [
        replace(item, state="interrupted") if item.state == "running" else item
        for item in load_record(store, session).queue.live()
    ]
    return sorted(items, key=lambda item: item.state != "interrupted")


# Announcements ------------------------------------------------------------------------------------


def announce(event: Mapping[str, Any], now: float, *, can_utf8: bool = True) -> str:
    """Return the lines that announce the queue of a `recovered` event."""
    items, count = event["items"], len(event["items"])
    found = (
        f"Found saved queue from crashed session ({item_count(count)}, not auto-resuming)"
        if event["cause"] == "crash"
        else f"Found {count} queued item{'s' if count != 1 else ''} from previous session"
        " (not auto-resuming)"
    )
    last = datetime.fromisoformat(event["last_active"]).timestamp()
    return "\n".join(
        (
            f"📥 {found}" if can_utf8 else found,
            f"Last active: {age(max(0.0, now - last))}",
            "Saved items:",
            *(item_line(item) for item in items),
            "Use `/queue restore` to list, `/queue resume` to continue, or `/queue discard` to delete",
            *(_unknown(call) for call in event.get("unknown", ())),
        )
    )


def announce_other(newest: Saved | None, more: int) -> str:
    """Return the line that announces the saved queues of a folder; empty if there is none."""
    if newest is None:
        return ""
    others = f" (and {more} more: `/queue restore --list`)" if more else ""
    name = newest.row.session
    if newest.row.workflow:
        return (
            f"Run {name} of this folder (workflow {newest.row.workflow}) was interrupted: "
            f"`steersman run --resume {name}` continues where it stopped{others}"
        )
    return (
        f"Session {name} of this folder has a saved queue ({item_count(len(newest.items))}): "
        f"`/queue resume {name}` resumes it, `/queue restore {name}` moves it here"
        f"{others}"
    )


def item_count(count: int) -> str:
    """Write how many items: `1 item`, `2 items`."""
    return f"{count} item{'s' if count != 1 else ''}"


def _unknown(call: Mapping[str, Any]) -> str:
    arguments = " ".join(call_words(call["arguments"]))[:60]
    return f"Outcome unknown, not run again: {call['tool']} {arguments}"
