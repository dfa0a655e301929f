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
from ...ports.tools.text import counted
from ...workflows.config import load
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ...workspace.prune import size_of
from ..options import Json, Session, group
from ..output import show, show_document
from ..stored import stored
from .session_changes import (
    delete_session,
    export_session,
    finalize_session,
    fork_session,
    import_session,
    rename_session,
)
from .session_command import EXCEPTIONS, twin
from .session_list import list_sessions, search_sessions, show_session

sessions = group("List, read and resume sessions.", "steersman sessions list")


def resume_session(session: Session) -> int:
    """Open a chat on a session; nothing runs until you resume it.

    Example: steersman sessions resume last
    """
    from ..chat import chat
    from ..chat_options import ChatOptions

    return chat(ChatOptions(resume=session, folder=Path.cwd()), os.environ)


def trace_session(
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


def prune_sessions(
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
        f"freed {size_text(swept.freed)} of {counted(len(swept.gone), 'session')}, "
        f"{counted(len(swept.new), 'session')} more in the trash now"
    )


_BY_HAND = {
    "list": list_sessions,
    "show": show_session,
    "resume": resume_session,
    "revert": twin(revert, Session),
    "rename": rename_session,
    "search": search_sessions,
    "fork": fork_session,
    "finalize": finalize_session,
    "export": export_session,
    "trace": trace_session,
    "import": import_session,
    "delete": delete_session,
    "prune": prune_sessions,
}
for _name, _command in _BY_HAND.items():
    sessions.command(_name)(_command)
for _name, _declared in COMMANDS.built_in.items():
    if _name not in EXCEPTIONS and _name not in _BY_HAND:
        sessions.command(_name)(twin(_declared, Session))
