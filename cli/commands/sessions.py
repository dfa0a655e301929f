"""`steersman sessions …`: lists, reads, changes and deletes sessions."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from ...gateway.commands.registry import COMMANDS
from ...gateway.commands.revert import revert
from ...gateway.home.home import named_session
from ...gateway.home.retention import Retention, Swept, queues_folder
from ...gateway.host.host import Host
from ...gateway.launch_options import LaunchOptions
from ...gateway.wording.formats import size_text
from ...gateway.wording.redaction import Redactor
from ...machines.errors import SteersmanError, UsageError
from ...workflows.config import load
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ...workspace.prune import size_of
from ..options import Json, Session, group
from ..output import show, show_document
from ..sessions import (
    delete_session,
    export_session,
    finalize_session,
    fork_session,
    import_session,
    list_sessions,
    rename_session,
    search_sessions,
    show_session,
)
from ..stored import stored
from .session_command import EXCEPTIONS, twin

sessions = group("List, read and resume sessions.", "steersman sessions list")


@sessions.command("list")
def sessions_list(
    with_size: Annotated[bool, typer.Option("--size", help="Show the disk usage of each.")] = False,
    as_json: Json = False,
) -> int:
    """List sessions, newest first.

    Example: steersman sessions list --json
    """
    return list_sessions(os.environ, with_size=with_size, as_json=as_json)


@sessions.command("show")
def sessions_show(session: Session, as_json: Json = False) -> int:
    """Print a session's conversation.

    Example: steersman sessions show last
    """
    return show_session(os.environ, session, as_json=as_json)


@sessions.command("resume")
def sessions_resume(session: Session) -> int:
    """Open a chat on a session; nothing runs until you resume it.

    Example: steersman sessions resume last
    """
    from ..chat import chat
    from ..chat_options import ChatOptions

    return chat(ChatOptions(resume=session, folder=Path.cwd()), os.environ)


sessions.command("revert")(twin(revert, Session))


@sessions.command("rename")
def sessions_rename(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    as_json: Json = False,
) -> int:
    """Give a session a name by which it can be found.

    Example: steersman sessions rename last "the zod migration"
    """
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
    return fork_session(os.environ, session, at, as_json=as_json)


@sessions.command("finalize")
def sessions_finalize(session: Session, as_json: Json = False) -> int:
    """End a session permanently; it stays readable.

    Example: steersman sessions finalize last
    """
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
    telemetry = EXTENSIONS.load("opentelemetry")
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    redactor = Redactor(os.environ, config.key_variables)
    with stored(os.environ) as store:
        row = named_session(store, session)
        spans = telemetry.stored_spans(store, row.session, config, redactor)
    if as_json:
        show_document(telemetry.as_json(spans))
        return 0
    target = endpoint or config.telemetry.endpoint
    if not target:
        raise UsageError(
            "there is no collector to send to",
            "give `--endpoint URL`, set `telemetry.endpoint`, or print with `--json`",
        )
    if not telemetry.send(spans, target, config, os.environ):
        raise SteersmanError(
            f"the collector at {redactor.line(target)} did not take the spans of {row.session}",
            "see whether it takes OTLP over HTTP there; a repetition makes the same spans",
        )
    traces = len({span.context.trace for span in spans})
    show(f"{row.session}: {len(spans)} spans in {traces} traces, sent to {redactor.line(target)}")
    return 0


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
    paths = Paths.of(os.environ)
    config = load(paths, Path.cwd(), os.environ)
    hours = config.auto_queue.persistence.retention_hours
    now, storage = time.time(), storage_of(paths, os.environ)
    with closing(Host(paths, config, os.environ, LaunchOptions())) as host:
        queues = list(host.upkeep.saved_queues.expire(now, hours))
        retention = Retention(host.store, storage, host.upkeep.trash, now, hours)
        copies = retention.copies(config.checkpoints.budget)
        outputs = retention.outputs()
        deleted = retention.sessions(queues_folder(paths, config)) if with_finalized else Swept()
        retention.thin()
        journal = host.store.compact()
        host.upkeep.trash.note_start(now)
        has_trash = bool(host.upkeep.trash.marks())
    if as_json:
        show_document(
            {
                "queues": queues,
                "checkpoints": _view(copies, storage.copies),
                "outputs": _view(outputs, storage.outputs),
                "journal": {"freed": journal},
                "deleted": list(deleted.gone),
                "trashed": list(deleted.new),
            }
        )
        return 0
    lines = [
        *queues,
        *([f"Deleted: {', '.join(deleted.gone)}."] if deleted.gone else []),
        *([f"In the trash now: {', '.join(deleted.new)}."] if deleted.new else []),
        f"Copies of files: {_told(copies)}, {size_text(size_of(storage.copies))} left.",
        f"Outputs of tools: {_told(outputs)}.",
        f"Journal: freed {size_text(journal)}.",
    ]
    if has_trash:
        lines.append(
            "`steersman home trash` shows the trash; with `empty` it frees the space at once."
        )
    show("\n".join(lines))
    return 0


def _view(swept: Swept, place: Path) -> dict[str, object]:
    return {
        "trashed": list(swept.new),
        "sessions": list(swept.gone),
        "freed": swept.freed,
        "left": size_of(place),
    }


def _told(swept: Swept) -> str:
    return (
        f"freed {size_text(swept.freed)} of {_count(len(swept.gone))}, "
        f"{_count(len(swept.new))} more in the trash now"
    )


def _count(number: int) -> str:
    """Write how many sessions: `1 session`, `2 sessions`."""
    return f"{number} session{'s' * (number != 1)}"


_by_hand = {command.name for command in sessions.registered_commands}
for _name, _declared in COMMANDS.built_in.items():
    if _name not in EXCEPTIONS and _name not in _by_hand:
        sessions.command(_name)(twin(_declared, Session))
