"""Writes into the journal of a session that nobody runs: its lease is taken for a moment, and given back.

For what concerns a session as a thing (its name, a copy of it), not what it does.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from ..actors.commits import row_of
from ..journal.codec import encode_entry
from ..journal.entry import Entry
from ..journal.record import SessionRecord, apply
from ..journal.recovery import load_record, snapshot
from ..journal.store import Commit, Lease, Store, StoredEntry
from ..machines.errors import LeaseLost, StoreBusy

__all__ = ["Scribe", "claimed", "writing"]


class Scribe:
    """Appends entries to one session, whose `record` it keeps; each call is durable when it returns."""

    def __init__(self, store: Store, lease: Lease, record: SessionRecord) -> None:
        self._store, self._lease, self.record = store, lease, record

    def write(self, time: float, *entries: Entry) -> None:
        """Append what happened at a time, in seconds since the epoch."""
        seq = self.record.seq
        self.keep(
            [
                (StoredEntry(seq + at, time, encode_entry(one)), one)
                for at, one in enumerate(entries, 1)
            ]
        )

    def keep(
        self, entries: Iterable[tuple[StoredEntry, Entry]], *, with_snapshot: bool = False
    ) -> None:
        """Append entries as they were stored elsewhere. Raises `LeaseLost`, `StoreDamaged`."""
        kept: list[StoredEntry] = []
        for stored, entry in entries:
            apply(self.record, entry, stored.seq, stored.time)
            kept.append(stored)
        made = snapshot(self.record) if with_snapshot else None
        (is_done,) = self._store.commit(
            [Commit(self._lease, kept, row_of(self.record), snapshot=made)]
        )
        if not is_done:
            raise LeaseLost(f"another program has taken session `{self.record.id}` over")


@contextmanager
def claimed(store: Store, session: str) -> Generator[Lease]:
    """Take a session's lease. Raises `StoreBusy` when a live process has it."""
    lease = store.claim(session, f"n{os.getpid()}-{secrets.token_hex(4)}")
    if lease is None:
        owner = store.owner(session)
        who = f"process {owner.pid}" if owner else "another program"
        raise StoreBusy(f"{who} has session `{session}` open", "leave it there first")
    try:
        yield lease
    finally:
        store.release(lease)


@contextmanager
def writing(store: Store, session: str) -> Generator[Scribe]:
    """Write into a session that nobody has open."""
    with claimed(store, session) as lease:
        record = load_record(store, session)
        record.id = session
        yield Scribe(store, lease, record)
