"""`steersman doctor --home`: how a home on PostgreSQL is, and the nodes of any home."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Literal

from ...gateway.home.home import open_store
from ...journal.store import NodeRow
from ...machines.errors import SteersmanError
from ...machines.value import Value
from ...workflows.home_place import POSTGRES, home_place, without_password
from ...workflows.paths import Paths
from .home import checked_home, fault_line

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
    yield from _contents(paths)
    try:
        url = home_place(paths, os.environ).url
        with closing(open_store(paths, read_only=not url)) as store:
            if not url:
                yield Finding("home", "ok", f"SQLite in {paths.state}")
                yield from _nodes(store.nodes.rows())
                return
            yield from _elsewhere(store, url)
    except SteersmanError as error:
        yield Finding("home", "bad", error.message, error.hint)


def _contents(paths: Paths) -> Iterator[Finding]:
    try:
        place, sessions, entries, faults = checked_home(paths)
    except SteersmanError:
        return  # it cannot be reached, which is said next
    for fault in faults:
        yield Finding("contents", "bad", fault_line(fault, place), fault.next)
    if not faults:
        text = f"{sessions} sessions, {entries} entries: all can be read"
        yield Finding("contents", "ok", text)


def _elsewhere(store: Any, url: str) -> Iterator[Finding]:
    if url.partition(":")[0] not in POSTGRES:
        yield Finding("home", "ok", without_password(url))
        return
    report = store.report()
    text = f"PostgreSQL {report.server} at {without_password(url)}"
    yield Finding("home", "ok", text)
    if report.bell is None:
        yield Finding(
            "bell",
            "warn",
            "a transaction pooler is in between: messages are noticed after up to 0.2 s",
            "use a session pooler, or connect to the server itself",
        )
    else:
        is_slow = report.bell > _SLOW
        text = f"a notification comes back after {1e3 * report.bell:.0f} ms"
        yield Finding("bell", "warn" if is_slow else "ok", text)
    is_off = abs(report.skew) > _SKEW
    yield Finding(
        "clock",
        "warn" if is_off else "ok",
        f"{report.skew:+.1f} s against the server",
        "synchronize the clock of this machine" if is_off else "",
    )
    yield _replication(report.replicas)
    yield from _nodes(report.nodes)
    is_old = report.oldest > _OLD
    yield Finding(
        "mail",
        "warn" if is_old else "ok",
        f"{report.unread} unread, the oldest for {report.oldest:.0f} s",
        "start a node of the place of these sessions, or resume them" if is_old else "",
    )


def _replication(replicas: Mapping[str, str]) -> Finding:
    if not replicas:
        return Finding("replicas", "ok", "none: what the server's disk loses is lost")
    named = ", ".join(f"{name} ({how})" for name, how in sorted(replicas.items()))
    if {"sync", "quorum"} & set(replicas.values()):
        return Finding("replicas", "ok", named)
    return Finding(
        "replicas",
        "warn",
        f"{named}: a failover may lose what was acknowledged",
        "set `synchronous_standby_names` on the server",
    )


def _nodes(rows: tuple[NodeRow, ...] | list[NodeRow]) -> Iterator[Finding]:
    for row in rows:
        about = f"{row.node} on {row.host}, place {row.place}, {row.sessions} sessions"
        if row.is_alive:
            yield Finding("node", "ok", f"{about}, {row.state}")
        else:
            hint = "another node of its place takes its sessions over" if row.sessions else ""
            yield Finding("node", "warn", f"{about}, dead", hint)
