"""A session's journal for people and programs: its entries, filtered, and the changes between dumps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from ...journal.store import Store, StoredEntry
from ...machines.value import Value
from ...workflows.document import is_list, is_table
from ..wording.formats import clock, iso, one_line

_SHOWN = 200  # characters of a value
_PASSING = ("transitions", "hooks", "last_messages", "last_message", "order")
"""Fields that grow with every entry, or that repeat other fields."""


class EntryFilter(Value):
    """Selects entries of a journal. `kinds` are names or patterns (`tool_*`), none for all.

    `turn`, `item` and `call` are ids that an entry must name. `after` < seq <= `upto`.
    """

    kinds: tuple[str, ...] = ()
    turn: str = ""
    item: str = ""
    call: str = ""
    after: int = 0
    upto: int | None = None

    def wants(self, stored: StoredEntry) -> bool:
        """Whether an entry is selected."""
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
    """Yield the selected entries, oldest first: number, time, kind, and own fields of each."""
    for stored in store.entries(session, wanted.after, wanted.upto):
        if wanted.wants(stored):
            fields = {name: value for name, value in stored.data.items() if name != "kind"}
            kind = stored.data.get("kind", "")
            yield {"seq": stored.seq, "time": iso(stored.time), "kind": kind, **fields}


def entry_line(view: dict[str, Any]) -> str:
    """Write an entry as one line, with the number of its messages instead of their texts."""
    fields = (
        f"{name}={_short(value)}"
        for name, value in view.items()
        if name not in ("seq", "time", "kind", "messages", "system", "tools")
    )
    time = clock(view["time"], "milliseconds")
    messages = [f"+{len(view['messages'])} messages"] if view.get("messages") else []
    return "  ".join([f"{view['seq']:>6}", time, view["kind"], *fields, *messages])


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, _SHOWN)


def changes(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Compare two dumps of a session: yield `{path, before, after}` for each field that differs.

    `before` or `after` is left out if the field was not there.
    """
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
    """Write a list as a line; return any other value unchanged."""
    return ", ".join(str(part) for part in value) if is_list(value) else value
