"""`steersman sessions search`: where something was said, over all sessions of the home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..gateway.formats import iso
from ..gateway.redaction import Redactor
from ..journal.codec import decode_entry
from ..journal.record import messages_of
from ..journal.sqlite import SqliteStore
from ..journal.store import StoredEntry
from ..machines.errors import SteersmanError, UsageError
from .page import show, show_document, warn
from .stored import stored

AROUND = 40
"""Characters that are shown on both sides of what was found."""


def search_sessions(environ: Mapping[str, str], text: str, limit: int, *, as_json: bool) -> int:
    """Print the sessions whose name or messages hold a text; exit 1 if there are none."""
    if not text.strip():
        raise UsageError("there is nothing to search for", "steersman sessions search zod")
    redactor = Redactor(environ)
    with stored(environ) as store:
        found = [
            redactor.data(one) for one, _ in zip(_found(store, text), range(limit), strict=False)
        ]
    if as_json:
        show_document({"found": found})
    for one in [] if as_json else found:
        where = f"entry {one['seq']}" if one["seq"] else "name"
        who = one["name"] or one["folder"]
        show(f"{one['session']}  {where}  {one['role']}: {redactor.line(one['text'])}  ({who})")
    if not found:
        warn(f"no session says `{redactor.line(text)}`")
    return 0 if found else 1


def _found(store: SqliteStore, text: str) -> Iterator[dict[str, Any]]:
    rows = {row.session: row for row in store.sessions()}
    for row in rows.values():
        if text.casefold() in row.name.casefold():
            at = {"session": row.session, "name": row.name, "folder": row.folder}
            yield {**at, "seq": 0, "time": iso(row.updated), "role": "name", "text": row.name}
    for session, stored_entry in store.search(text):
        row = rows[session]
        at = {"session": session, "name": row.name, "folder": row.folder}
        for role, said in _said(stored_entry):
            if (place := said.casefold().find(text.casefold())) >= 0:
                start = max(0, place - AROUND)
                piece = said[start : place + len(text) + AROUND]
                seq, time = stored_entry.seq, iso(stored_entry.time)
                yield {**at, "seq": seq, "time": time, "role": role, "text": piece}
                break


def _said(stored_entry: StoredEntry) -> Iterator[tuple[str, str]]:
    """Give the texts of an entry that people and models said."""
    if stored_entry.data["kind"] == "queued":
        yield "user", stored_entry.data["text"]
        return
    try:
        messages = messages_of(decode_entry(stored_entry.data))
    except SteersmanError:
        return  # of a later version
    for message in messages:
        if message.role != "user":  # it was found as it was queued
            yield message.role, message.text
