"""`steersman sessions …`: lists, reads, changes and deletes sessions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from ...gateway.commands.command import CommandCall
from ...gateway.commands.registry import COMMANDS
from ...gateway.commands.revert import diff, revert
from ...gateway.home.home import named_session
from ...gateway.home.retention import Retention, Swept
from ...gateway.home.trash import Trash
from ...gateway.host.host import Host
from ...gateway.launch_options import LaunchOptions
from ...gateway.session_info import SessionInfo, described, listed
from ...gateway.views.audit import audit
from ...gateway.views.comparison import compared, comparison_data, comparison_text
from ...gateway.views.moment import parse_moment
from ...gateway.wording.formats import age, iso, one_line, size_text
from ...gateway.wording.redaction import Redactor, redactor_of
from ...journal.codec import decode_entry, encode
from ...journal.lock import Owner
from ...journal.record import messages_of
from ...journal.store import RowFilter, Store, StoredEntry
from ...machines.conversation import ChatMessage
from ...machines.errors import SteersmanError, UsageError
from ...machines.pattern import lazy_pattern
from ...ports.tools.text import counted
from ...workflows.config import load
from ...workflows.home_folder import home_folder
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ...workspace.prune import size_of
from ..exit_codes import DONE
from ..options import Json, Session, argument, flag, group, option
from ..output import show, show_document, show_either, show_lines, show_table, warn
from ..stored import disk_use, stored
from .session_changes import (
    delete_session,
    export_session,
    finalize_session,
    fork_session,
    import_session,
    rename_session,
    verify_session,
)
from .session_command import EXCEPTIONS, run_on, twin
from .session_replay import replay_session

_HEAD = ("ID", "TITLE", "STATE", "LAST ACTIVE", "AGENT", "WAITING", "INTERRUPTED", "FOLDER")
_TURN = lazy_pattern(r"t?\d{1,7}")
SHOWN = 200
"""Sessions in a table, if nothing else is said."""
_WHAT = 80  # characters of an act in a table
_SHRINKING = ("TITLE", "LAST ACTIVE", "WAITING", "INTERRUPTED")


def list_sessions(
    limit: Annotated[int, option("N", "How many to show; if left out, 200, or in JSON all.")] = 0,
    with_size: Annotated[bool, flag("--size", "Show the disk usage of each.")] = False,
    as_json: Json = False,
) -> None:
    """List sessions: those that wait for a person, then the newest first.

    Those that a program has open are always listed; `last` is the newest, whatever waits.

    Example: steersman sessions list --json
    """
    most = limit if limit > 0 else 0 if as_json else SHOWN
    redactor = redactor_of(os.environ)
    trashed = Trash(Paths.of(os.environ).state).holds("session")
    with stored(os.environ) as store:
        found = listed(store, most=most and most + 1)
        is_more = most > 0 and len(found) > most
        found = [info for info in found[: most or None] if trashed.get(info.id) != info.updated]
        owners = store.owners() if as_json else {}
        sizes = disk_use(store, storage_of(Paths.of(os.environ), os.environ)) if with_size else {}
    for info in found:
        if info.state == "damaged":
            warn(f"1 session cannot be read: {info.id} (`steersman home check` says more)")
    if as_json:
        about = [_about(info, owners.get(info.id)) for info in found]
        for view in about if with_size else ():
            view["bytes"] = sizes.get(str(view["id"]), 0)
        show_document({"sessions": about})
        return
    # `agents list` shows the others
    shown = [info for info in found if not info.parent and info.state != "damaged"]
    if not shown:
        warn("There is no session yet; `steersman chat` starts one.")
        return
    now = time.time()
    cells = [_cells(info, redactor, now) for info in shown]
    head: tuple[str, ...] = _HEAD
    if with_size:
        head = (*_HEAD[:-1], "SIZE", _HEAD[-1])
        cells = [
            (*texts[:-1], size_text(sizes.get(info.id, 0)), texts[-1])
            for texts, info in zip(cells, shown, strict=True)
        ]
    show_table(head, cells, _SHRINKING, ("AGENT",))
    if is_more:
        warn(f"These are the newest {len(shown)}; `--limit N` shows more.")
    for info in shown:
        if info.workflow and info.interrupted and info.open == "no":
            name = redactor.line(info.workflow)
            warn(f"Run of {name}: `steersman run --resume {info.id}` continues where it stopped.")


def show_session(session: Session, as_json: Json = False) -> None:
    """Print a session's conversation.

    Example: steersman sessions show last
    """
    from ...journal.recovery import load_record, whole_conversation

    with stored(os.environ) as store:
        row = named_session(store, session)
        redactor = redactor_of(os.environ, row.folder)
        about = _about(described(store, row.session), store.owner(row.session))
        record = load_record(store, row.session)
        messages = list(whole_conversation(store, row.session))
    if as_json:
        data = {"session": about, "messages": [encode(message) for message in messages]}
        show_document(redactor.data(data))
        return
    state = about["result"] or about["state"]
    show(f"session {about['id']}  {state}  {redactor.line(record.folder)}")
    model = f"  model {redactor.line(record.model)}" if record.model else ""  # a run has none
    show(f"agent {redactor.line(record.agent)}{model}")
    show_lines(_message(message, redactor) for message in messages)


def _about(info: SessionInfo, owner: Owner | None) -> dict[str, Any]:
    """Return a session as data for programs; times are ISO 8601, UTC."""
    return {
        "id": info.id,
        "state": info.state,
        "needs": info.needs or None,
        "result": info.result or None,
        "folder": info.folder,
        "agent": info.agent,
        "workflow": info.workflow or None,
        "name": info.name,
        "title": info.title,
        "created": iso(info.created),
        "last_active": iso(info.updated),
        "waiting": info.waiting,
        "interrupted": info.interrupted,
        "parent": info.parent or None,
        "pid": owner.pid if owner else None,
    }


def _cells(info: SessionInfo, redactor: Redactor, now: float) -> tuple[str, ...]:
    home = str(home_folder())
    is_at_home = f"{info.folder}/".startswith(f"{home}/")
    return (
        info.id,
        redactor.line(info.name or info.title) or "-",
        info.result or info.state,
        age(now - info.updated),
        redactor.line(info.agent),
        str(info.waiting or "-"),
        str(info.interrupted or "-"),
        redactor.line(f"~{info.folder.removeprefix(home)}" if is_at_home else info.folder),
    )


def _message(message: ChatMessage, redactor: Redactor) -> str:
    """Write a message's role, then its text, indented, so that no text can imitate a role."""
    title = f"{message.role} {message.call}".rstrip()
    lines = redactor.text(message.text).splitlines()
    for call in message.tool_calls:
        arguments = json.dumps(redactor.data(call.arguments), ensure_ascii=False)
        lines.append(f"[{call.call}] {redactor.line(call.tool)} {arguments}")
    return "\n".join(["", title, *(f"  {line}".rstrip() for line in lines)])


# Searching ----------------------------------------------------------------------------------------


AROUND = 40
"""Characters that are shown on both sides of a hit."""


def search_sessions(
    text: Annotated[str, argument("TEXT", "Part of a name or a message.")],
    limit: Annotated[int, option("N", "How many to show.")] = 50,
    as_json: Json = False,
) -> int:
    """Search the messages of all sessions.

    Example: steersman sessions search "streaming parser"
    """
    if not text.strip():
        raise UsageError("there is nothing to search for", "steersman sessions search zod")
    redactor = redactor_of(os.environ)
    with stored(os.environ) as store:
        found = [redactor.data(hit) for hit in islice(_found(store, text, redactor), max(0, limit))]
    if as_json:
        show_document({"found": found})
    for hit in [] if as_json else found:
        where = f"entry {hit['seq']}" if hit["seq"] else "name"
        who = hit["name"] or hit["folder"]
        show(f"{hit['session']}  {where}  {hit['role']}: {redactor.line(hit['text'])}  ({who})")
    if not found:
        warn(f"no session contains `{redactor.line(text)}`")
    return 0 if found else 1


def _found(store: Store, text: str, redactor: Redactor) -> Iterator[dict[str, Any]]:
    """Find a text; of a message that has it in a secret the redacted beginning is shown."""
    for row in store.sessions(RowFilter(is_named=True)):
        if text.casefold() in row.name.casefold():
            at = {"session": row.session, "name": row.name, "folder": row.folder}
            yield {**at, "seq": 0, "time": iso(row.updated), "role": "name", "text": row.name}
    for session, stored_entry in store.search(text):
        row = store.row(session)
        at = {"session": session, "name": row.name, "folder": row.folder}
        for role, said in _said(stored_entry):
            if text.casefold() in said.casefold():
                shown = redactor.text(said)
                place = max(0, shown.casefold().find(text.casefold()))
                piece = shown[max(0, place - AROUND) : place + len(text) + AROUND]
                seq, time = stored_entry.seq, iso(stored_entry.time)
                yield {**at, "seq": seq, "time": time, "role": role, "text": piece}
                break


def _said(stored_entry: StoredEntry) -> Iterator[tuple[str, str]]:
    """Give the texts of an entry that people and models said."""
    if stored_entry.data["kind"] == "queued":
        yield "user", stored_entry.data["said"]["text"]
        return
    try:
        messages = messages_of(decode_entry(stored_entry.data))
    except SteersmanError:
        return  # of a later version
    for message in messages:
        if message.role != "user":  # it was found as it was queued
            yield message.role, message.text


sessions = group("sessions", "steersman sessions list")


def diff_session(
    session: Session,
    other: Annotated[
        str, argument("[TURN|OTHER]", "A turn, as 3 or t3, or a session to compare with.")
    ] = "",
    as_json: Json = False,
) -> int:
    """Show the changes of a turn, or compare two sessions: where they part, and what each came to.

    Example: steersman sessions diff last 4f1c22ab
    """
    if not other or _TURN.fullmatch(other):
        given = {"turn": other} if other else {}
        return run_on(session, CommandCall(command=diff, arguments=given), as_json=as_json)
    with stored(os.environ) as store:
        rows = named_session(store, session), named_session(store, other)
        redactor = redactor_of(os.environ, rows[0].folder)
        found = compared(store, *rows)
    show_either(comparison_data(found, redactor), comparison_text(found, redactor), as_json)
    return DONE


def audit_sessions(
    session: Annotated[str, argument("[ID]", "A session, or `last`; if left out, all.")] = "",
    since: Annotated[str, option("TIME", "From when on: a time, or `7d ago`.")] = "1d ago",
    who: Annotated[str, option("PATTERN", "Only the acts of these: `phone`, `agent *`.")] = "*",
    as_json: Json = False,
) -> None:
    """Show who did what: what people said and chose, what agents did, and by which rule.

    A long text is cut; `--json` has all of it.

    Example: steersman sessions audit --since "7d ago" --who phone
    """
    moment = parse_moment(since, datetime.now().astimezone())
    if isinstance(moment, int):
        raise UsageError(f"`{since}` is not a time", 'steersman sessions audit --since "7d ago"')
    with stored(os.environ) as store:
        only = named_session(store, session) if session else None
        lines = audit(store, moment.timestamp(), redactor_of(os.environ), only)
    lines = [line for line in lines if fnmatchcase(line["who"], who)]
    if as_json:
        show_document({"acts": lines})
        return
    if not lines:
        warn(f"nobody did anything since `{since}`")
        return
    head = ("TIME", "WHO", "ACT", "WHAT", "RULE", "SESSION")
    shown = [{**line, "what": one_line(line["what"], _WHAT)} for line in lines]
    rows = [tuple(str(line[name.lower()]) for name in head) for line in shown]
    show_table(head, rows, ("WHO", "WHAT"), ("RULE",))


def resume_session(session: Session) -> int:
    """Open a chat on a session; nothing runs until you resume it.

    Example: steersman sessions resume last
    """
    from ..chat import chat
    from ..chat_options import ChatOptions

    return chat(ChatOptions(resume=session, folder=Path.cwd()), os.environ)


def trace_session(
    session: Session,
    endpoint: Annotated[str, option("URL", "A collector; if left out, telemetry.endpoint.")] = "",
    as_json: Annotated[bool, flag("--json", "Print OTLP/JSON, and send nothing.")] = False,
) -> None:
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
        return
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


def prune_sessions(
    with_finalized: Annotated[bool, flag("--finalized", "Also take finalized sessions.")] = False,
    as_json: Json = False,
) -> None:
    """Put outputs and copies of sessions that were not used for long into the trash.

    Example: steersman sessions prune
    """
    paths = Paths.of(os.environ)
    config = load(paths, Path.cwd(), os.environ)
    hours = config.auto_queue.persistence.retention_hours
    now, storage = time.time(), storage_of(paths, os.environ)
    with closing(Host(paths, config, os.environ, LaunchOptions())) as host:
        queues = list(host.upkeep.saved_queues.expire(now, hours))
        retention = Retention(host, now)
        copies = retention.copies()
        outputs = retention.outputs()
        deleted = retention.sessions() if with_finalized else Swept()
        retention.thin()
        journal = host.store.compact()
        host.upkeep.trash.note_start(now)
        has_trash = bool(host.upkeep.trash.marks())
    data = {
        "queues": queues,
        "checkpoints": _view(copies, storage.copies),
        "outputs": _view(outputs, storage.outputs),
        "journal": {"freed": journal},
        "deleted": list(deleted.gone),
        "trashed": list(deleted.new),
    }
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
    show_either(data, "\n".join(lines), as_json)


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


_BY_HAND: Mapping[str, Callable[..., int | None]] = {
    "list": list_sessions,
    "show": show_session,
    "diff": diff_session,
    "resume": resume_session,
    "revert": twin(revert, Session),
    "rename": rename_session,
    "search": search_sessions,
    "audit": audit_sessions,
    "fork": fork_session,
    "replay": replay_session,
    "finalize": finalize_session,
    "export": export_session,
    "trace": trace_session,
    "import": import_session,
    "verify": verify_session,
    "delete": delete_session,
    "prune": prune_sessions,
}
for _name, _command in _BY_HAND.items():
    sessions.command(_name)(_command)
for _name, _declared in COMMANDS.built_in.items():
    if _name not in EXCEPTIONS and _name not in _BY_HAND:
        sessions.command(_name)(twin(_declared, Session))
