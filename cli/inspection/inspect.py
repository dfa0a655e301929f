"""`steersman inspect` and `why`: a session's state, its journal, two moments, or a message's story."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ...gateway.views.journal_view import EntryFilter, changes, entry_line, listed
from ...gateway.wording.formats import clock, document_lines, iso, one_line
from ...gateway.wording.redaction import Redactor, redactor_of
from ...journal.store import SessionRow, Store
from ...machines.errors import UsageError
from ...machines.pattern import lazy_pattern
from ..output import document, escaped, show, show_document, show_lines
from ..stored import stored
from .view import DUMP, InspectOptions, dump_at, dump_now, printed, saved_dump, seq_at


def show_difference(
    redactor: Redactor, store: Store, row: SessionRow, moments: tuple[str, str], form: str
) -> int:
    """Print each field of a session that differs between two moments."""
    before, after = (redactor.data(dump_at(store, row, moment)) for moment in moments)
    found = [found for found in changes(before, after) if found["path"] not in ("seq", "updated")]
    data = {"session": row.session, "from": before["seq"], "to": after["seq"], "changes": found}
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


_COUNTERS = ("stopped", "epoch", "lease", "order", "marks")
"""Fields in which the program counts, or that others say in words."""
_NOTHING: tuple[Any, ...] = ("", 0, False, -1, [], {}, None)
"""What says that something has not happened."""


def _told(changes: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield lines for people: each part of a session with what became of it, without what is empty."""
    shown = ""
    for change in sorted(changes, key=lambda change: str(change["path"]).partition(".")[0]):
        part, _, path = change["path"].partition(".")
        before, after = (
            None if (value := change.get(moment)) in _NOTHING else value
            for moment in ("before", "after")
        )
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
    if isinstance(value, float):
        return f"{value:.3g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, 120)


def list_events(
    redactor: Redactor,
    store: Store,
    row: SessionRow,
    options: InspectOptions,
    environ: Mapping[str, str],
) -> int:
    """Print the entries that match, oldest first; with `--watch` also each new one.

    JSON is one document, a line for each entry, with `--watch` one object a line.
    """
    wanted = _wanted(store, row, options)
    views: Iterable[dict[str, Any]] = listed(store, row.session, wanted)
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
    if options.watches:  # each entry after those of `row`, until Ctrl-C
        from . import watching

        seq = row.seq
        for _ in watching.changes(environ, store, row.session):
            newest = store.row(row.session).seq
            for view in listed(store, row.session, replace(wanted, after=seq, upto=newest)):
                data = redactor.data(view)
                show(entry_line(data) if options.form == "tree" else document(data, None))
            seq = newest
    return 0


def _wanted(store: Store, row: SessionRow, options: InspectOptions) -> EntryFilter:
    """Make the filter of the options. Raises `UsageError` for an invalid moment."""
    after = seq_at(store, row, options.since) if options.since else 0
    after -= options.since.strip().isdigit()
    upto = seq_at(store, row, options.until) if options.until else row.seq
    kinds, turn, item = options.kinds, options.turn, options.item
    return EntryFilter(kinds=kinds, turn=turn, item=item, after=after, upto=upto)


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
        redactor = redactor_of(environ, row.folder)
        if options.lists_events:
            return list_events(redactor, store, row, options, environ)
        if options.watches:
            from .watching import watch

            return watch(environ, store, row, options.form)
        if options.diff:
            return show_difference(redactor, store, row, options.diff, options.form)
        if options.form == "mermaid":  # the last turn up to a moment
            from ...gateway.views.sequence import last_turn

            seq = seq_at(store, row, options.at) if options.at else row.seq
            show(redactor.text(last_turn(store, row.session, seq, redactor)).rstrip("\n"))
            return 0
        data = dump_at(store, row, options.at) if options.at else dump_now(environ, store, row)
    show(printed(redactor.data(data), options.form, environ), is_coloured=True)
    return 0


STORY_FORMATS = ("text", "json", "toml", "mermaid")


def tell_why(environ: Mapping[str, str], session: str, message: str, form: str) -> int:
    """Print the history of a message: each entry, its transitions, and its time. Raises `UsageError`."""
    if form not in STORY_FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(STORY_FORMATS)}")
    from ...gateway.home.home import named_session
    from ...gateway.views.story import story_of

    with stored(environ) as store:
        row = named_session(store, session)
        redactor = redactor_of(environ, row.folder)
        is_owned = store.is_owned(row.session)
        story, entries = story_of(store, row, message, redactor, is_owned=is_owned)
    view = redactor.data(story)
    match form:
        case "json":
            show_document(view)
        case "toml":
            from ..output import show_toml

            show_toml(view)
        case "mermaid":
            from ...gateway.views.sequence import sequence

            show(redactor.text(sequence(story.get("turn", ""), entries)).rstrip("\n"))
        case _:
            show("\n".join(_lines(view)))
    return 0


def _lines(view: dict[str, Any]) -> list[str]:
    message = view["message"]
    number = f"#{message['number']} " if "number" in message else ""
    sender = f", from {message['user']}" if message["user"] else ""
    about = f"({message['id']}, {message['state']}{sender})"
    text = " ".join(message["text"].split())
    lines = [f"session {view['session']}, message {number}{about}"]
    lines += [f'  "{text}"'] if text else []
    lines.append("")
    times = [
        f"+{hop['after']:.3f} s" if hop["after"] else clock(hop["time"]) for hop in view["hops"]
    ]
    width = max(14, *map(len, times))
    for time, hop in zip(times, view["hops"], strict=True):
        lines.append(f"  {time:>{width}}  entry {hop['seq']:<5} {hop['text']}")
        lines += [
            f"{'':>{width + 16}}{move['what']}: {move['from'] or '(new)'} -> {move['to']}"
            for move in hop["moved"]
        ]
    lines += ["", view["outlook"]]
    return [*lines, f"  {view['hint']}"] if view.get("hint") else lines
