"""A session's dump, live or stored, now or at a moment; what is asked of it, and its formats."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from typing import Any, cast

from ...journal.store import SessionRow, Store
from ...machines.errors import StoreError, UsageError
from ...machines.json_shape import parse_json
from ...machines.value import Value
from ...workflows.foreign_file import read_text
from ...workflows.home_folder import expanded
from ...workflows.paths import Paths
from ..output import can_colour, document, warn

FORMATS = ("tree", "toml", "json", "mermaid", "svg")


class InspectOptions(Value):
    """The command line of `steersman inspect`; `diff` are two moments, `kinds` to `last` filters."""

    session: str
    form: str = "tree"
    at: str = ""
    diff: tuple[str, str] | None = None
    watches: bool = False
    lists_events: bool = False
    kinds: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    turn: str = ""
    item: str = ""
    last: int = 0

    def require_sense(self) -> None:
        """Raise `UsageError` for options that exclude each other."""
        if self.form not in FORMATS:
            raise UsageError(f"there is no format `{self.form}`", f"formats: {', '.join(FORMATS)}")
        ways = {
            "--events": self.lists_events,
            "--diff": self.diff,
            "--at": self.at,
            "--watch": self.watches and not self.lists_events,
        }
        asked = [name for name, value in ways.items() if value]
        if len(asked) > 1:
            raise UsageError(f"{' and '.join(asked)} exclude each other", "ask for one of them")
        if asked and asked[0] != "--at" and self.form in ("mermaid", "svg"):
            raise UsageError(f"{asked[0]} has no format `{self.form}`", "formats: tree, toml, json")
        filters = (self.kinds, self.since, self.until, self.turn, self.item, self.last)
        if any(filters) and not self.lists_events:
            raise UsageError("this filters the journal", "add `--events`")


def seq_at(store: Store, row: SessionRow, moment: str) -> int:
    """Return the number of the entry at a moment, in local time. Raises `UsageError`."""
    from ...gateway.views.moment import seq_of

    return seq_of(store, row.session, row.seq, moment, datetime.now().astimezone())


DUMP = "the output of `steersman inspect ID --format json` is one"
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
    from ...gateway.views.dump import dump_session

    return dump_session(store, row)


def dump_at(store: Store, row: SessionRow, moment: str) -> dict[str, Any]:
    """Dump a session as it was at a moment. Raises `UsageError`."""
    from ...gateway.views.dump import dump_session

    return dump_session(store, row, seq_at(store, row, moment))


def saved_dump(options: InspectOptions) -> dict[str, Any]:
    """Open a dump that was saved as JSON, by the path of its file. Raises `UsageError`."""
    if options.at or options.diff or options.watches or options.lists_events:
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


def printed(data: Mapping[str, Any], form: str, environ: Mapping[str, str]) -> str:
    """Write a dump in a format; secrets have been removed from it."""
    match form:
        case "json":
            return document(data)
        case "toml":
            from ..output import toml_document

            return toml_document(data)
        case "svg":
            from ...gateway.views.tree import tree_of, tree_picture

            return tree_picture(tree_of(dict(data))).rstrip("\n")
        case _:
            from ...gateway.views.tree import draw_dump

            is_wide = not sys.stdout.isatty()
            width = 0 if is_wide else shutil.get_terminal_size().columns
            return draw_dump(dict(data), width, is_coloured=can_colour(sys.stdout, environ))
