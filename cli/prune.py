"""`steersman sessions prune`: puts what old sessions left into the trash, and empties that of the old."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ..gateway.home.retention import Retention, Swept, queues_folder
from ..gateway.host.host import Host
from ..gateway.launch_options import LaunchOptions
from ..gateway.wording.formats import size_text
from ..journal.workspace.prune import size_of
from ..workflows.config import load
from ..workflows.home_place import storage_of
from ..workflows.paths import Paths
from .output import show, show_document


def prune_sessions(environ: Mapping[str, str], *, with_finalized: bool, as_json: bool) -> int:
    """Sweep the queues, outputs and copies of files of old sessions, or also finalized sessions."""
    paths = Paths.of(environ)
    config = load(paths, Path.cwd(), environ)
    hours = config.auto_queue.persistence.retention_hours
    now, storage = time.time(), storage_of(paths, environ)
    with closing(Host(paths, config, environ, LaunchOptions())) as host:
        queues = list(host.saved_queues.expire(now, hours))
        retention = Retention(host.store, storage, host.trash, now, hours)
        copies = retention.copies(config.checkpoints.budget)
        outputs = retention.outputs()
        deleted = retention.sessions(queues_folder(paths, config)) if with_finalized else Swept()
        retention.thin()
        journal = host.store.compact()
        host.trash.note_start(now)
        has_trash = bool(host.trash.marks())
    if as_json:
        show_document(
            {
                "queues": queues,
                "checkpoints": _view(copies, storage.copies),
                "outputs": _view(outputs, storage.outputs),
                "journal": {"freed": journal},
                "deleted": list(deleted.gone),
                "trashed": list(deleted.new),
            }
        )
        return 0
    lines = [
        *queues,
        *([f"Deleted: {', '.join(deleted.gone)}."] if deleted.gone else []),
        *([f"In the trash now: {', '.join(deleted.new)}."] if deleted.new else []),
        f"Copies of files: {_told(copies)}, {size_text(size_of(storage.copies))} left.",
        f"Outputs of tools: {_told(outputs)}.",
        f"Journal: freed {size_text(journal)}.",
    ]
    if has_trash:
        lines.append(
            "`steersman home trash` shows the trash; with `empty` it frees the space at once."
        )
    show("\n".join(lines))
    return 0


def _view(swept: Swept, place: Path) -> dict[str, object]:
    return {
        "trashed": list(swept.new),
        "sessions": list(swept.gone),
        "freed": swept.freed,
        "left": size_of(place),
    }


def _told(swept: Swept) -> str:
    return (
        f"freed {size_text(swept.freed)} of {session_count(len(swept.gone))}, "
        f"{session_count(len(swept.new))} more in the trash now"
    )


def session_count(number: int) -> str:
    """Write how many sessions: `1 session`, `2 sessions`."""
    return f"{number} session{'s' * (number != 1)}"
