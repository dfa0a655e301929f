"""`steersman sessions list` and `show`: what is stored, without touching it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..gateway.formats import age, iso, size_text
from ..gateway.redaction import Redactor
from ..journal.lock import Owner
from ..journal.store import SessionRow
from ..workflows.paths import Paths
from .disk import disk_use
from .page import show, show_document, warn
from .stored import state_word, stored
from .table import draw_table

if TYPE_CHECKING:
    from ..journal.record import SessionRecord
    from ..machines.conversation import ChatMessage


_HEAD = ("ID", "NAME", "STATE", "LAST ACTIVE", "AGENT", "WAITING", "INTERRUPTED", "FOLDER")


def list_sessions(environ: Mapping[str, str], *, with_size: bool, as_json: bool) -> int:
    """Print the home's sessions, newest activity first; children only as data."""
    redactor = Redactor(environ)
    with stored(environ) as store:
        rows, owners = store.sessions(), store.owners()
        sizes = disk_use(store, Paths.of(environ).state) if with_size else {}
    if as_json:
        found = [_about(row, owners.get(row.session)) for row in rows]
        for one in found if with_size else ():
            one["bytes"] = sizes.get(str(one["id"]), 0)
        show_document({"sessions": found})
        return 0
    rows = [one for one in rows if not one.parent]  # `agents list` shows the others
    if rows:
        now = time.time()
        cells = [_cells(row, row.session in owners, redactor, now) for row in rows]
        head: tuple[str, ...] = _HEAD
        if with_size:
            head = (*_HEAD[:-1], "SIZE", _HEAD[-1])
            cells = [
                (*one[:-1], size_text(sizes.get(row.session, 0)), one[-1])
                for one, row in zip(cells, rows, strict=True)
            ]
        show(draw_table(head, cells, environ))
        for row in rows:
            if row.workflow and row.interrupted and row.session not in owners:
                name = redactor.line(row.workflow)
                warn(f"Run of {name}: `steersman run --resume {row.session}` goes on where it was.")
    else:
        warn("There is no session yet; `steersman chat` begins one.")
    return 0


def show_session(environ: Mapping[str, str], name: str, *, as_json: bool) -> int:
    """Print one session's conversation, as text or as data. Raises `UsageError`."""
    from ..gateway.home import named_session
    from ..journal.codec import encode
    from ..journal.recovery import load_record

    redactor = Redactor(environ)
    with stored(environ) as store:
        row = named_session(store, name)
        about = _about(row, store.owner(row.session))
        record = load_record(store, row.session)
    if as_json:
        messages = [encode(message) for message in record.conversation]
        show_document(redactor.data({"session": about, "messages": messages}))
    else:
        show(_conversation(about, record, redactor))
    return 0


def _about(row: SessionRow, owner: Owner | None) -> dict[str, Any]:
    """What programs are told of a session; times are ISO 8601, UTC."""
    return {
        "id": row.session,
        "state": state_word(row, is_owned=owner is not None),
        "folder": row.folder,
        "agent": row.agent,
        "workflow": row.workflow or None,
        "name": row.name,
        "created": iso(row.created),
        "last_active": iso(row.updated),
        "waiting": row.waiting,
        "interrupted": row.interrupted,
        "parent": row.parent or None,
        "pid": owner.pid if owner else None,
    }


def _cells(row: SessionRow, is_owned: bool, redactor: Redactor, now: float) -> tuple[str, ...]:
    return (
        row.session,
        redactor.line(row.name) or "-",
        state_word(row, is_owned=is_owned),
        age(now - row.updated),
        redactor.line(row.agent),
        str(row.waiting or "-"),
        str(row.interrupted or "-"),
        redactor.line(_at_home(row.folder)),
    )


def _at_home(folder: str) -> str:
    home = str(Path.home())
    return f"~{folder[len(home) :]}" if folder == home or folder.startswith(f"{home}/") else folder


def _conversation(about: dict[str, Any], record: SessionRecord, redactor: Redactor) -> str:
    head = f"session {about['id']}  {about['state']}  {redactor.line(record.folder)}"
    who = f"agent {redactor.line(record.agent)}  model {redactor.line(record.model)}"
    return "\n".join([head, who, *(_message(one, redactor) for one in record.conversation)])


def _message(message: ChatMessage, redactor: Redactor) -> str:
    """Write who said it, then the text, indented: no text can pass for another speaker's."""
    title = f"{message.role} {message.call}".rstrip()
    lines = redactor.text(message.text).splitlines()
    for call in message.tool_calls:
        arguments = json.dumps(redactor.data(call.arguments), ensure_ascii=False)
        lines.append(f"[{call.call}] {redactor.line(call.tool)} {arguments}")
    return "\n".join(["", title, *(f"  {line}".rstrip() for line in lines)])
