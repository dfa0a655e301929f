"""What changed between two dumps of a session: field by field, by the path that leads there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...workflows.document import is_list, is_table

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
