"""The home's store, for looking only: nothing is created, claimed or changed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from ..journal.sqlite import SqliteStore
from ..journal.store import SessionRow
from ..workflows.paths import Paths


@contextmanager
def stored(environ: Mapping[str, str]) -> Generator[SqliteStore]:
    """Open the store of the home for reading, and close it. Raises `StoreError`."""
    store = SqliteStore.open(Paths.of(environ).state, read_only=True)
    try:
        yield store
    finally:
        store.close()


def state_word(row: SessionRow, *, is_owned: bool) -> str:
    """Say how a session is: running (a live process owns it), suspended, finalized or crashed.

    A workflow's run that was left in order is as it ended: succeeded, failed or interrupted.
    """
    if is_owned:
        return "running"
    if row.state == "suspended" and row.run in ("succeeded", "failed", "interrupted"):
        return row.run
    return row.state if row.state in ("suspended", "finalized") else "crashed"
