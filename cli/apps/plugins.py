"""The command lines of `steersman plugins …`, `steersman gateway …` and `steersman people …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

plugins = typer.Typer(
    help="List what installed packages add.\n\nExample: steersman plugins list",
    no_args_is_help=True,
    rich_markup_mode=None,
)
gateway = typer.Typer(
    help="Run a gateway: chat rooms, or what a package brings.\n\nExample: steersman gateway list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


people = typer.Typer(
    help="Show who may do what in chat rooms.\n\nExample: steersman people check",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@people.callback()
def people_commands() -> None:
    """Keep `check` a command of its own."""


@people.command("check")
def people_check(as_json: Json = False) -> int:
    """List what each person may do, and what is missing; exits 1 if something is.

    Example: steersman people check
    """
    from ..people import check_people

    return check_people(os.environ, as_json=as_json)


@plugins.command("list")
def plugins_list(as_json: Json = False) -> int:
    """Import everything that installed packages add, and list it; exits 1 if something is broken.

    Example: steersman plugins list
    """
    from ..plugins import list_plug_ins

    return list_plug_ins(os.environ, as_json=as_json)


@gateway.command("list")
def gateway_list(as_json: Json = False) -> int:
    """List the gateways, and which of them are configured.

    Example: steersman gateway list
    """
    from ..gateways import list_gateways

    return list_gateways(os.environ, as_json=as_json)


@gateway.command("check")
def gateway_check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A gateway of `gateway list`.")],
    as_json: Json = False,
) -> int:
    """Connect once, and say what was found: the server, the account, each room.

    Example: steersman gateway check irc
    """
    from ..gateways import check_gateway

    return check_gateway(os.environ, name, as_json=as_json)


@gateway.command("run")
def gateway_run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A gateway of `gateway list`.")],
) -> int:
    """Run a gateway until it ends, or until a signal.

    Example: steersman gateway run irc
    """
    from ..gateways import run_gateway

    return run_gateway(os.environ, name)
