"""Journals as they are compared between interfaces."""

import json
import re
import sqlite3
from itertools import groupby
from typing import Any

from support.driver import Place

__all__ = ["Entry", "journals"]

Entry = dict[str, Any]


def journals(place: Place) -> list[list[Entry]]:
    """Return the entries of each session of a home, the oldest session first, in their normal form."""
    home = sqlite3.connect(place.home / "state" / "journal.db")
    rows = home.execute("SELECT session, data FROM entries ORDER BY session, seq").fetchall()
    began = dict(home.execute("SELECT session, min(time) FROM entries GROUP BY session"))
    home.close()
    names = {
        name: f"session-{at}" for at, name in enumerate(sorted(began, key=began.__getitem__), 1)
    }
    known = {str(place.home.parent): "~", **names}
    found = {
        name: [_normal(data, known) for _, data in entries]
        for name, entries in groupby(rows, key=lambda row: row[0])
    }
    return [found[name] for name in names]


def _normal(data: str, known: dict[str, str]) -> Entry:
    text = re.sub("|".join(map(re.escape, known)), lambda found: known[found[0]], data)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    return json.loads(text, object_hook=_counted)


def _counted(part: Entry) -> Entry:
    """Give how many processes were killed in place of their ids."""
    return {**part, "killed": len(part["killed"])} if "killed" in part else part
