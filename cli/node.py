"""`steersman node`: a program that runs the sessions of a home that need an owner."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from ..gateway.formats import age, iso
from ..gateway.home import named_session, open_store
from ..gateway.hosts import Hosts
from ..gateway.launch_options import LaunchOptions
from ..gateway.node import Node, node_of
from ..gateway.one_shot_client import OneShotClient
from ..journal.lock import host_name
from ..journal.store import NodeRow
from ..machines.errors import SteersmanError, UsageError
from ..workflows.home_folder import home_folder
from ..workflows.paths import Paths
from .output import show, show_document, show_table, warn
from .stored import stored

LOOK_UP = 1.0
"""Seconds after which a node looks whether a signal has come that did not wake it."""
_HEAD = ("NODE", "STATE", "PLACE", "HOST", "PID", "SESSIONS", "CAPACITY", "LAST BEAT")


def run_node(capacity: int, place: str) -> int:
    """Take sessions until a signal, or until the node was drained. Raises `SteersmanError`."""
    paths, over = Paths.of(os.environ), SimpleQueue[None]()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: over.put(None))
    wanted = {"node.place": place, "node.capacity": capacity}
    given = {key: value for key, value in wanted.items() if value}
    launch = LaunchOptions(can_ask=True)
    hosts = Hosts(paths, os.environ, launch, lambda host, event: None, given)
    node: Node | None = None
    try:
        main = hosts.of_folder(home_folder())
        node = node_of(hosts, main, partial(over.put, None), warn)
        node.start()
        show(f"node {node.name} takes sessions of {node.place}")
        _wait(over)
    finally:
        if node is not None:
            node.end()
        hosts.close()
    return 0


def _wait(over: SimpleQueue[None]) -> None:
    """Wait for an item. A signal that comes with SIGCONT may reach another thread: this one looks up."""
    while True:
        with suppress(Empty):
            return over.get(timeout=LOOK_UP)


def list_nodes(*, as_json: bool, is_here: bool = False) -> int:
    """Print the nodes of the home, those that are dead and still own sessions too.

    `is_here`: only those of this machine, with the exit code 1 if none of them takes sessions.
    """
    with stored(os.environ) as store:
        rows = [row for row in store.nodes.rows() if not is_here or row.host == host_name()]
    is_served = any(_state(row) == "active" for row in rows)
    if as_json:
        show_document({"nodes": [_about(row) for row in rows]})
    elif rows:
        now = time.time()
        show_table(_HEAD, [_cells(row, now) for row in rows], os.environ)
    else:
        where = "machine" if is_here else "home"
        warn(f"This {where} has no node; `steersman node` starts one.")
    return 0 if is_served or not is_here else 1


def drain_node(name: str) -> int:
    """Ask a node to drain; it ends when its turns have. Raises `UsageError`."""
    with closing(open_store(Paths.of(os.environ))) as store:
        row = _find(store.nodes.rows(), name)
        if not row.is_alive:
            raise SteersmanError(
                f"node `{row.node}` is dead", "other nodes of its place take its sessions over"
            )
        store.nodes.direct(row.node, "draining")
    show(f"Node {row.node} takes no more sessions; it ends when its {row.sessions} are done.")
    return 0


def evict_session(name: str) -> int:
    """Have the node that has a session give it back. Raises `SteersmanError`."""
    paths = Paths.of(os.environ)
    with stored(os.environ) as store:
        row = named_session(store, name)
        if store.owner(row.session) is None:
            raise SteersmanError(f"no program has session `{row.session}` open")
        OneShotClient(paths, os.environ, store, row.session).call("evict")
    show(f"Session {row.session} was given back; a message to it has it taken again.")
    return 0


def _find(rows: list[NodeRow], name: str) -> NodeRow:
    found = [row for row in rows if row.node.startswith(name)]
    exact = [row for row in found if row.node == name] or found
    if len(exact) == 1:
        return exact[0]
    if not exact:
        raise UsageError(f"there is no node `{name}`", "`steersman node list` shows them")
    raise UsageError(
        f"`{name}` fits several nodes: {', '.join(row.node for row in exact)}", "type more of it"
    )


def _state(row: NodeRow) -> str:
    return row.state if row.is_alive else "dead"


def _about(row: NodeRow) -> dict[str, Any]:
    """Return a node as data for programs; times are ISO 8601, UTC."""
    return {
        "node": row.node,
        "state": _state(row),
        "place": row.place,
        "host": row.host,
        "pid": row.pid,
        "sessions": row.sessions,
        "capacity": row.capacity,
        "since": iso(row.since),
        "last_beat": iso(row.beat),
    }


def _cells(row: NodeRow, now: float) -> tuple[str, ...]:
    return (
        row.node,
        _state(row),
        row.place,
        row.host,
        str(row.pid),
        str(row.sessions),
        str(row.capacity),
        age(now - row.beat),
    )
