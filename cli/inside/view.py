"""A session's dump: live, dead or at a moment, and in the form in which it is printed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow
from ...machines.errors import StoreError
from ...workflows.paths import Paths
from ..page import can_colour, document, warn
from .look import now

ANSWER = 2.0
"""Seconds that a live owner has to answer, before the store is asked."""


def dump_now(environ: Mapping[str, str], store: SqliteStore, row: SessionRow) -> dict[str, Any]:
    """Ask the process that has the session open; without one, or without an answer, read the store."""
    owner = store.owner(row.session)
    if owner is not None and owner.pid != os.getpid():
        from ...gateway.remote import Remote

        try:
            state = Paths.of(environ).state
            with closing(Remote.connect(state, row.session, owner, ANSWER)) as remote:
                live: dict[str, Any] = remote.call("inspect")
                return live
        except StoreError as error:
            warn(f"steersman: {error.message}; showing what is stored")
    from ...gateway.dumps.dump import dump_session

    return dump_session(store, row)


def dump_at(store: SqliteStore, row: SessionRow, moment: str) -> dict[str, Any]:
    """Fold the session up to a moment. Raises `UsageError`."""
    from ...gateway.dumps.dump import dump_session
    from ...gateway.dumps.moment import seq_of

    return dump_session(store, row, seq_of(store, row.session, row.seq, moment, now()))


def printed(data: Mapping[str, Any], form: str, environ: Mapping[str, str]) -> str:
    """Write a dump that is safe to show in a form."""
    match form:
        case "json":
            return document(data)
        case "toml":
            from ..toml import toml_document

            return toml_document(data)
        case "svg":
            from ...gateway.dumps.tree import tree_of
            from ...gateway.dumps.tree_picture import tree_picture

            return tree_picture(tree_of(dict(data))).rstrip("\n")
        case _:
            from ...gateway.dumps.tree import draw_dump

            is_wide = not sys.stdout.isatty()
            width = 0 if is_wide else shutil.get_terminal_size().columns
            return draw_dump(dict(data), width, is_coloured=can_colour(sys.stdout, environ))
