"""The home's store, read-only: nothing is created, claimed or changed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from ..gateway.home.home import open_store
from ..journal.store import SessionRow, Store
from ..journal.workspace.prune import size_of, sizes_of
from ..workflows.home_place import Storage
from ..workflows.paths import Paths


@contextmanager
def stored(environ: Mapping[str, str]) -> Generator[Store]:
    """Open the store of the home for reading, and close it. Raises `StoreError`."""
    store = open_store(Paths.of(environ), read_only=True)
    try:
        yield store
    finally:
        store.close()


def state_word(row: SessionRow, *, is_owned: bool) -> str:
    """Name a session's state: running (a live process owns it), suspended, finalized or crashed.

    One whose process failed before its first entry, as on a full disk, never began: it holds nothing.
    The state of a workflow's run that has ended is its result: succeeded, failed or interrupted.
    """
    if is_owned:
        return "running"
    if row.is_damaged:
        return "damaged"
    if not row.seq:
        return "never began"
    if row.state == "suspended" and row.run in ("succeeded", "failed", "interrupted"):
        return row.run
    return row.state if row.state in ("suspended", "finalized") else "crashed"


def disk_use(store: Store, storage: Storage) -> dict[str, int]:
    """Return the bytes of each session by id: its journal, long outputs and copies of files."""
    sizes = store.sizes()
    for session, size in sizes_of(storage.copies).items():
        sizes[session] = sizes.get(session, 0) + size
    outputs = storage.outputs
    for folder in outputs.iterdir() if outputs.is_dir() else ():
        sizes[folder.name] = sizes.get(folder.name, 0) + size_of(folder)
    return sizes
