"""`steersman inspect`: a session as it is, was, became; live, dead or at any moment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..gateway.redaction import Redactor
from ..journal.sqlite import SqliteStore
from ..journal.store import SessionRow
from ..machines.errors import StoreError, UsageError
from ..workflows.paths import Paths
from .page import can_colour, document, show, warn
from .stored import stored

__all__ = ["FORMATS", "Look", "dump_at", "dump_now", "inspect_session", "now", "printed"]

FORMATS = ("tree", "toml", "json", "mermaid", "svg")
ANSWER = 2.0
"""Seconds that a live owner has to answer, before the store is asked."""


@dataclass(frozen=True, slots=True)
class Look:
    """What to look at, and how: `diff` are two moments, `kinds` and what follows filter events."""

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


def inspect_session(environ: Mapping[str, str], look: Look) -> int:
    """Print what every part of a session does, did, or did last. Raises `UsageError`."""
    _require_sense(look)
    from ..gateway.home import find_session

    with stored(environ) as store:
        row = find_session(store.sessions(), look.session)
        if look.lists_events:
            from .events import list_events

            return list_events(store, row, look, environ)
        if look.watches:
            from .watching import watch

            return watch(environ, store, row, look.form)
        if look.diff:
            from .difference import show_difference

            return show_difference(environ, store, row, look.diff, look.form)
        if look.form == "mermaid":
            return _sequence(store, row, look.at)
        data = dump_at(store, row, look.at) if look.at else dump_now(environ, store, row)
    show(printed(Redactor(environ).data(data), look.form, environ))
    return 0


def dump_now(environ: Mapping[str, str], store: SqliteStore, row: SessionRow) -> dict[str, Any]:
    """Ask whoever has the session open; where nobody has, or answers, the store."""
    from ..gateway.dump import dump_session

    owner = store.owner(row.session)
    if owner is not None and owner.pid != os.getpid():
        from ..gateway.remote import Remote

        try:
            state = Paths.of(environ).state
            with closing(Remote.connect(state, row.session, owner, ANSWER)) as remote:
                live: dict[str, Any] = remote.call("inspect")
                return live
        except StoreError as error:
            warn(f"steersman: {error.message}; this is what the store holds")
    return dump_session(store, row)


def dump_at(store: SqliteStore, row: SessionRow, moment: str) -> dict[str, Any]:
    """Fold the session up to a moment. Raises `UsageError`."""
    from ..gateway.dump import dump_session
    from ..gateway.moment import seq_of

    return dump_session(store, row, seq_of(store, row.session, row.seq, moment, now()))


def printed(data: Mapping[str, Any], form: str, environ: Mapping[str, str]) -> str:
    """Write a dump that is safe to show in a form."""
    match form:
        case "json":
            return document(data)
        case "toml":
            import tomli_w

            return tomli_w.dumps(data).rstrip("\n")
        case "svg":
            from ..gateway.tree import tree_of
            from ..gateway.tree_picture import tree_picture

            return tree_picture(tree_of(dict(data))).rstrip("\n")
        case _:
            from ..gateway.tree import draw_dump

            is_wide = not sys.stdout.isatty()
            width = 0 if is_wide else shutil.get_terminal_size().columns
            return draw_dump(dict(data), width, is_coloured=can_colour(sys.stdout, environ))


def now() -> datetime:
    """Return the person's time, with its zone."""
    return datetime.now().astimezone()


def _sequence(store: SqliteStore, row: SessionRow, at: str) -> int:
    """Print the last turn up to a moment as a sequence diagram."""
    from ..gateway.moment import seq_of
    from ..gateway.sequence import last_turn

    seq = seq_of(store, row.session, row.seq, at, now()) if at else row.seq
    redactor = Redactor(os.environ)
    show(redactor.text(last_turn(store, row.session, seq)).rstrip("\n"))
    return 0


def _require_sense(look: Look) -> None:
    if look.form not in FORMATS:
        raise UsageError(f"there is no format `{look.form}`", f"formats: {', '.join(FORMATS)}")
    ways = {
        "--events": look.lists_events,
        "--diff": look.diff,
        "--at": look.at,
        "--watch": look.watches and not look.lists_events,
    }
    asked = [name for name, value in ways.items() if value]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} exclude each other", "ask for one of them")
    if asked and asked[0] != "--at" and look.form in ("mermaid", "svg"):
        raise UsageError(f"{asked[0]} has no format `{look.form}`", "formats: tree, toml, json")
    filters = (look.kinds, look.since, look.until, look.turn, look.item, look.last)
    if any(filters) and not look.lists_events:
        raise UsageError("this filters the journal", "say `--events`, too")
