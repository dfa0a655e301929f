"""Moves a home to another store, entry by entry, while no process uses it.

Nothing is removed from where it was. What an interrupted move copied is compared, and the move continues
behind it. A session counts as moved when both journals are equal and fold to the same record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest

from msgspec.structs import replace

from ...journal.commitment import commit_surely
from ...journal.lock import host_name
from ...journal.recovery import load_record
from ...journal.store import Commit, Lease, Loaded, SessionRow, Store
from ...machines.errors import StoreBusy, StoreError, UnknownSession, UsageError
from ..host.offline_writer import BATCH, claimed
from .home import depth_of, whole_row

_NAMED = 5  # sessions that a message names


def move_home(source: Store, target: Store) -> Iterator[tuple[SessionRow, int]]:
    """Copy all sessions, messages and schedules; yields each session with the entries copied now.

    Raises `StoreBusy` if a process has a session of either home open, and `UsageError` if a session of
    the target has another history.
    """
    for store in (source, target):
        if owners := store.owners():
            first = sorted(owners)[:_NAMED]
            raise StoreBusy(
                f"{owners[first[0]].process} has session `{first[0]}` open",
                f"leave all sessions first; open: {', '.join(first)}",
            )
    rows = [whole_row(source, row) for row in source.sessions()]
    parents = {row.session: row.parent for row in rows}
    rows.sort(key=lambda row: (depth_of(row.session, parents), row.created, row.session))
    for row in rows:  # parents first
        with claimed(source, row.session):
            yield row, _move(source, target, row)
    known = {(found.schedule, found.planned) for found in target.occurrences()}
    for watch in source.watches():
        found = [
            occurrence
            for occurrence in source.occurrences()
            if occurrence.schedule == watch.schedule
            and (occurrence.schedule, occurrence.planned) not in known
        ]
        target.note(watch, found)


def _move(source: Store, target: Store, row: SessionRow) -> int:
    loaded = source.load(row.session)
    try:
        known = target.row(row.session)
    except UnknownSession:
        target.create(replace(row, place=row.place or host_name()))
        known = target.row(row.session)
    _compare(source, target, row, known.seq)
    with claimed(target, row.session) as lease:
        _copy_entries(source, target, lease, loaded, known.seq)
        messages = target.unconsumed(row.session)
        there = [(message.lane, message.message) for message in messages]
        for unread in sorted(loaded.unconsumed, key=lambda message: message.id):
            if (unread.lane, unread.message) not in there:  # what an interrupted move has posted
                target.post(unread.session, unread.lane, unread.message, unread.client_id)
    _compare(source, target, row, row.seq)
    if load_record(source, row.session) != load_record(target, row.session):
        raise StoreError(
            f"session `{row.session}` is another one after the move",
            f"Nothing was removed; report this, with `steersman sessions export {row.session}`.",
        )
    return row.seq - known.seq


def _compare(source: Store, target: Store, row: SessionRow, upto: int) -> None:
    """Raise `UsageError` unless both journals have the same entries up to there."""
    ours, theirs = source.entries(row.session, 0, upto), target.entries(row.session, 0, upto)
    if upto > row.seq or any(mine != other for mine, other in zip_longest(ours, theirs)):
        raise UsageError(
            f"session `{row.session}` of the other home has another history",
            "move to an empty home, or delete that session there first",
        )


def _copy_entries(source: Store, target: Store, lease: Lease, loaded: Loaded, after: int) -> None:
    """Copy the entries behind `after`, with the newest snapshot and the row as it is."""
    entries = iter(source.entries(lease.session, after))
    seq = after
    while True:
        batch = list(islice(entries, BATCH))
        if not batch and seq > after:
            return
        seq += len(batch)
        is_last = seq >= loaded.row.seq
        snapshot = loaded.snapshot
        commit = Commit(
            lease=lease,
            entries=batch,
            row=loaded.row,
            snapshot=snapshot if is_last and snapshot and snapshot.seq <= seq else None,
        )
        if commit_surely(target, [commit]) != [True]:
            raise StoreBusy(f"another program has taken over session `{lease.session}`")
        if is_last:
            return
