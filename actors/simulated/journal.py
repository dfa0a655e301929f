"""The simulator's way to a `MemoryStore`: what was decided is written late, and may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...journal.record import SessionRecord
from ...journal.recovery import snapshot
from ...journal.store import Commit, Lease, SessionRow, Snapshot, Store, StoredEntry
from ...machines.orders import Committed, StoreBroke
from .simulation import Dice

__all__ = ["SimulatedJournal"]


class SimulatedJournal:
    """Gathers what one session decides; `write` is a step of its own, and commits all of it."""

    def __init__(self, store: Store, lease: Lease, dice: Dice, told: Callable[[Any], None]) -> None:
        self.pending: list[StoredEntry] = []
        self.is_broken = False
        self._store, self._lease, self._dice, self._tell = store, lease, dice, told
        self._record = SessionRecord()
        self._snapshot: Snapshot | None = None

    def append(self, entry: StoredEntry, record: SessionRecord) -> None:
        """Take the newest entry of the session."""
        self.pending.append(entry)
        self._record = record
        if self._dice.random() < 0.02:
            self._snapshot = snapshot(record)

    def write(self) -> None:
        """Make durable what has gathered, and say so to the session."""
        record, entries = self._record, self.pending
        self.pending, taken = [], self._snapshot
        self._snapshot = None
        if self.is_broken:
            self._tell(StoreBroke("the disk is full", "make room"))
            return
        row = SessionRow(record.id, record.folder, state=record.state, seq=record.seq)
        commit = Commit(self._lease, entries, row, snapshot=taken)
        (is_owner,) = self._store.commit([commit])
        if is_owner:
            self._tell(Committed(entries[-1].seq))
        else:
            self._tell(StoreBroke("another process has taken this session over", "", True))
