"""`steersman inspect` and `why`: a session's state, its journal, two moments, or a message's story."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Annotated, Any, cast

from msgspec.structs import replace

from ...gateway.home.home import named_session
from ...gateway.views.dump import dump_session, without_unknown_times
from ...gateway.views.journal_view import EntryFilter, changes, entry_line, listed
from ...gateway.views.moment import seq_of
from ...gateway.wording.formats import clock, document_lines, iso, one_line
from ...gateway.wording.redaction import Redactor, redactor_of
from ...journal.store import SessionRow, Store
from ...machines.errors import StoreError, UsageError
from ...machines.json_shape import parse_json
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ...workflows.foreign_file import read_text
from ...workflows.home_folder import expanded
from ...workflows.paths import Paths
from ..options import Json, Session, argument, flag, option, taking
from ..output import (
    can_colour,
    document,
    escaped,
    show,
    show_lines,
    toml_document,
    toml_lines,
    warn,
)
from ..stored import stored


def seq_at(store: Store, row: SessionRow, moment: str) -> int:
    """Return the number of the entry at a moment, in local time. Raises `UsageError`."""
    return seq_of(store, row.session, row.seq, moment, datetime.now().astimezone())


ANSWER = 2.0
"""Seconds that a live owner has to answer, before the store is read."""


def dump_now(environ: Mapping[str, str], store: Store, row: SessionRow) -> dict[str, Any]:
    """Dump a session from its owner process; without one, or without an answer, from the store."""
    from ...gateway.reach import SessionReach

    reach = SessionReach(Paths.of(environ), environ, store)
    owner = reach.owner(row.session)
    if owner is not None:
        try:
            with closing(reach.remote(row.session, owner, timeout=ANSWER)) as remote:
                live: dict[str, Any] = remote.call("inspect")
                return live
        except StoreError as error:
            warn(f"steersman: {error.message}; showing what is stored")
    return dump_session(store, row)


def printed(data: Mapping[str, Any], form: str, environ: Mapping[str, str]) -> str:
    """Write a dump in a format; secrets have been removed from it."""
    match form:
        case "json":
            return document(without_unknown_times(data))
        case "toml":
            return toml_document(without_unknown_times(data))
        case "svg":
            from ...gateway.views.tree import tree_of, tree_picture

            return tree_picture(tree_of(dict(data))).rstrip("\n")
        case _:
            from ...gateway.views.tree import draw_dump

            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
            return draw_dump(dict(data), width, is_coloured=can_colour(environ))


FORMATS = ("tree", "toml", "json", "mermaid", "svg")
DUMP = "the output of `steersman inspect ID --format json` is one"


class InspectOptions(Value):
    """The command line of `steersman inspect`; `diff` are two moments, `kind` to `last` filters."""

    session: Session = "last"
    form: Annotated[str, option("FORMAT", "tree, toml, json, mermaid or svg.", "--format")] = "tree"
    at: Annotated[
        str,
        option(
            "SEQ|TIME",
            "A past moment: 48, 14:03, yesterday 14:03, tue 14:03, 5m ago, 2026-11-17T14:03.",
        ),
    ] = ""
    watch: Annotated[bool, flag("--watch", "Update the output until Ctrl-C.")] = False
    diff: Annotated[
        tuple[str, str] | None, option("A B", "Show the changes between two moments.")
    ] = None
    events: Annotated[bool, flag("--events", "List the journal.")] = False
    kind: Annotated[
        list[str] | None, option("KIND", "Events of a kind, or `tool_*`; repeatable.")
    ] = None
    since: Annotated[str, option("SEQ|TIME", "Events from then on.")] = ""
    until: Annotated[str, option("SEQ|TIME", "Events up to then.")] = ""
    turn: Annotated[str, option("ID", "Events of a turn.")] = ""
    item: Annotated[str, option("ID", "Events of a message.")] = ""
    last: Annotated[int, option("N", "The last N events.")] = 0

    def require_sense(self) -> None:
        """Raise `UsageError` for options that exclude each other."""
        if self.form not in FORMATS:
            raise UsageError(f"there is no format `{self.form}`", f"formats: {', '.join(FORMATS)}")
        ways = {
            "--events": self.events,
            "--diff": self.diff,
            "--at": self.at,
            "--watch": self.watch and not self.events,
        }
        asked = [name for name, value in ways.items() if value]
        if len(asked) > 1:
            raise UsageError(f"{' and '.join(asked)} exclude each other", "ask for one of them")
        if asked and asked[0] != "--at" and self.form in ("mermaid", "svg"):
            raise UsageError(f"{asked[0]} has no format `{self.form}`", "formats: tree, toml, json")
        filters = (self.kind, self.since, self.until, self.turn, self.item, self.last)
        if any(filters) and not self.events:
            raise UsageError("this filters the journal", "add `--events`")


def saved_dump(options: InspectOptions) -> dict[str, Any]:
    """Open a dump that was saved as JSON, by the path of its file. Raises `UsageError`."""
    if options.at or options.diff or options.watch or options.events:
        raise UsageError("a saved dump is one moment", "only `--format` goes with a file")
    if options.form == "mermaid":
        raise UsageError("a saved dump has no format `mermaid`", "formats: tree, toml, json, svg")
    path = expanded(options.session)
    try:
        data = parse_json(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"`{path}` cannot be opened: {error}", DUMP) from error
    if not isinstance(data, dict) or "turns" not in data or "actors" not in data:
        raise UsageError(f"`{path}` is no dump of a session", DUMP)
    return cast("dict[str, Any]", data)


def show_difference(
    redactor: Redactor, store: Store, row: SessionRow, moments: tuple[str, str], form: str
) -> None:
    """Print each field of a session that differs between two moments."""
    before, after = (
        redactor.data(dump_session(store, row, seq_at(store, row, moment))) for moment in moments
    )
    found = [found for found in changes(before, after) if found["path"] not in ("seq", "updated")]
    data = {"session": row.session, "from": before["seq"], "to": after["seq"], "changes": found}
    if form in ("json", "toml"):
        show(printed(data, form, os.environ))
    else:
        show(f"from entry {data['from']} to entry {data['to']}:")
        show_lines(_told(found))
        show(
            f"`steersman why {row.session} ID` tells how a message, turn or subagent came to this."
        )


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


def list_events(redactor: Redactor, store: Store, row: SessionRow, options: InspectOptions) -> None:
    """Print the entries that match, oldest first; with `--watch` also each new one.

    JSON is one document, a line for each entry, with `--watch` one object a line.
    """
    after = seq_at(store, row, options.since) if options.since else 0
    wanted = EntryFilter(
        kinds=tuple(options.kind or ()),
        turn=options.turn,
        item=options.item,
        after=after - options.since.strip().isdigit(),
        upto=seq_at(store, row, options.until) if options.until else row.seq,
    )
    views: Iterable[dict[str, Any]] = listed(store, row.session, wanted)
    if options.last:
        views = deque(views, options.last)
    shown = map(redactor.data, views)
    head = {"session": row.session}
    line = entry_line if options.form == "tree" else partial(document, indent=None)
    if options.form == "tree" or options.watch:
        show_lines(map(line, shown))
    elif options.form == "json":
        show_lines(map(escaped, document_lines(head, "events", shown)))
    else:
        show_lines(toml_lines(head, "events", shown))
    if options.watch:  # each entry after those of `row`, until Ctrl-C
        from . import watching

        seq = row.seq
        for _ in watching.changes(store, row.session):
            newest = store.row(row.session).seq
            for view in listed(store, row.session, replace(wanted, after=seq, upto=newest)):
                show(line(redactor.data(view)))
            seq = newest


@taking(InspectOptions)
def inspect(options: InspectOptions) -> None:
    """Show what every part of a session is doing, or was doing at any moment.

    Mermaid is the last turn as a sequence diagram, SVG the tree as a picture. A path, such as
    ./dump.json, opens a dump that was saved as JSON.

    Example: steersman inspect last --at "5m ago"
    """
    options.require_sense()
    if "/" in options.session:
        try:
            show(printed(saved_dump(options), options.form, os.environ), is_coloured=True)
        except (LookupError, TypeError, AttributeError) as error:
            raise UsageError(f"`{options.session}` is no whole dump of a session", DUMP) from error
        return
    with stored(os.environ) as store:
        row = named_session(store, options.session)
        redactor = redactor_of(os.environ, row.folder)
        if options.events:
            list_events(redactor, store, row, options)
        elif options.watch:
            from .watching import watch

            def dump() -> str:
                data = redactor.data(dump_now(os.environ, store, store.row(row.session)))
                is_line = options.form == "json" and not sys.stdout.isatty()
                return document(data, None) if is_line else printed(data, options.form, os.environ)

            watch(store, row.session, dump)
        elif options.diff:
            show_difference(redactor, store, row, options.diff, options.form)
        elif options.form == "mermaid":  # the last turn up to a moment
            from ...gateway.views.sequence import last_turn

            seq = seq_at(store, row, options.at) if options.at else row.seq
            show(redactor.text(last_turn(store, row.session, seq, redactor)).rstrip("\n"))
        else:
            if options.at:
                data = dump_session(store, row, seq_at(store, row, options.at))
            else:
                data = dump_now(os.environ, store, row)
            show(printed(redactor.data(data), options.form, os.environ), is_coloured=True)


STORY_FORMATS = ("text", "json", "toml", "mermaid")


def why(
    session: Session = "last",
    message: Annotated[
        str, argument("MESSAGE", "Its number, id or receipt; if left out, the newest.")
    ] = "last",
    form: Annotated[str, option("FORMAT", "text, json, toml or mermaid.", "--format")] = "text",
    cache: Annotated[
        bool, flag("--cache", "Say which calls of the model missed the prompt cache, and why.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell the story of one message: what became of it, when, by which rule, and what it waits for.

    Example: steersman why last 2
    """
    form = "json" if as_json else form
    if form not in STORY_FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(STORY_FORMATS)}")
    from ...gateway.views.story import story_of

    with stored(os.environ) as store:
        row = named_session(store, session)
        redactor = redactor_of(os.environ, row.folder)
        if cache:
            from ...gateway.views.cache import cache_data, cache_text, cached_calls

            calls = cached_calls(store, row)
            about = cache_data(row.session, calls, redactor)
            show(
                cache_text(calls, redactor) if form == "text" else printed(about, form, os.environ)
            )
            return
        is_owned = store.is_owned(row.session)
        story, entries = story_of(store, row, message, redactor, is_owned=is_owned)
    view = redactor.data(story)
    match form:
        case "json" | "toml":
            show(printed(view, form, os.environ))
        case "mermaid":
            from ...gateway.views.sequence import sequence

            show(redactor.text(sequence(story.get("turn", ""), entries)).rstrip("\n"))
        case _:
            show("\n".join(_lines(view)))


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
