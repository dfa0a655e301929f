"""`steersman home`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..options import Json

home = typer.Typer(
    help="Where sessions are kept: SQLite, or a PostgreSQL database for many machines.\n\n"
    "Example: steersman home check",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@home.command("init")
def init(url: Annotated[str, typer.Argument(help="postgresql://USER@HOST/DATABASE")]) -> int:
    """Make a home in a PostgreSQL database.

    Example: steersman home init postgresql://me@db.example.net/steersman
    """
    from ..home import init_home

    return init_home(url)


@home.command("move")
def move(
    to: Annotated[
        str,
        typer.Option(help="the address of a home, or `sqlite`: the state folder", metavar="URL"),
    ],
) -> int:
    """Copy this home to another store, and compare both; no process may use them.

    Example: steersman home move --to postgresql://me@db.example.net/steersman
    """
    from ..home import move

    return move(to)


@home.command("check")
def check(as_json: Json = False) -> int:
    """Read every row and file of the home, and report what is damaged, and what to do; exit 1 if any is.

    Example: steersman home check
    """
    from ..home import check_home

    return check_home(as_json=as_json)


@home.command("salvage")
def salvage(
    to: Annotated[
        Path | None,
        typer.Argument(metavar="[TO]", help="A new folder; if left out, beside the state folder."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Write what can be read of a damaged home into a new one; the old one stays as it is.

    Example: steersman home salvage ~/steersman-salvaged
    """
    from ..home import salvage

    return salvage(to, as_json=as_json)


@home.command("trash")
def trash(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[restore ID|empty]", help="If left out, list what is in it."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Empty it without asking.")] = False,
    as_json: Json = False,
) -> int:
    """List what age or a budget put into the trash, restore it, or delete it now.

    Example: steersman home trash restore queue-9f3a01c2
    """
    from ..trash import trash

    return trash(os.environ, what or [], is_sure=yes, as_json=as_json)
