"""`steersman sessions prune`: free what sessions that ended long ago still take."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ..gateway.host import Host, Wish
from ..gateway.terminal import clean
from ..journal.workspace.prune import prune
from ..workflows.config import load
from ..workflows.paths import Paths
from .page import show, show_document

__all__ = ["prune_sessions"]


def prune_sessions(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Delete outlived saved queues, and the copies of files that outlived sessions had changed."""
    paths = Paths.of(environ)
    config = load(paths, Path.cwd(), environ)
    hours = config.auto_queue.persistence.retention_hours
    with closing(Host(paths, config, environ, Wish())) as host:
        queues = list(host.shelf.expire(time.time(), hours))
        place, store = paths.state / "workspaces", host.store
        pruned = prune(place, store.is_owned, time.time(), hours * 3600.0)
    if as_json:
        data = {"sessions": list(pruned.sessions), "freed": pruned.freed, "left": pruned.left}
        show_document({"queues": queues, "checkpoints": data})
        return 0
    freed, left = (f"{size / (1 << 20):.1f} MiB" for size in (pruned.freed, pruned.left))
    count = len(pruned.sessions)
    things = "session" if count == 1 else "sessions"
    said = f"Copies of files: freed {freed} of {count} {things}, {left} left."
    show(clean("\n".join([*queues, said])))
    return 0
