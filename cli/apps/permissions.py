"""The command line of `steersman permissions …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

permissions = typer.Typer(
    help="Show what tools may do here without asking, and try a call.\n\n"
    'Example: steersman permissions explain "git status"',
    no_args_is_help=True,
    rich_markup_mode=None,
)


@permissions.command("list")
def permissions_list(as_json: Json = False) -> int:
    """List the rules in force in this folder, in order.

    Example: steersman permissions list
    """
    from ..permissions import list_permissions

    return list_permissions(os.environ, as_json=as_json)


@permissions.command("explain")
def permissions_explain(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A command line; with --tool, its argument.")
    ] = "",
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="The tool, if it is not `shell`.")
    ] = "shell",
    as_json: Json = False,
) -> int:
    """Show what would happen to a tool call, and by which rule. Runs nothing.

    Example: steersman permissions explain --tool write src/main.py
    """
    from ..permissions import explain_permission

    return explain_permission(os.environ, tool, text, as_json=as_json)
