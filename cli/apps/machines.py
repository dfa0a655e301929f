"""The command line of `steersman machines …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

machines = typer.Typer(
    help="Show and check the state machines.\n\nExample: steersman machines show turn",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@machines.command("list")
def machines_list(as_json: Json = False) -> int:
    """List the machines.

    Example: steersman machines list
    """
    from ..machines import list_machines

    return list_machines(as_json=as_json)


@machines.command("show")
def machines_show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A machine; `steersman machines list` names them.")
    ],
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="mermaid, svg or toml.")
    ] = "mermaid",
    session: Annotated[
        str, typer.Option("--session", metavar="ID", help="Highlight the state of a session.")
    ] = "",
) -> int:
    """Print a machine as a diagram or as data.

    Example: steersman machines show turn
    """
    from ..machines import show_machine

    return show_machine(os.environ, name, form, session)


@machines.command("check")
def machines_check(as_json: Json = False) -> int:
    """Check all machines: dead ends, unreachable states, unhandled control events.

    Example: steersman machines check
    """
    from ..machines import check_machines

    return check_machines(as_json=as_json)
