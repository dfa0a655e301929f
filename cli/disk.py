"""What sessions take on disk: their journal, their long outputs, their copies of files."""

from __future__ import annotations

from pathlib import Path

from ..journal.sqlite import SqliteStore
from ..journal.workspace.prune import size_of, sizes_of


def disk_use(store: SqliteStore, state: Path) -> dict[str, int]:
    """Return the bytes of each session, by its id."""
    sizes = store.sizes()
    for session, size in sizes_of(state / "workspaces").items():
        sizes[session] = sizes.get(session, 0) + size
    outputs = state / "output"
    for folder in outputs.iterdir() if outputs.is_dir() else ():
        sizes[folder.name] = sizes.get(folder.name, 0) + size_of(folder)
    return sizes
