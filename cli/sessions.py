"""`steersman sessions`: lists, shows, searches, names, copies and deletes sessions."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..gateway.commands.session import clean_name, finalize, rename
from ..gateway.home.home import find_session, named_session, open_store
from ..gateway.home.retention import delete, family, queues_folder
from ..gateway.home.trash import Trash
from ..gateway.host.host import Host
from ..gateway.host.offline_writer import writing
from ..gateway.launch_options import LaunchOptions
from ..gateway.reach import SessionReach
from ..gateway.session_info import SessionInfo, described, listed
from ..gateway.views.session_file import exported, fork, imported, markdown, read_export, write_new
from ..gateway.wording.formats import age, iso, size_text
from ..gateway.wording.redaction import Redactor, redactor_of
from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.lock import Owner
from ..journal.record import messages_of
from ..journal.store import Store, StoredEntry
from ..machines.errors import SteersmanError, UsageError
from ..workflows.config import load
from ..workflows.home_folder import home_folder
from ..workflows.home_place import storage_of
from ..workflows.paths import Paths
from .output import escaped, show, show_document, show_lines, show_table, warn
from .stored import disk_use, stored

if TYPE_CHECKING:
    from ..journal.record import SessionRecord
    from ..machines.conversation import ChatMessage


# Searching ----------------------------------------------------------------------------------------


AROUND = 40
"""Characters that are shown on both sides of a hit."""


def search_sessions(environ: Mapping[str, str], text: str, limit: int, *, as_json: bool) -> int:
    """Print the sessions whose name or messages hold a text; exit 1 if there are none."""
    if not text.strip():
        raise UsageError("there is nothing to search for", "steersman sessions search zod")
    redactor = redactor_of(environ)
    with stored(environ) as store:
        found = [
            redactor.data(hit)
            for hit, _ in zip(_found(store, text, redactor), range(limit), strict=False)
        ]
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
    rows = {row.session: row for row in store.sessions()}
    for row in rows.values():
        if text.casefold() in row.name.casefold():
            at = {"session": row.session, "name": row.name, "folder": row.folder}
            yield {**at, "seq": 0, "time": iso(row.updated), "role": "name", "text": row.name}
    for session, stored_entry in store.search(text):
        row = rows[session]
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


# Renaming, copying, deleting ----------------------------------------------------------------------


FORMATS = ("markdown", "json")


def rename_session(environ: Mapping[str, str], session: str, name: str, *, as_json: bool) -> int:
    """Give a session a name, also one that another process has open."""
    cleaned = clean_name(name)
    if not cleaned:
        raise UsageError("that is no name", 'steersman sessions rename last "the zod migration"')
    paths = Paths.of(environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        if store.is_owned(row.session):
            receipt = SessionReach(paths, environ, store).remote(row.session).run(rename(cleaned))
            if receipt["type"] != "result" or not receipt["ok"]:
                raise SteersmanError(f"session `{row.session}` was not renamed", "try again")
        else:
            with writing(store, row.session) as offline_writer:
                offline_writer.write(time.time(), e.SessionRenamed(name=cleaned))
    _print({"session": row.session, "name": cleaned}, f"{row.session}: {cleaned}", as_json)
    return 0


def fork_session(environ: Mapping[str, str], session: str, turn: str, *, as_json: bool) -> int:
    """Start a session with the conversation of another one."""
    with closing(open_store(Paths.of(environ))) as store:
        row = named_session(store, session)
        made = fork(store, row, turn, time.time())
    text = f"{made}: `steersman chat --resume {made}`. It has the conversation and the settings: "
    text += "files are as they are, and nothing waits."
    _print({"session": made, "forked_from": row.session}, text, as_json)
    return 0


def export_session(
    environ: Mapping[str, str], session: str, file: Path | None, form: str, *, is_whole: bool
) -> int:
    """Write a session to a file, or to standard output. Raises `UsageError`."""
    form = form or ("json" if file is not None and file.suffix == ".json" else "markdown")
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    with stored(environ) as store:
        row = named_session(store, session)
        redactor = redactor_of(environ, row.folder)
        lines: Iterator[str]
        if form == "json":
            lines = map(escaped, exported(store, row, None if is_whole else redactor))
        else:
            lines = markdown(store, row, redactor)
        if file is None:
            show_lines(lines)
        else:
            try:
                write_new(file, lines)
            except OSError as error:
                hint = "name a file that does not exist yet"
                raise SteersmanError(f"`{file}` was not written: {error.strerror}", hint) from error
            warn(f"{row.session}: {file}")
    return 0


def import_session(environ: Mapping[str, str], file: Path, *, is_new: bool, as_json: bool) -> int:
    """Import an exported session; one that exists already stays as it is."""
    import secrets

    paths, here = Paths.of(environ), Path.cwd()
    data, agent = read_export(file), load(paths, here, environ).default_agent
    new_id = secrets.token_hex(4) if is_new else ""
    with closing(open_store(paths)) as store:
        session, was_new = imported(store, data, str(file), str(here), agent, new_id)
    text = (
        f"{session}: imported into {here}; nothing runs, and nothing is allowed that was allowed there. "
        f"`steersman chat --resume {session}` goes on with it."
        if was_new
        else f"{session} is here already."
    )
    _print({"session": session, "new": was_new}, text, as_json)
    return 0


def delete_session(
    environ: Mapping[str, str], session: str, *, is_sure: bool, as_json: bool
) -> int:
    """Delete a session; asks first unless `is_sure`."""
    paths = Paths.of(environ)
    config = load(paths, Path.cwd(), environ)
    queues = queues_folder(paths, config)
    with closing(open_store(paths)) as store:
        rows = store.sessions()
        row = find_session(rows, session)
        below = len(family(rows, row.session)) - 1
        if not is_sure and not _confirmed(row.session, row.name, below, environ):
            raise UsageError(
                "nothing was deleted",
                f"`steersman sessions delete {row.session} --yes` does not ask",
            )
        ids, freed = delete(store, storage_of(paths, environ), queues, row.session)
        store.compact()
    text = f"Deleted: {', '.join(ids)}"
    _print({"deleted": ids, "freed": freed}, f"{text} ({size_text(freed)} of files).", as_json)
    return 0


def finalize_session(environ: Mapping[str, str], session: str, *, as_json: bool) -> int:
    """Finalize a session; its conversation stays readable."""
    paths = Paths.of(environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        is_owned = store.is_owned(row.session)
        if is_owned:
            SessionReach(paths, environ, store).remote(row.session).run(finalize())
    if not is_owned and row.state != "finalized":
        config = load(paths, Path(row.folder), environ)
        with closing(Host(paths, config, environ, LaunchOptions())) as host:
            host.resume(row.session).finalize()
    _print({"finalized": row.session}, f"{row.session} is finalized.", as_json)
    return 0


def _confirmed(session: str, name: str, below: int, environ: Mapping[str, str]) -> bool:
    if not sys.stdin.isatty():
        return False
    called = f' "{redactor_of(environ).line(name)}"' if name else ""
    others = f" and {below} of its subagents" if below else ""
    warn(f"Delete session {session}{called}{others} permanently? Type its id:")
    return sys.stdin.readline().strip() == session


def _print(data: Mapping[str, object], text: str, as_json: bool) -> None:
    if as_json:
        show_document(data)
    else:
        show(text)


# Listing and showing ------------------------------------------------------------------------------


_HEAD = ("ID", "TITLE", "STATE", "LAST ACTIVE", "AGENT", "WAITING", "INTERRUPTED", "FOLDER")
_SHRINKING = ("TITLE", "LAST ACTIVE", "WAITING", "INTERRUPTED")


def list_sessions(environ: Mapping[str, str], *, with_size: bool, as_json: bool) -> int:
    """Print the home's sessions: what needs a person, then the newest; children only as data."""
    redactor = redactor_of(environ)
    trashed = Trash(Paths.of(environ).state).holds("session")
    with stored(environ) as store:
        found = [info for info in listed(store) if trashed.get(info.id) != info.updated]
        owners = store.owners() if as_json else {}
        sizes = disk_use(store, storage_of(Paths.of(environ), environ)) if with_size else {}
    for info in found:
        if info.state == "damaged":
            warn(f"1 session cannot be read: {info.id} (`steersman home check` says more)")
    if as_json:
        about = [_about(info, owners.get(info.id)) for info in found]
        for session in about if with_size else ():
            session["bytes"] = sizes.get(str(session["id"]), 0)
        show_document({"sessions": about})
        return 0
    # `agents list` shows the others
    shown = [info for info in found if not info.parent and info.state != "damaged"]
    if not shown:
        warn("There is no session yet; `steersman chat` starts one.")
        return 0
    now = time.time()
    cells = [_cells(info, redactor, now) for info in shown]
    head: tuple[str, ...] = _HEAD
    if with_size:
        head = (*_HEAD[:-1], "SIZE", _HEAD[-1])
        cells = [
            (*texts[:-1], size_text(sizes.get(info.id, 0)), texts[-1])
            for texts, info in zip(cells, shown, strict=True)
        ]
    show_table(head, cells, environ, _SHRINKING, ("AGENT",))
    for info in shown:
        if info.workflow and info.interrupted and info.open == "no":
            name = redactor.line(info.workflow)
            warn(f"Run of {name}: `steersman run --resume {info.id}` continues where it stopped.")
    return 0


def show_session(environ: Mapping[str, str], name: str, *, as_json: bool) -> int:
    """Print one session's conversation, as text or as data. Raises `UsageError`."""
    from ..journal.codec import encode
    from ..journal.recovery import load_record, whole_conversation

    with stored(environ) as store:
        row = named_session(store, name)
        redactor = redactor_of(environ, row.folder)
        about = _about(described(store, row.session), store.owner(row.session))
        record = load_record(store, row.session)
        messages = list(whole_conversation(store, row.session))
    if as_json:
        data = {"session": about, "messages": [encode(message) for message in messages]}
        show_document(redactor.data(data))
    else:
        show(_conversation(about, record, messages, redactor))
    return 0


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
    return (
        info.id,
        redactor.line(info.name or info.title) or "-",
        info.result or info.state,
        age(now - info.updated),
        redactor.line(info.agent),
        str(info.waiting or "-"),
        str(info.interrupted or "-"),
        redactor.line(_at_home(info.folder)),
    )


def _at_home(folder: str) -> str:
    home = str(home_folder())
    return f"~{folder[len(home) :]}" if folder == home or folder.startswith(f"{home}/") else folder


def _conversation(
    about: dict[str, Any], record: SessionRecord, messages: list[ChatMessage], redactor: Redactor
) -> str:
    head = f"session {about['id']}  {about['state']}  {redactor.line(record.folder)}"
    who = f"agent {redactor.line(record.agent)}  model {redactor.line(record.model)}"
    return "\n".join([head, who, *(_message(message, redactor) for message in messages)])


def _message(message: ChatMessage, redactor: Redactor) -> str:
    """Write a message's role, then its text, indented, so that no text can imitate a role."""
    title = f"{message.role} {message.call}".rstrip()
    lines = redactor.text(message.text).splitlines()
    for call in message.tool_calls:
        arguments = json.dumps(redactor.data(call.arguments), ensure_ascii=False)
        lines.append(f"[{call.call}] {redactor.line(call.tool)} {arguments}")
    return "\n".join(["", title, *(f"  {line}".rstrip() for line in lines)])
