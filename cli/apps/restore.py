"""The command line of `steersman restore …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

restore = typer.Typer(
    help="Resume sessions of other agents.\n\nExample: steersman restore list",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Record = Annotated[
    str, typer.Argument(metavar="ID", help="A session's id, a unique prefix of one, or `last`.")
]


@restore.command("list")
def restore_list(as_json: Json = False) -> int:
    """List the sessions that are not finalized, and how each is resumed.

    Example: steersman restore list --json
    """
    from ..restore import list_records

    return list_records(os.environ, as_json=as_json)


@restore.command("run")
def restore_run(session: Record) -> int:
    """Resume a session with its agent's own command, in its folder.

    Example: steersman restore run last
    """
    from ..restore import run_record

    return run_record(os.environ, session)


@restore.command("forget")
def restore_forget(session: Record) -> int:
    """Delete the record of a session; the agent's own files stay.

    Example: steersman restore forget last
    """
    from ..restore import forget_record

    return forget_record(os.environ, session)
