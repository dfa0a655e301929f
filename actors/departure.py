"""The last word of a session, and whoever waits for it."""

from __future__ import annotations

import threading
from typing import Any

from ..journal import entries as e
from ..journal.record import SessionRecord
from ..machines.facts import Fact, StoreLost
from .environment import Ears


class Departure:
    """Ears that pass everything on, and notice when a session's last word is durable."""

    def __init__(self, ears: Ears) -> None:
        self._ears = ears
        self._happened = threading.Event()

    def hear(self, entry: Any, seq: int, time: float, record: SessionRecord) -> tuple[Any, ...]:
        """Translate an entry, with a mark of our own behind the last."""
        told = self._ears.hear(entry, seq, time, record)
        is_last = isinstance(entry, e.SessionSuspended | e.SessionFinalized)
        return (*told, self) if is_last else told

    def tell(self, told: tuple[Any, ...]) -> None:
        """Say it, apart from the mark."""
        self._ears.tell(tuple(one for one in told if one is not self))
        if self in told:
            self._happened.set()

    def pass_on(self, fact: Fact) -> None:
        """Say something that is not journalled; without a journal there is no last word."""
        self._ears.pass_on(fact)
        if isinstance(fact, StoreLost):
            self._happened.set()

    def wait(self, seconds: float) -> bool:
        """Block until it happened; false if it did not. Not for the loop's own thread."""
        return self._happened.wait(seconds)
