"""What is told when files are given back."""

from __future__ import annotations

from typing import Any

from ...journal import revert_entries as r
from ...journal.record import SessionRecord

__all__ = ["of_revert"]


def of_revert(
    entry: r.RevertBegun | r.Reverted | r.RevertRefused, record: SessionRecord
) -> list[dict[str, Any]]:
    """Return the events of a revert; of one that only looks there are none."""
    known = record.reverts[entry.id]
    if known.is_dry_run:
        return []
    match entry:
        case r.RevertBegun() if entry.files and known.scope != "undo":
            return [{"type": "notice", "text": f"Reverting file {entry.files} changes..."}]
        case r.RevertRefused():
            text = f"not reverted: {entry.reason}"
            return [{"type": "error", "code": "not_reverted", "text": text, "hint": ""}]
        case r.Reverted():
            return [
                {
                    "type": "reverted",
                    "id": entry.id,
                    "scope": entry.scope,
                    "turns": list(entry.turns),
                    "restored": list(entry.restored),
                    "kept": [path for path, _ in entry.kept],
                    "why": dict(entry.kept),
                    "shared": list(entry.shared),
                    "yours": list(entry.yours),
                    "notes": list(entry.notes),
                }
            ]
        case _:
            return []
