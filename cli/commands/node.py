"""`steersman node`: a program that runs the sessions of a home that need an owner."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Annotated, Any

import typer

from ...gateway.home.home import named_session, open_store
from ...gateway.host.node import Node
from ...gateway.hosts import Hosts
from ...gateway.launch_options import LaunchOptions
from ...gateway.reach import SessionReach
from ...gateway.wording.formats import age, iso
from ...journal.lock import host_name
from ...journal.store import NodeRow
from ...machines.errors import SteersmanError, UsageError
from ...workflows.home_folder import home_folder
from ...workflows.paths import Paths
from ..options import Json, argument, group, option
from ..output import show, show_document, show_table, warn
from ..stored import stored

LOOK_UP = 1.0
"""Seconds after which a node looks whether a signal has come that did not wake it."""
_COLUMNS = ("node", "state", "place", "host", "pid", "sessions", "capacity")

node = group("node", "steersman node --capacity 20 --place repo-a", is_command=True)


@node.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    capacity: Annotated[int, option("N", "Sessions at a time; 0: as configured.", min=0)] = 0,
    place: Annotated[str, option("NAME", "Whose files are here; else as configured.")] = "",
) -> None:
    """Take sessions whose owner has died, or to which something was sent."""
    if context.invoked_subcommand is not None:
        return
    paths, over = Paths.of(os.environ), SimpleQueue[None]()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: over.put(None))
    wanted = {"node.place": place, "node.capacity": capacity}
    given = {key: value for key, value in wanted.items() if value}
    launch = LaunchOptions(can_ask=True)
    hosts = Hosts(paths, os.environ, launch, given)
    node: Node | None = None
    try:
        main = hosts.of_folder(home_folder())
        node = Node(hosts, main, partial(over.put, None), warn)
        node.start()
        show(f"node {node.name} takes sessions of {node.place}")
        is_over = False
        while not is_over:  # a signal that comes with SIGCONT may reach another thread: look up
            with suppress(Empty):
                over.get(timeout=LOOK_UP)
                is_over = True
    finally:
        if node is not None:
            node.end()
        hosts.close()


@node.command("list")
def show_all(as_json: Json = False) -> None:
    """List the nodes of the home.

    Example: steersman node list --json
    """
    with stored(os.environ) as store:
        _show(store.nodes.rows(), "home", as_json=as_json)


@node.command()
def status(as_json: Json = False) -> int:
    """Show the nodes of this machine; exit code 1 unless one takes sessions. For probes.

    Example: steersman node status
    """
    with stored(os.environ) as store:
        rows = [row for row in store.nodes.rows() if row.host == host_name()]
    _show(rows, "machine", as_json=as_json)
    return 0 if any(_state(row) == "active" for row in rows) else 1


def _show(rows: Sequence[NodeRow], where: str, *, as_json: bool) -> None:
    """Print nodes, those that are dead and still own sessions too."""
    views, now = [_about(row) for row in rows], time.time()
    if as_json:
        show_document({"nodes": views})
    elif rows:
        head = [*(name.upper() for name in _COLUMNS), "LAST BEAT"]
        cells = [
            [*(str(view[name]) for name in _COLUMNS), age(now - row.beat)]
            for view, row in zip(views, rows, strict=True)
        ]
        show_table(head, cells)
    else:
        warn(f"This {where} has no node; `steersman node` starts one.")


@node.command()
def drain(
    name: Annotated[str, argument("NODE", "A node, or how its name begins.")],
) -> None:
    """Let a node end its turns, give its sessions back, and end.

    Example: steersman node drain n4711
    """
    with closing(open_store(Paths.of(os.environ))) as store:
        row = _find(store.nodes.rows(), name)
        if not row.is_alive:
            raise SteersmanError(
                f"node `{row.node}` is dead", "other nodes of its place take its sessions over"
            )
        store.nodes.direct(row.node, "draining")
    show(f"Node {row.node} takes no more sessions; it ends when its {row.sessions} are done.")


@node.command()
def evict(
    session: Annotated[str, argument("SESSION", "A session, or `last`.")],
) -> None:
    """Have a node give a session back: what runs is interrupted, everything is kept.

    Example: steersman node evict last
    """
    paths = Paths.of(os.environ)
    with stored(os.environ) as store:
        row = named_session(store, session)
        if store.owner(row.session) is None:
            raise SteersmanError(f"no program has session `{row.session}` open")
        SessionReach(paths, os.environ, store).remote(row.session).call("evict")
    show(f"Session {row.session} was given back; a message to it has it taken again.")


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
    fields = {name: getattr(row, name) for name in _COLUMNS}
    times = {"since": iso(row.since), "last_beat": iso(row.beat)}
    return {**fields, "state": _state(row), **times}
