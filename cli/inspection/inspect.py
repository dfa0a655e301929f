"""`steersman inspect`: a session as it is, was, became; live, dead or at any moment."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ...gateway.dumps.journal_view import EntryFilter, changes, entry_line, listed
from ...gateway.redaction import Redactor
from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow
from ..output import document, show, show_document
from ..stored import stored
from .view import InspectOptions, dump_at, dump_now, now, printed

# `steersman inspect --diff A B`: what changed in a session between two moments --------------------


def show_difference(
    environ: Mapping[str, str],
    store: SqliteStore,
    row: SessionRow,
    moments: tuple[str, str],
    form: str,
) -> int:
    """Print each field that differs between two moments."""
    redactor = Redactor(environ)
    before, after = (redactor.data(dump_at(store, row, moment)) for moment in moments)
    found = [
        change for change in changes(before, after) if change["path"] not in ("seq", "updated")
    ]
    data = {
        "session": row.session,
        "from": before["seq"],
        "to": after["seq"],
        "changes": found,
    }
    if form == "json":
        show_document(data)
    elif form == "toml":
        from ..output import show_toml

        show_toml(data)
    else:
        show("\n".join([f"from entry {data['from']} to entry {data['to']}:", *map(_line, found)]))
    return 0


def _line(change: dict[str, Any]) -> str:
    before, after = (_short(change.get(name)) for name in ("before", "after"))
    if "before" not in change:
        return f"  + {change['path']}: {after}"
    if "after" not in change:
        return f"  - {change['path']}: {before}"
    return f"  ~ {change['path']}: {before} -> {after}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"


# `steersman inspect --events`: the journal, listed, filtered, followed ----------------------------


def list_events(
    store: SqliteStore, row: SessionRow, look: InspectOptions, environ: Mapping[str, str]
) -> int:
    """Print the entries that are asked for, oldest first; with `--watch` also those that come.

    A JSON document has all of them; followed, it is one object a line.
    """
    redactor = Redactor(environ)
    views = _listed(store, row, look)
    if look.form == "tree":
        for view in views:
            show(entry_line(redactor.data(view)))
    elif look.watches:
        for view in views:
            show(document(redactor.data(view), None))
    else:
        data = {"session": row.session, "events": [redactor.data(view) for view in views]}
        _print(data, look.form)
    if look.watches:
        _follow(environ, store, row, look)
    return 0


def _follow(
    environ: Mapping[str, str], store: SqliteStore, row: SessionRow, look: InspectOptions
) -> None:
    """Print each entry that comes after those of `row`, until Ctrl-C."""
    from .watching import pulses

    redactor = Redactor(environ)
    only = replace(_wanted(store, row, look), upto=None)
    seq = row.seq
    for _ in pulses(environ, store, row.session):
        newest = store.row(row.session).seq
        for view in listed(store, row.session, replace(only, after=seq, upto=newest)):
            shown = redactor.data(view)
            show(entry_line(shown) if look.form == "tree" else document(shown, None))
        seq = newest


def _listed(store: SqliteStore, row: SessionRow, look: InspectOptions) -> Iterable[dict[str, Any]]:
    found = listed(store, row.session, _wanted(store, row, look))
    return deque(found, look.last) if look.last else found


def _wanted(store: SqliteStore, row: SessionRow, look: InspectOptions) -> EntryFilter:
    """Make the filter that was asked for. Raises `UsageError` for a senseless moment."""
    after = _seq(store, row, look.since) if look.since else 0
    is_number = look.since.strip().isdigit()
    upto = _seq(store, row, look.until) if look.until else row.seq
    return EntryFilter(
        kinds=look.kinds,
        turn=look.turn,
        item=look.item,
        after=after - 1 if is_number else after,
        upto=upto,
    )


def _seq(store: SqliteStore, row: SessionRow, moment: str) -> int:
    from ...gateway.dumps.moment import seq_of

    return seq_of(store, row.session, row.seq, moment, now())


def _print(data: dict[str, Any], form: str) -> None:
    if form == "json":
        show_document(data)
        return
    from ..output import show_toml

    show_toml(data)


def inspect_session(environ: Mapping[str, str], look: InspectOptions) -> int:
    """Print what every part of a session does, did, or did last. Raises `UsageError`."""
    look.require_sense()
    from ...gateway.home import named_session

    with stored(environ) as store:
        row = named_session(store, look.session)
        if look.lists_events:
            return list_events(store, row, look, environ)
        if look.watches:
            from .watching import watch

            return watch(environ, store, row, look.form)
        if look.diff:
            return show_difference(environ, store, row, look.diff, look.form)
        if look.form == "mermaid":
            return _sequence(store, row, look.at)
        data = dump_at(store, row, look.at) if look.at else dump_now(environ, store, row)
    show(printed(Redactor(environ).data(data), look.form, environ))
    return 0


def _sequence(store: SqliteStore, row: SessionRow, at: str) -> int:
    """Print the last turn up to a moment as a sequence diagram."""
    from ...gateway.dumps.moment import seq_of
    from ...gateway.dumps.sequence import last_turn

    seq = seq_of(store, row.session, row.seq, at, now()) if at else row.seq
    redactor = Redactor(os.environ)
    show(redactor.text(last_turn(store, row.session, seq)).rstrip("\n"))
    return 0
