"""The last word of a session, and the threads that wait for it."""

from __future__ import annotations

import threading

from ..journal import entries as e
from ..journal.record import SessionRecord
from ..machines import protocol as m
from .environment import Publication


class Termination:
    """Observes a session until its last entry is durable, and wakes the threads that wait for that."""

    def __init__(self) -> None:
        self._happened = threading.Event()

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Note the last entry; any other one says that the session goes on."""
        is_last = isinstance(entry, e.SessionSuspended | e.SessionFinalized)
        return self._happened.set if is_last else self._happened.clear

    def observe_fact(self, fact: m.Fact) -> None:
        """Note that the journal cannot be written: then there is no last entry."""
        if isinstance(fact, m.StoreLost):
            self._happened.set()

    def wait(self, seconds: float) -> bool:
        """Block until it happened; false if it did not. Not for the loop's own thread."""
        return self._happened.wait(seconds)
