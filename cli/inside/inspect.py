"""`steersman inspect`: a session as it is, was, became; live, dead or at any moment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...gateway.redaction import Redactor
from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow
from ..page import show
from ..stored import stored
from .look import Look, now
from .view import dump_at, dump_now, printed

__all__ = ["inspect_session"]


def inspect_session(environ: Mapping[str, str], look: Look) -> int:
    """Print what every part of a session does, did, or did last. Raises `UsageError`."""
    look.require_sense()
    from ...gateway.home import named_session

    with stored(environ) as store:
        row = named_session(store, look.session)
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


def _sequence(store: SqliteStore, row: SessionRow, at: str) -> int:
    """Print the last turn up to a moment as a sequence diagram."""
    from ...gateway.dumps.moment import seq_of
    from ...gateway.dumps.sequence import last_turn

    seq = seq_of(store, row.session, row.seq, at, now()) if at else row.seq
    redactor = Redactor(os.environ)
    show(redactor.text(last_turn(store, row.session, seq)).rstrip("\n"))
    return 0
