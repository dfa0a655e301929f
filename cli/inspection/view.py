"""A session's dump, live or stored, now or at a moment, and its formats."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

from ...journal.store import SessionRow, Store
from ...machines.errors import StoreError
from ...workflows.paths import Paths
from ..output import can_colour, document, warn


def seq_at(store: Store, row: SessionRow, moment: str) -> int:
    """Return the number of the entry at a moment, in local time. Raises `UsageError`."""
    from ...gateway.views.moment import seq_of

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
    from ...gateway.views.dump import dump_session

    return dump_session(store, row)


def dump_at(store: Store, row: SessionRow, moment: str) -> dict[str, Any]:
    """Dump a session as it was at a moment. Raises `UsageError`."""
    from ...gateway.views.dump import dump_session

    return dump_session(store, row, seq_at(store, row, moment))


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
