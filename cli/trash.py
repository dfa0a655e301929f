"""`steersman home trash`: lists what age or a budget put into it, restores that, or deletes it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ..gateway.home.retention import Retention, moments_of, queues_folder
from ..gateway.home.trash import DAY, NEVER, Mark, Trash
from ..gateway.host.host import Host
from ..gateway.launch_options import LaunchOptions
from ..gateway.views.restore_service import RestoreService
from ..gateway.wording.formats import iso
from ..gateway.wording.redaction import redactor_of
from ..journal.workspace.prune import kept_in
from ..machines.errors import UsageError
from ..workflows.config import load
from ..workflows.home_place import storage_of
from ..workflows.paths import Paths
from .output import show, show_document, show_table, warn
from .stored import stored

_HEAD = ("ID", "WHAT", "WHY", "LAST USED", "GOES AFTER", "FOLDER")
_WHAT = {
    "queue": "nothing waits in it",
    "copies": "copies of files, for /revert",
    "outputs": "long outputs of tools",
    "session": "the whole session, finalized",
    "agent": "",
}


def trash(environ: Mapping[str, str], what: Sequence[str], *, is_sure: bool, as_json: bool) -> int:
    """Carry out `home trash [restore ID | empty]`. Raises `UsageError`."""
    match tuple(what):
        case ():
            return _list(environ, as_json=as_json)
        case ("restore", name):
            return _restore(environ, name, as_json=as_json)
        case ("empty",):
            return _empty(environ, is_sure=is_sure, as_json=as_json)
        case _:
            raise UsageError(f"`{' '.join(what)}` is no order", "`restore ID` or `empty`")


def _list(environ: Mapping[str, str], *, as_json: bool) -> int:
    paths, now = Paths.of(environ), time.time()
    there = Trash(paths.state)
    with stored(environ) as store:
        moments = moments_of(store.sessions(), there)
    marks = [mark for mark in there.marks().values() if not mark.is_restored]
    redactor = redactor_of(environ)
    views = [redactor.data(_view(mark, mark.left(moments, now))) for mark in marks]
    if as_json:
        show_document({"trash": views})
        return 0
    if not views:
        warn("The trash is empty.")
        return 0
    cells = [
        (
            view["id"],
            redactor.line(view["what"]),
            view["why"],
            view["last_used"] or "-",
            f"{view['days_left']:g} days of use",
            redactor.line(view["folder"]),
        )
        for view in views
    ]
    show_table(_HEAD, cells, environ)
    show("`steersman home trash restore ID` restores one; until it goes, all of it can be used.")
    return 0


def _view(mark: Mark, left: float) -> dict[str, Any]:
    """Return a mark as data for programs; `days_left` are days on which the home is used."""
    thing = mark.thing
    return {
        "id": thing.id,
        "kind": thing.kind,
        "of": thing.of,
        "what": thing.what or _WHAT[thing.kind],
        "why": mark.why,
        "folder": thing.where,
        "last_used": iso(thing.used) if thing.used else None,
        "since": iso(mark.since),
        "days_left": round(max(0.0, left) / DAY, 1),
    }


def _restore(environ: Mapping[str, str], name: str, *, as_json: bool) -> int:
    paths = Paths.of(environ)
    there = Trash(paths.state)
    mark = there.named(name)
    thing = mark.thing
    if thing.kind == "copies":  # the budget takes the least recently used first
        for kept in kept_in(storage_of(paths, environ).copies):
            if kept.session == thing.of:
                os.utime(kept.store / f"ledger-{kept.session}.jsonl")
        there.take_out(thing)
    else:
        there.restore(mark, time.time())
    if as_json:
        show_document({"restored": thing.id, "of": thing.of})
    else:
        show(f"{thing.id} is no longer in the trash.")
    return 0


def _empty(environ: Mapping[str, str], *, is_sure: bool, as_json: bool) -> int:
    paths = Paths.of(environ)
    count = len([mark for mark in Trash(paths.state).marks().values() if not mark.is_restored])
    if not is_sure and not (sys.stdin.isatty() and _confirmed(count)):
        raise UsageError("nothing was deleted", "`steersman home trash empty --yes` does not ask")
    done = dict(_emptied(environ, paths))
    if as_json:
        show_document({"deleted": {kind: list(names) for kind, names in done.items()}})
    else:
        show(f"Deleted: {', '.join(f'{k}-{name}' for k, names in done.items() for name in names)}.")
    return 0


def _confirmed(count: int) -> bool:
    warn(f"Delete all {count} things in the trash permanently? Type `empty`:")
    return sys.stdin.readline().strip() == "empty"


def _emptied(environ: Mapping[str, str], paths: Paths) -> Iterator[tuple[str, Sequence[str]]]:
    """Delete all that is in the trash; what is open stays. Yields each kind with its sessions."""
    config, now = load(paths, Path.cwd(), environ), time.time()
    with closing(Host(paths, config, environ, LaunchOptions())) as host:
        host.trash.is_emptied = True
        before = host.trash.holds("queue")
        for notice in host.saved_queues.expire(now, NEVER):
            warn(notice)
        yield "queue", sorted(before.keys() - host.trash.holds("queue").keys())
        storage = storage_of(paths, environ)
        hours = config.auto_queue.persistence.retention_hours
        retention = Retention(host.store, storage, host.trash, now, hours, by_age=False)
        yield "copies", retention.copies(config.checkpoints.budget).gone
        yield "outputs", retention.outputs().gone
        yield "session", retention.sessions(queues_folder(paths, config)).gone
        host.store.compact()
    service = RestoreService(paths, NEVER)
    service.trash.is_emptied = True
    before = service.trash.holds("agent")
    for notice in service.expire(now):
        warn(notice)
    yield "agent", sorted(before.keys() - service.trash.holds("agent").keys())
