"""`steersman inspect --events`: the journal, listed, filtered, followed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...gateway.dumps.journal_view import EntryFilter, entry_line, listed
from ...gateway.redaction import Redactor
from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow
from ..page import document, show, show_document
from .look import Look, now

__all__ = ["list_events"]


def list_events(store: SqliteStore, row: SessionRow, look: Look, environ: Mapping[str, str]) -> int:
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


def _follow(environ: Mapping[str, str], store: SqliteStore, row: SessionRow, look: Look) -> None:
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


def _listed(store: SqliteStore, row: SessionRow, look: Look) -> Iterable[dict[str, Any]]:
    found = listed(store, row.session, _wanted(store, row, look))
    return deque(found, look.last) if look.last else found


def _wanted(store: SqliteStore, row: SessionRow, look: Look) -> EntryFilter:
    """Make the filter that was asked for. Raises `UsageError` for a senseless moment."""
    after = _seq(store, row, look.since) if look.since else 0
    is_number = look.since.strip().isdigit()
    upto = _seq(store, row, look.until) if look.until else row.seq
    return EntryFilter(
        look.kinds, look.turn, look.item, after=after - 1 if is_number else after, upto=upto
    )


def _seq(store: SqliteStore, row: SessionRow, moment: str) -> int:
    from ...gateway.dumps.moment import seq_of

    return seq_of(store, row.session, row.seq, moment, now())


def _print(data: dict[str, Any], form: str) -> None:
    if form == "json":
        show_document(data)
        return
    from ..toml import show_toml

    show_toml(data)
