"""How a session was at any of its entries: the newest snapshot before it, and the entries after that.

Nothing is changed. The record comes without its conversation, whose texts only a whole read of the
journal would give; `SessionRecord.spoken` says how long it was.
"""

from __future__ import annotations

from .codec import decode, decode_entry
from .record import SessionRecord, apply, messages_of
from .store import Store, StoredEntry


def record_at(store: Store, session: str, seq: int) -> SessionRecord:
    """Fold a session up to entry `seq`, from the nearest snapshot on."""
    record = _nearest(store, session, seq)
    for stored in store.entries(session, record.seq, seq):
        apply(record, decode_entry(stored.data), stored.seq, stored.time)
    return record


def seq_at(store: Store, session: str, last: int, time: float) -> int:
    """Return the last entry at or before a time (seconds since the epoch); 0 if there was none.

    Found by halving: where a clock was set back in between, it is one of those that would do.
    """
    low, high = 0, last
    while low < high:
        middle = (low + high + 1) // 2
        if entry_at(store, session, middle).time <= time:
            low = middle
        else:
            high = middle - 1
    return low


def entry_at(store: Store, session: str, seq: int) -> StoredEntry:
    """Read one entry, which must be there."""
    (found,) = store.entries(session, seq - 1, seq)
    return found


def _nearest(store: Store, session: str, seq: int) -> SessionRecord:
    kept = store.snapshot(session, seq)
    if kept is None:
        return SessionRecord(id=session)
    record = decode(SessionRecord, kept.state)
    record.seq = kept.seq
    sources: list[int] = kept.state.get("sources", [])
    if sources and not record.spoken:  # an earlier version did not count
        record.spoken = _count(store, session, sources)
    return record


def _count(store: Store, session: str, sources: list[int]) -> int:
    wanted = set(sources)
    return sum(
        len(messages_of(decode_entry(stored.data)))
        for stored in store.entries(session, 0, max(sources))
        if stored.seq in wanted
    )
