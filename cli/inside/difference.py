"""`steersman inspect --diff A B`: what changed in a session between two moments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...gateway.dumps.change import changes
from ...gateway.redaction import Redactor
from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow
from ..page import show, show_document
from .view import dump_at

__all__ = ["show_difference"]


def show_difference(
    environ: Mapping[str, str],
    store: SqliteStore,
    row: SessionRow,
    moments: tuple[str, str],
    form: str,
) -> int:
    """Print each field that differs between two moments."""
    redactor = Redactor(environ)
    before, after = (redactor.data(dump_at(store, row, one)) for one in moments)
    found = [one for one in changes(before, after) if one["path"] not in ("seq", "updated")]
    data = {
        "session": row.session,
        "from": before["seq"],
        "to": after["seq"],
        "changes": found,
    }
    if form == "json":
        show_document(data)
    elif form == "toml":
        from ..toml import show_toml

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
