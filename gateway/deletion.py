"""Deletes a session for good: its journal, its output, its queue's copy, its copies of files.

Its subagents' sessions go with it. What a live process has open is not deleted.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from ..journal.sqlite import SqliteStore
from ..journal.store import SessionRow
from ..journal.workspace.prune import forget, size_of
from .scribe import claimed


def family(rows: list[SessionRow], session: str) -> list[str]:
    """Return a session and all that are beneath it, parents first."""
    found = [session]
    for one in found:
        found += [row.session for row in rows if row.parent == one and row.session not in found]
    return found


def delete(store: SqliteStore, state: Path, queues: Path, session: str) -> tuple[list[str], int]:
    """Delete a session and those beneath it; returns their ids, and the bytes of the files that went.

    Raises `StoreBusy` when a live process has one of them open: then nothing is deleted.
    """
    ids = family(store.sessions(), session)
    with ExitStack() as held:
        leases = [held.enter_context(claimed(store, one)) for one in ids]
        for lease in reversed(leases):  # a parent that is left can be deleted again
            store.delete(lease)
    freed = 0
    for one in ids:
        output = output_of(state, one)
        freed += size_of(output)
        shutil.rmtree(output, ignore_errors=True)
        (queues / f"{one}.toml").unlink(missing_ok=True)
    return ids, freed + forget(state / "workspaces", ids)


def output_of(state: Path, session: str) -> Path:
    """Return the folder of a session's long outputs."""
    return state / "output" / session
