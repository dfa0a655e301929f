"""`steersman inspect`: prints a session's state, its journal, or the difference of two moments."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ...gateway.views.journal_view import EntryFilter, changes, entry_line, listed
from ...gateway.wording.formats import clock, document_lines, iso
from ...gateway.wording.redaction import redactor_of
from ...journal.store import SessionRow, Store
from ...machines.errors import UsageError
from ...machines.pattern import lazy_pattern
from ..output import document, escaped, show, show_document, show_lines
from ..stored import stored
from .view import DUMP, InspectOptions, dump_at, dump_now, now, printed, saved_dump


def show_difference(
    environ: Mapping[str, str],
    store: Store,
    row: SessionRow,
    moments: tuple[str, str],
    form: str,
) -> int:
    """Print each field of a session that differs between two moments."""
    redactor = redactor_of(environ, row.folder)
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
        show(f"from entry {data['from']} to entry {data['to']}:")
        show_lines(_told(found))
        show(
            f"`steersman why {row.session} ID` tells how a message, turn or subagent came to this."
        )
    return 0


_COUNTERS = ("cancelled", "epoch", "lease", "order")
"""Fields in which the program counts, or that others say in words."""


def _told(changes: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield lines for people: each part of a session with what became of it, without what is empty."""
    shown = ""
    for change in sorted(changes, key=lambda change: str(change["path"]).partition(".")[0]):
        part, _, path = change["path"].partition(".")
        before, after = change.get("before") or None, change.get("after") or None
        if before == after or not {part, path.rpartition(".")[2]}.isdisjoint(_COUNTERS):
            continue
        if part != shown:
            yield f"  {part}"
            shown = part
        name = f"    {path}: " if path else "    "
        if before is None:
            yield f"{name}{_short(after)}"
        else:
            yield f"{name}{_short(before)} -> {_short(after) if after is not None else 'nothing'}"


_TIME = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_FIRST_TIME = 1e9
"""Seconds since the epoch from which on a number is a time: none is a duration of 30 years."""


def _short(value: Any) -> str:
    if isinstance(value, float) and value > _FIRST_TIME:
        return clock(iso(value))
    if isinstance(value, str) and _TIME.fullmatch(value):
        return clock(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"


def list_events(
    store: Store, row: SessionRow, options: InspectOptions, environ: Mapping[str, str]
) -> int:
    """Print the entries that match, oldest first; with `--watch` also each new one.

    JSON is one document, a line for each entry, with `--watch` one object a line.
    """
    redactor = redactor_of(environ, row.folder)
    views: Iterable[dict[str, Any]] = listed(store, row.session, _wanted(store, row, options))
    if options.last:
        views = deque(views, options.last)
    shown = map(redactor.data, views)
    head = {"session": row.session}
    if options.form == "tree":
        show_lines(map(entry_line, shown))
    elif options.watches:
        show_lines(document(view, None) for view in shown)
    elif options.form == "json":
        show_lines(map(escaped, document_lines(head, "events", shown)))
    else:
        from ..output import toml_lines

        show_lines(toml_lines(head, "events", shown))
    if options.watches:
        _follow(environ, store, row, options)
    return 0


def _follow(
    environ: Mapping[str, str], store: Store, row: SessionRow, options: InspectOptions
) -> None:
    """Print each entry after those of `row`, until Ctrl-C."""
    from . import watching

    redactor = redactor_of(environ, row.folder)
    only = replace(_wanted(store, row, options), upto=None)
    seq = row.seq
    for _ in watching.changes(environ, store, row.session):
        newest = store.row(row.session).seq
        for view in listed(store, row.session, replace(only, after=seq, upto=newest)):
            shown = redactor.data(view)
            show(entry_line(shown) if options.form == "tree" else document(shown, None))
        seq = newest


def _wanted(store: Store, row: SessionRow, options: InspectOptions) -> EntryFilter:
    """Make the filter of the options. Raises `UsageError` for an invalid moment."""
    after = _seq(store, row, options.since) if options.since else 0
    is_number = options.since.strip().isdigit()
    upto = _seq(store, row, options.until) if options.until else row.seq
    return EntryFilter(
        kinds=options.kinds,
        turn=options.turn,
        item=options.item,
        after=after - 1 if is_number else after,
        upto=upto,
    )


def _seq(store: Store, row: SessionRow, moment: str) -> int:
    from ...gateway.views.moment import seq_of

    return seq_of(store, row.session, row.seq, moment, now())


def inspect_session(environ: Mapping[str, str], options: InspectOptions) -> int:
    """Print what the options ask for of a session. Raises `UsageError`."""
    options.require_sense()
    if "/" in options.session:
        try:
            show(printed(saved_dump(options), options.form, environ), is_coloured=True)
        except (LookupError, TypeError, AttributeError) as error:
            raise UsageError(f"`{options.session}` is no whole dump of a session", DUMP) from error
        return 0
    from ...gateway.home.home import named_session

    with stored(environ) as store:
        row = named_session(store, options.session)
        if options.lists_events:
            return list_events(store, row, options, environ)
        if options.watches:
            from .watching import watch

            return watch(environ, store, row, options.form)
        if options.diff:
            return show_difference(environ, store, row, options.diff, options.form)
        if options.form == "mermaid":
            return _sequence(store, row, options.at)
        data = dump_at(store, row, options.at) if options.at else dump_now(environ, store, row)
    show(
        printed(redactor_of(environ, row.folder).data(data), options.form, environ),
        is_coloured=True,
    )
    return 0


def _sequence(store: Store, row: SessionRow, at: str) -> int:
    """Print the last turn up to a moment as a sequence diagram."""
    from ...gateway.views.moment import seq_of
    from ...gateway.views.sequence import last_turn

    seq = seq_of(store, row.session, row.seq, at, now()) if at else row.seq
    redactor = redactor_of(os.environ, row.folder)
    show(redactor.text(last_turn(store, row.session, seq, redactor)).rstrip("\n"))
    return 0
