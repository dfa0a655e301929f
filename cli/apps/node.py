"""`steersman node`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json

node = typer.Typer(
    help="Run sessions of the home that need an owner, until Ctrl-C or `node drain`.\n\n"
    "Example: steersman node --capacity 20 --place repo-a",
    rich_markup_mode=None,
)


@node.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    capacity: Annotated[
        int, typer.Option(metavar="N", min=0, help="Sessions at a time; 0: as configured.")
    ] = 0,
    place: Annotated[
        str, typer.Option(metavar="NAME", help="Whose files are here; else as configured.")
    ] = "",
) -> int:
    """Take sessions whose owner has died, or to which something was sent."""
    if context.invoked_subcommand is not None:
        return 0
    from ..node import run_node

    return run_node(capacity, place)


@node.command("list")
def show_all(as_json: Json = False) -> int:
    """List the nodes of the home.

    Example: steersman node list --json
    """
    from ..node import list_nodes

    return list_nodes(as_json=as_json)


@node.command()
def status(as_json: Json = False) -> int:
    """Show the nodes of this machine; exit code 1 unless one takes sessions. For probes.

    Example: steersman node status
    """
    from ..node import list_nodes

    return list_nodes(as_json=as_json, is_here=True)


@node.command()
def drain(
    name: Annotated[str, typer.Argument(metavar="NODE", help="A node, or how its name begins.")],
) -> int:
    """Let a node end its turns, give its sessions back, and end.

    Example: steersman node drain n4711
    """
    from ..node import drain_node

    return drain_node(name)


@node.command()
def evict(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session, or `last`.")],
) -> int:
    """Have a node give a session back: what runs is interrupted, everything is kept.

    Example: steersman node evict last
    """
    from ..node import evict_session

    return evict_session(session)
