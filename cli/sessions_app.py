"""`steersman sessions …`, as people type it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .parameter import Json, Session

__all__ = ["sessions"]

sessions = typer.Typer(
    help="List, read and resume sessions.\n\nExample: steersman sessions list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@sessions.command("list")
def sessions_list(as_json: Json = False) -> int:
    """List sessions, newest first.

    Example: steersman sessions list --json
    """
    from .sessions import list_sessions

    return list_sessions(os.environ, as_json=as_json)


@sessions.command("show")
def sessions_show(session: Session, as_json: Json = False) -> int:
    """Print a session's conversation.

    Example: steersman sessions show last
    """
    from .sessions import show_session

    return show_session(os.environ, session, as_json=as_json)


@sessions.command("resume")
def sessions_resume(session: Session) -> int:
    """Open a chat on a session; nothing in it runs until you say so.

    Example: steersman sessions resume last
    """
    from .chat import chat
    from .options import ChatOptions

    return chat(ChatOptions(resume=session, folder=Path.cwd()), os.environ)


@sessions.command("revert")
def sessions_revert(
    session: Session,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[last|undo [PATH]]", help="What; the newest turn if left out."),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="TURN", help="This turn and all after it.")
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Also what somebody changed since.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Give back the files that a session changed; what others changed since stays.

    Example: steersman sessions revert last --dry-run
    """
    from .revert import revert_session

    return revert_session(
        os.environ, session, what or [], to, force=force, dry_run=dry_run, as_json=as_json
    )


@sessions.command("prune")
def sessions_prune(as_json: Json = False) -> int:
    """Free what sessions that ended long ago still take.

    Example: steersman sessions prune
    """
    from .prune import prune_sessions

    return prune_sessions(os.environ, as_json=as_json)
