"""`steersman devices`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json

devices = typer.Typer(
    help="Pair devices and programs with `steersman serve`, and shut them out.\n\n"
    "Example: steersman devices pair phone",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the device is called.")]


@devices.command()
def pair(
    name: Name,
    scope: Annotated[
        str, typer.Option(metavar="SCOPE", help="look, speak (and look) or approve (everything).")
    ] = "approve",
    token: Annotated[
        bool, typer.Option("--token", help="Print a bearer token, for a program.")
    ] = False,
) -> int:
    """Print a code, valid once and for ten minutes, with which a browser is paired.

    Example: steersman devices pair phone --scope speak
    """
    from ..devices import pair as offer

    return offer(name, scope, is_token=token)


@devices.command("list")
def show_all(as_json: Json = False) -> int:
    """List the devices.

    Example: steersman devices list
    """
    from ..devices import show_all as show

    return show(as_json=as_json)


@devices.command()
def revoke(name: Name) -> int:
    """Shut a device out, at once.

    Example: steersman devices revoke phone
    """
    from ..devices import revoke as shut_out

    return shut_out(name)
