"""The home's store, read-only: nothing is created, claimed or changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from ..gateway.home.home import open_store
from ..journal.store import Store
from ..workflows.home_place import Storage
from ..workflows.paths import Paths
from ..workspace.prune import size_of, sizes_of


def stored(environ: Mapping[str, str]) -> closing[Store]:
    """Open the store of the home for reading; the block closes it. Raises `StoreError`."""
    return closing(open_store(Paths.of(environ), read_only=True))


def disk_use(store: Store, storage: Storage) -> dict[str, int]:
    """Return the bytes of each session by id: its journal, long outputs and copies of files."""
    sizes = store.sizes()
    for session, size in sizes_of(storage.copies).items():
        sizes[session] = sizes.get(session, 0) + size
    outputs = storage.outputs
    for folder in outputs.iterdir() if outputs.is_dir() else ():
        sizes[folder.name] = sizes.get(folder.name, 0) + size_of(folder)
    return sizes
