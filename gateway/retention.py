"""How long saved queues are kept: by the clock, and by what the home remembers of it.

A clock alone can't be trusted with deleting: one that jumped a year ahead would make everything old.
So only time that the home's own activity vouches for counts: a gap of more than `LEAP` seconds
between two things that happened counts as nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from ..journal.sqlite import SqliteStore
from ..journal.store import SessionRow, Store
from ..journal.workspace.prune import forget, size_of
from .offline_writer import claimed

# Deletes a session: its journal, its output, its queue's copy, its copies of files
# Its subagents' sessions go with it. What a live process has open is not deleted.


def family(rows: list[SessionRow], session: str) -> list[str]:
    """Return a session and all that are beneath it, parents first."""
    found = [session]
    for parent in found:
        found += [row.session for row in rows if row.parent == parent and row.session not in found]
    return found


def delete(store: SqliteStore, state: Path, queues: Path, session: str) -> tuple[list[str], int]:
    """Delete a session and those beneath it; returns their ids, and the bytes of the files that went.

    Raises `StoreBusy` when a live process has one of them open: then nothing is deleted.
    """
    ids = family(store.sessions(), session)
    with ExitStack() as held:
        leases = [held.enter_context(claimed(store, member)) for member in ids]
        for lease in reversed(leases):  # a parent that is left can be deleted again
            store.delete(lease)
    freed = 0
    for member in ids:
        output = output_of(state, member)
        freed += size_of(output)
        shutil.rmtree(output, ignore_errors=True)
        (queues / f"{member}.toml").unlink(missing_ok=True)
    return ids, freed + forget(state / "workspaces", ids)


def output_of(state: Path, session: str) -> Path:
    """Return the folder of a session's long outputs."""
    return state / "output" / session


LEAP = 60 * 86_400.0


def is_saved(row: SessionRow) -> bool:
    """Whether something waits or was cut off in a session, as far as its row tells."""
    if row.seq == 0 or row.parent or row.state in ("finalizing", "finalized"):
        return False
    return bool(row.waiting or row.interrupted) or row.state in ("busy", "leaving")


def known_age(updated: float, moments: Sequence[float], now: float) -> float:
    """Return the seconds that have passed since `updated`, without leaps of the clock."""
    later = sorted(moment for moment in moments if updated < moment < now)
    gaps = [after - before for before, after in pairwise((updated, *later, now))]
    return sum(gap for gap in gaps if 0.0 < gap <= LEAP)


def outlived(rows: Sequence[SessionRow], now: float, hours: float) -> list[SessionRow]:
    """Pick the sessions whose saved queue nothing has touched for more than `hours`."""
    moments = [moment for row in rows for moment in (row.created, row.updated)]
    return [
        row
        for row in rows
        if is_saved(row) and known_age(row.updated, moments, now) > hours * 3600.0
    ]


def needs_copies(store: Store) -> Callable[[str], bool]:
    """Say of which sessions the copies of files must stay: those that are open or can be resumed."""
    saved = {row.session for row in store.sessions() if is_saved(row)}
    return lambda session: session in saved or store.is_owned(session)
