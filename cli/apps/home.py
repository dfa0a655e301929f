"""`steersman home`."""

from __future__ import annotations

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
    """Read every session of the home, and report what cannot be read.

    Example: steersman home check
    """
    from ..home import check_home

    return check_home(as_json=as_json)
