"""`steersman sessions prune`: frees the disk space of sessions that ended long ago."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from ..gateway.formats import size_text
from ..gateway.home import open_store
from ..gateway.host import Host
from ..gateway.launch_options import LaunchOptions
from ..gateway.retention import delete, needs_copies
from ..journal.store import SessionRow, Store
from ..journal.workspace.prune import prune, size_of
from ..workflows.config import load
from ..workflows.home_place import Storage, storage_of
from ..workflows.paths import Paths
from .output import show, show_document


def prune_sessions(environ: Mapping[str, str], *, with_finalized: bool, as_json: bool) -> int:
    """Delete saved queues, outputs, snapshots and copies of files of old sessions.

    Conversations stay, except those of finalized sessions if `with_finalized`.
    """
    paths = Paths.of(environ)
    config = load(paths, Path.cwd(), environ)
    hours = config.auto_queue.persistence.retention_hours
    now, storage = time.time(), storage_of(paths, environ)
    with closing(Host(paths, config, environ, LaunchOptions())) as host:
        queues = list(host.saved_queues.expire(now, hours))
        pruned = prune(
            storage.copies,
            needs_copies(host.store),
            now,
            config.checkpoints.budget,
            hours * 3600.0,
        )
    folder = Path(config.auto_queue.persistence.path or paths.state / "queues").expanduser()
    with closing(open_store(paths)) as store:
        old = _expired(store, now - hours * 3600.0)
        gone: list[str] = []
        for row in old if with_finalized else ():
            if row.state == "finalized" and not row.parent:
                gone += delete(store, storage, folder, row.session)[0]
        outputs = _drop_outputs(storage, store, old)
        store.thin([row.session for row in old if row.session not in gone])
        journal = store.compact()
    data = {"sessions": list(pruned.sessions), "freed": pruned.freed, "left": pruned.left}
    if as_json:
        show_document(
            {
                "queues": queues,
                "checkpoints": data,
                "outputs": {"freed": outputs, "left": size_of(paths.state / "output")},
                "journal": {"freed": journal},
                "deleted": gone,
            }
        )
        return 0
    count = len(pruned.sessions)
    things = "session" if count == 1 else "sessions"
    lines = [
        *queues,
        *([f"Deleted: {', '.join(gone)}."] if gone else []),
        f"Copies of files: freed {size_text(pruned.freed)} of {count} {things}, "
        f"{size_text(pruned.left)} left.",
        f"Outputs of tools: freed {size_text(outputs)}.",
        f"Journal: freed {size_text(journal)}.",
    ]
    show("\n".join(lines))
    return 0


def _expired(store: Store, before: float) -> list[SessionRow]:
    """Return the sessions that no process has open and that have not changed since a time."""
    owners = store.owners()
    return [row for row in store.sessions() if row.updated < before and row.session not in owners]


def _drop_outputs(storage: Storage, store: Store, old: Sequence[SessionRow]) -> int:
    """Delete the long outputs of these sessions, and of sessions that no longer exist."""
    kept = {row.session for row in store.sessions()} - {row.session for row in old}
    freed = 0
    outputs = storage.outputs
    for folder in outputs.iterdir() if outputs.is_dir() else ():
        if folder.name not in kept:
            freed += size_of(folder)
            shutil.rmtree(folder, ignore_errors=True)
    return freed
