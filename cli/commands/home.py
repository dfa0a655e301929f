"""`steersman home`: makes a home on PostgreSQL, moves, checks and salvages homes; also for the doctor."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from msgspec.structs import asdict

from ...gateway.home.check import Fault, damaged, home_faults
from ...gateway.home.home import open_store, store_at
from ...gateway.home.move import move_home
from ...gateway.home.retention import Retention, moments_of
from ...gateway.home.trash import DAY, NEVER, Mark, Trash
from ...gateway.host.host import Host
from ...gateway.launch_options import LaunchOptions
from ...gateway.views.restore_service import RestoreService
from ...gateway.wording.formats import iso
from ...gateway.wording.redaction import redactor_of
from ...journal.sqlite import SqliteStore
from ...journal.store import NodeRow, Store
from ...machines.errors import SteersmanError, StoreDamaged, UsageError
from ...machines.value import Value
from ...ports.tools.text import counted
from ...workflows.config import load
from ...workflows.home_folder import expanded
from ...workflows.home_place import POSTGRES, home_place, storage_of, without_password
from ...workflows.paths import Paths, make_private
from ...workflows.registry import EXTENSIONS
from ...workspace.prune import kept_in
from ..options import Json, argument, flag, group, option
from ..output import show, show_document, show_either, show_table, warn
from ..stored import stored

SQLITE = "sqlite"
"""Names the state folder as the other home of a move."""

home = group("home", "steersman home check")


@home.command("init")
def init(url: Annotated[str, typer.Argument(help="postgresql://USER@HOST/DATABASE")]) -> None:
    """Make a home in a PostgreSQL database.

    Example: steersman home init postgresql://me@db.example.net/steersman
    """
    is_new, shown = EXTENSIONS.load("postgres").make_home(url), without_password(url)
    show(f"made a home in {shown}" if is_new else f"there is a home in {shown} already")
    if shown != url:
        warn("steersman: the password was visible to all users of this machine while this ran;")
        warn("  `~/.pgpass` or PGPASSFILE keeps it out of command lines and configuration")
    show(f'to use it, set in config.toml: [home] url = "{shown}"')


@home.command("move")
def move(
    to: Annotated[str, option("URL", "the address of a home, or `sqlite`: the state folder")],
) -> None:
    """Copy this home to another store, and compare both; no process may use them.

    Example: steersman home move --to postgresql://me@db.example.net/steersman
    """
    paths = Paths.of(os.environ)
    here = home_place(paths, os.environ).url
    if (to == SQLITE and not here) or to == here:
        raise UsageError("the home is there already", "`steersman home check` says where")
    with closing(open_store(paths)) as source, closing(_other(to, paths)) as target:
        sessions = entries = 0
        for row, copied in move_home(source, target):
            sessions, entries = sessions + 1, entries + copied
            show(f"{row.session}  {counted(row.seq, 'entry')}")
    show(f"{counted(sessions, 'session')} compared, {counted(entries, 'entry')} copied now")
    where = "" if to == SQLITE else to
    shown = without_password(where) if where else ""
    show(f'to use it, set in config.toml: [home] url = "{shown}"; nothing was removed here')


def _other(to: str, paths: Paths) -> Store:
    if to == SQLITE:
        return SqliteStore.open(make_private(paths.state))
    if "://" not in to:
        raise UsageError(
            f"`{to[:80]}` is no home",
            f"give the address of a home, or `{SQLITE}` for the state folder",
        )
    return store_at(to, paths)


@home.command("check")
def check(as_json: Json = False) -> int:
    """Read every row and file of the home, and report what is damaged, and what to do; exit 1 if any is.

    Example: steersman home check
    """
    paths = Paths.of(os.environ)
    place, sessions, entries, faults = checked_home(paths)
    if not sessions and not faults and not as_json:
        show(f"{place}: there is no session here: none was begun, or the journal is elsewhere")
        return 0
    if as_json:
        show_document(
            {
                "home": place,
                "sessions": sessions,
                "entries": entries,
                "faults": [asdict(fault) for fault in faults],
            }
        )
        return int(bool(faults))
    show(f"{place}: {counted(sessions, 'session')}, {counted(entries, 'entry')}")
    for fault in faults:
        warn(fault_line(fault, place))
        warn(f"  {fault.next}")
    show("every journal can be read" if not faults else f"damaged: {counted(len(faults), 'fault')}")
    return int(bool(faults))


def checked_home(paths: Paths) -> tuple[str, int, int, list[Fault]]:
    """Check the home; returns where it is, how many sessions and entries it has, and what is damaged."""
    url = home_place(paths, os.environ).url
    shown = without_password(url) if url else str(paths.state)
    try:
        with closing(open_store(paths, read_only=True)) as store:
            rows = store.sessions()
            faults = list(home_faults(store, shown, paths, storage_of(paths, os.environ)))
    except StoreDamaged as error:
        return shown, 0, 0, [damaged(error, shown)]
    return shown, len(rows), sum(row.seq for row in rows), faults


def fault_line(fault: Fault, place: str) -> str:
    """Say where a fault is and what it is, on one line; the home itself goes without saying."""
    where = [] if fault.place == place else [fault.place]
    where += [f"{fault.table} {fault.row}".strip()] if fault.table else []
    return ": ".join([*where, fault.what])


@home.command("salvage")
def salvage(
    to: Annotated[
        Path | None, argument("[TO]", "A new folder; if left out, beside the state folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write what can be read of a damaged home into a new one; the old one stays as it is.

    Example: steersman home salvage ~/steersman-salvaged
    """
    from ...gateway.home.salvage import salvage_home

    paths = Paths.of(os.environ)
    if home_place(paths, os.environ).url:
        raise UsageError("only a home in SQLite can be salvaged", "restore the server's backup")
    target = expanded(to or Path(f"{paths.state}-salvaged")).absolute()
    report = salvage_home(paths, target)
    if as_json:
        show_document({"home": str(target), **asdict(report)})
        return
    for line in report.lost:
        warn(line)
    show(
        f"{target}: {counted(len(report.saved), 'session')}, {counted(report.entries, 'entry')}, "
        f"{report.messages} unread messages; lost: {len(report.lost) or 'nothing'}"
    )
    show(f"to look at it: STEERSMAN_HOME={shlex.quote(str(target))} steersman sessions list")
    show(f"nothing was changed in {paths.state}")


_HEAD = ("ID", "WHAT", "WHY", "LAST USED", "GOES AFTER", "FOLDER")
_WHAT = {
    "queue": "nothing waits in it",
    "copies": "copies of files, for /revert",
    "outputs": "long outputs of tools",
    "session": "the whole session, finalized",
    "agent": "",
}


@home.command("trash")
def trash(
    what: Annotated[
        list[str] | None, argument("[restore ID|empty]", "If left out, list what is in it.")
    ] = None,
    yes: Annotated[bool, flag("--yes", "Empty it without asking.")] = False,
    as_json: Json = False,
) -> None:
    """List what age or a budget put into the trash, restore it, or delete it now.

    Example: steersman home trash restore queue-9f3a01c2
    """
    what = what or []
    match tuple(what):
        case ():
            _list(as_json=as_json)
        case ("restore", name):
            _restore(name, as_json=as_json)
        case ("empty",):
            _empty(is_sure=yes, as_json=as_json)
        case _:
            raise UsageError(f"`{' '.join(what)}` is no order", "`restore ID` or `empty`")


def _list(*, as_json: bool) -> None:
    paths, now = Paths.of(os.environ), time.time()
    there = Trash(paths.state)
    with stored(os.environ) as store:
        moments = moments_of(store, there)
    marks = [mark for mark in there.marks().values() if not mark.is_restored]
    redactor = redactor_of(os.environ)
    views = [redactor.data(_view(mark, mark.left(moments, now))) for mark in marks]
    if as_json:
        show_document({"trash": views})
        return
    if not views:
        warn("The trash is empty.")
        return
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
    show_table(_HEAD, cells)
    show("`steersman home trash restore ID` restores one; until it goes, all of it can be used.")


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


def _restore(name: str, *, as_json: bool) -> None:
    paths = Paths.of(os.environ)
    there = Trash(paths.state)
    mark = there.named(name)
    thing = mark.thing
    if thing.kind == "copies":  # the budget takes the least recently used first
        for kept in kept_in(storage_of(paths, os.environ).copies):
            if kept.session == thing.of:
                os.utime(kept.store / f"ledger-{kept.session}.jsonl")
        there.take_out(thing)
    else:
        there.restore(mark, time.time())
    data = {"restored": thing.id, "of": thing.of}
    show_either(data, f"{thing.id} is no longer in the trash.", as_json)


def _empty(*, is_sure: bool, as_json: bool) -> None:
    paths = Paths.of(os.environ)
    count = len([mark for mark in Trash(paths.state).marks().values() if not mark.is_restored])
    if not is_sure and sys.stdin.isatty():
        warn(f"Delete all {count} things in the trash permanently? Type `empty`:")
        is_sure = sys.stdin.readline().strip() == "empty"
    if not is_sure:
        raise UsageError("nothing was deleted", "`steersman home trash empty --yes` does not ask")
    done = dict(_emptied(paths))
    gone = ", ".join(f"{kind}-{name}" for kind, names in done.items() for name in names)
    data = {"deleted": {kind: list(names) for kind, names in done.items()}}
    show_either(data, f"Deleted: {gone}.", as_json)


def _emptied(paths: Paths) -> Iterator[tuple[str, Sequence[str]]]:
    """Delete all that is in the trash; what is open stays. Yields each kind with its sessions."""
    config, now = load(paths, Path.cwd(), os.environ), time.time()
    with closing(Host(paths, config, os.environ, LaunchOptions())) as host:
        host.upkeep.trash.is_emptied = True
        before = host.upkeep.trash.holds("queue")
        for notice in host.upkeep.saved_queues.expire(now, NEVER):
            warn(notice)
        yield "queue", sorted(before.keys() - host.upkeep.trash.holds("queue").keys())
        retention = Retention(host, now, by_age=False)
        yield "copies", retention.copies().gone
        yield "outputs", retention.outputs().gone
        yield "session", retention.sessions().gone
        host.store.compact()
    service = RestoreService(paths, NEVER)
    service.trash.is_emptied = True
    before = service.trash.holds("agent")
    for notice in service.expire(now):
        warn(notice)
    yield "agent", sorted(before.keys() - service.trash.holds("agent").keys())


# The doctor's look at the home --------------------------------------------------------------------


Verdict = Literal["ok", "warn", "bad"]


class Finding(Value, kw_only=False):
    """One line of the doctor's report; `hint` is the next step, empty if there is none."""

    name: str
    verdict: Verdict
    text: str
    hint: str = ""


_SKEW = 5.0  # seconds; times in journals are those of the host that wrote them
_OLD = 60.0  # seconds after which an unread message is strange
_SLOW = 1.0  # seconds of a bell


def home_findings() -> Iterator[Finding]:
    """Look at the home that is configured, and check what is in it as `home check` does."""
    paths = Paths.of(os.environ)
    try:
        place, sessions, entries, faults = checked_home(paths)
        for fault in faults:
            yield Finding("contents", "bad", fault_line(fault, place), fault.next)
        if not faults:
            text = f"{sessions} sessions, {entries} entries: all can be read"
            yield Finding("contents", "ok", text)
        url = home_place(paths, os.environ).url
        with closing(open_store(paths, read_only=not url)) as store:
            if not url:
                yield Finding("home", "ok", f"SQLite in {paths.state}")
                yield from _nodes(store.nodes.rows())
                return
            yield from _elsewhere(store, url)
    except SteersmanError as error:
        yield Finding("home", "bad", error.message, error.hint)


def _elsewhere(store: Any, url: str) -> Iterator[Finding]:
    if url.partition(":")[0] not in POSTGRES:
        yield Finding("home", "ok", without_password(url))
        return
    report = store.report()
    text = f"PostgreSQL {report.server} at {without_password(url)}"
    yield Finding("home", "ok", text)
    if report.bell is None:
        text = "a transaction pooler is in between: messages are noticed after up to 0.2 s"
        yield Finding("bell", "warn", text, "use a session pooler, or connect to the server itself")
    else:
        is_slow = report.bell > _SLOW
        text = f"a notification comes back after {1e3 * report.bell:.0f} ms"
        yield Finding("bell", "warn" if is_slow else "ok", text)
    is_off = abs(report.skew) > _SKEW
    text = f"{report.skew:+.1f} s against the server"
    hint = "synchronize the clock of this machine" if is_off else ""
    yield Finding("clock", "warn" if is_off else "ok", text, hint)
    yield _replication(report.replicas)
    yield from _nodes(report.nodes)
    is_old = report.oldest > _OLD
    text = f"{report.unread} unread, the oldest for {report.oldest:.0f} s"
    hint = "start a node of the place of these sessions, or resume them" if is_old else ""
    yield Finding("mail", "warn" if is_old else "ok", text, hint)


def _replication(replicas: Mapping[str, str]) -> Finding:
    if not replicas:
        return Finding("replicas", "ok", "none: what the server's disk loses is lost")
    named = ", ".join(f"{name} ({how})" for name, how in sorted(replicas.items()))
    if {"sync", "quorum"} & set(replicas.values()):
        return Finding("replicas", "ok", named)
    text = f"{named}: a failover may lose what was acknowledged"
    return Finding("replicas", "warn", text, "set `synchronous_standby_names` on the server")


def _nodes(rows: Sequence[NodeRow]) -> Iterator[Finding]:
    for row in rows:
        about = f"{row.node} on {row.host}, place {row.place}, {row.sessions} sessions"
        if row.is_alive:
            yield Finding("node", "ok", f"{about}, {row.state}")
        else:
            hint = "another node of its place takes its sessions over" if row.sessions else ""
            yield Finding("node", "warn", f"{about}, dead", hint)
