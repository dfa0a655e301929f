"""A session's journal, listed and filtered: each entry as data, and as a line for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from ...journal.store import Store, StoredEntry
from ...machines.value import Value
from ...workflows.document import is_list, is_table
from ..formats import clock, iso

_SHOWN = 200  # characters of a value


class EntryFilter(Value):
    """Which entries are wanted. `kinds` are names or patterns (`tool_*`), none for all.

    `turn`, `item` and `call` are ids that an entry must name. `after` < seq <= `upto`.
    """

    kinds: tuple[str, ...] = ()
    turn: str = ""
    item: str = ""
    call: str = ""
    after: int = 0
    upto: int | None = None

    def wants(self, stored: StoredEntry) -> bool:
        """Whether an entry is among them."""
        data = stored.data
        kind = data.get("kind", "")
        if self.kinds and not any(fnmatchcase(kind, pattern) for pattern in self.kinds):
            return False
        is_of_item = not self.item or self.item in (
            data.get("item"),
            data.get("new_item"),
            *data.get("items", ()),
        )
        is_of_turn = not self.turn or data.get("turn") == self.turn
        return is_of_item and is_of_turn and self.call in ("", data.get("call"))


def listed(store: Store, session: str, wanted: EntryFilter) -> Iterator[dict[str, Any]]:
    """Yield the entries that are wanted, oldest first."""
    for stored in store.entries(session, wanted.after, wanted.upto):
        if wanted.wants(stored):
            yield entry_view(stored)


def entry_view(stored: StoredEntry) -> dict[str, Any]:
    """Show an entry as programs see it: its number, its time, its kind, its own fields."""
    kind = stored.data.get("kind", "")
    fields = {name: value for name, value in stored.data.items() if name != "kind"}
    return {"seq": stored.seq, "time": iso(stored.time), "kind": kind, **fields}


def entry_line(view: dict[str, Any]) -> str:
    """Write an entry as one line; what its messages say is left to the conversation."""
    fields = (
        f"{name}={_short(value)}"
        for name, value in view.items()
        if name not in ("seq", "time", "kind", "messages", "system", "tools")
    )
    time = clock(view["time"], "milliseconds")
    said = [f"+{len(view['messages'])} messages"] if view.get("messages") else []
    return "  ".join([f"{view['seq']:>6}", time, view["kind"], *fields, *said])


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


# What changed between two dumps of a session: field by field, by the path that leads there --------


_PASSING = ("transitions", "hooks", "last_messages", "last_message", "order")
"""What grows with every entry, or is said by other fields."""


def changes(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield `{path, before, after}` for each field that differs; what was not there is left out."""
    if is_table(before) and is_table(after):
        for name in [*before, *(added for added in after if added not in before)]:
            if name not in _PASSING:
                inner = f"{path}.{name}" if path else str(name)
                yield from changes(before.get(name), after.get(name), inner)
        return
    if before == after:
        return
    if is_table(after) and before is None:
        yield from changes({}, after, path)
        return
    both = {"before": _plain(before), "after": _plain(after)}
    yield {"path": path, **{name: value for name, value in both.items() if value is not None}}


def _plain(value: Any) -> Any:
    """Say a list of plain values in a line; leave the rest."""
    if is_list(value):
        return ", ".join(str(part) for part in value)
    return value
