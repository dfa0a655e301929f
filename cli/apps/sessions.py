"""The command line of `steersman sessions …`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..options import Json, Session

sessions = typer.Typer(
    help="List, read and resume sessions.\n\nExample: steersman sessions list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@sessions.command("list")
def sessions_list(
    with_size: Annotated[bool, typer.Option("--size", help="Show the disk usage of each.")] = False,
    as_json: Json = False,
) -> int:
    """List sessions, newest first.

    Example: steersman sessions list --json
    """
    from ..sessions import list_sessions

    return list_sessions(os.environ, with_size=with_size, as_json=as_json)


@sessions.command("show")
def sessions_show(session: Session, as_json: Json = False) -> int:
    """Print a session's conversation.

    Example: steersman sessions show last
    """
    from ..sessions import show_session

    return show_session(os.environ, session, as_json=as_json)


@sessions.command("resume")
def sessions_resume(session: Session) -> int:
    """Open a chat on a session; nothing runs until you resume it.

    Example: steersman sessions resume last
    """
    from ..chat import chat
    from ..chat_options import ChatOptions

    return chat(ChatOptions(resume=session, folder=Path.cwd()), os.environ)


@sessions.command("revert")
def sessions_revert(
    session: Session,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[last|undo [PATH]]", help="What to revert; if left out, the newest turn."
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="TURN", help="This turn and all after it.")
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Include files that were changed since.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Restore the files that a session changed; later changes by others stay.

    Example: steersman sessions revert last --dry-run
    """
    from ..revert import revert_session

    return revert_session(
        os.environ, session, what or [], to, force=force, dry_run=dry_run, as_json=as_json
    )


@sessions.command("rename")
def sessions_rename(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    as_json: Json = False,
) -> int:
    """Give a session a name by which it can be found.

    Example: steersman sessions rename last "the zod migration"
    """
    from ..sessions import rename_session

    return rename_session(os.environ, session, name, as_json=as_json)


@sessions.command("search")
def sessions_search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Part of a name or a message.")],
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many to show.")] = 50,
    as_json: Json = False,
) -> int:
    """Search the messages of all sessions.

    Example: steersman sessions search "streaming parser"
    """
    from ..sessions import search_sessions

    return search_sessions(os.environ, text, limit, as_json=as_json)


@sessions.command("fork")
def sessions_fork(
    session: Session,
    at: Annotated[
        str, typer.Option("--at", metavar="TURN", help="The last turn to copy, as 3 or t3.")
    ] = "",
    as_json: Json = False,
) -> int:
    """Start a new session with the conversation of this one; files are not touched.

    Example: steersman sessions fork last --at 3
    """
    from ..sessions import fork_session

    return fork_session(os.environ, session, at, as_json=as_json)


@sessions.command("finalize")
def sessions_finalize(session: Session, as_json: Json = False) -> int:
    """End a session permanently; it stays readable.

    Example: steersman sessions finalize last
    """
    from ..sessions import finalize_session

    return finalize_session(os.environ, session, as_json=as_json)


@sessions.command("export")
def sessions_export(
    session: Session,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="If left out, standard output.")
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="markdown or json.")] = "",
    whole: Annotated[
        bool, typer.Option("--whole", help="JSON with all data, including secrets.")
    ] = False,
) -> int:
    """Write a session as Markdown, or as JSON for `sessions import`.

    Example: steersman sessions export last session.json
    """
    from ..sessions import export_session

    return export_session(os.environ, session, file, form, is_whole=whole)


@sessions.command("trace")
def sessions_trace(
    session: Session,
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint", metavar="URL", help="A collector; if left out, telemetry.endpoint."
        ),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print OTLP/JSON, and send nothing.")
    ] = False,
) -> int:
    """Send a session's traces to an OpenTelemetry collector, also those of long ago.

    Example: steersman sessions trace last --json
    """
    from ..trace import trace_session

    return trace_session(os.environ, session, endpoint, as_json=as_json)


@sessions.command("import")
def sessions_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file written by `export`.")],
    new_id: Annotated[
        bool, typer.Option("--new-id", help="Import it under a new id if it exists already.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Import an exported session; runs nothing.

    Example: steersman sessions import session.json
    """
    from ..sessions import import_session

    return import_session(os.environ, file, is_new=new_id, as_json=as_json)


@sessions.command("delete")
def sessions_delete(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> int:
    """Delete a session permanently, with its outputs and copies of files.

    Example: steersman sessions delete 9f3a --yes
    """
    from ..sessions import delete_session

    return delete_session(os.environ, session, is_sure=yes, as_json=as_json)


@sessions.command("prune")
def sessions_prune(
    with_finalized: Annotated[
        bool, typer.Option("--finalized", help="Also take finalized sessions.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Put outputs and copies of sessions that were not used for long into the trash.

    Example: steersman sessions prune
    """
    from ..prune import prune_sessions

    return prune_sessions(os.environ, with_finalized=with_finalized, as_json=as_json)
