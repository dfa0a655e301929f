"""What became of the wishes to have files as they were: their part of a session's state."""

from __future__ import annotations

from dataclasses import dataclass

from ..machines.revert import REVERT
from . import revert_entries as r
from .entries import Entry
from .fold import move

__all__ = ["RevertRecord", "apply_to_reverts"]

REMEMBERED = 20


@dataclass(slots=True)
class RevertRecord:
    """One wish, and what became of it; see `RevertAsked` and `Reverted` for the fields."""

    id: str
    scope: str
    turn: str = ""
    turns: tuple[str, ...] = ()
    since: str = ""
    paths: tuple[str, ...] = ()
    force: bool = False
    is_dry_run: bool = False
    state: str = "asked"
    files: int = 0
    restored: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is still to be carried out."""
        return self.state not in REVERT.final


def apply_to_reverts(reverts: dict[str, RevertRecord], entry: Entry) -> None:
    """Fold one entry, in place; others leave it alone."""
    match entry:
        case r.RevertAsked():
            reverts[entry.id] = RevertRecord(
                entry.id,
                entry.scope,
                entry.turn,
                entry.turns,
                entry.since,
                entry.paths,
                entry.force,
                entry.is_dry_run,
            )
            while len(reverts) > REMEMBERED:
                del reverts[next(iter(reverts))]
        case r.RevertBegun():
            move(REVERT, reverts[entry.id], "begin")
            reverts[entry.id].files = entry.files
        case r.Reverted():
            one = reverts[entry.id]
            move(REVERT, one, "restore")
            one.restored, one.kept, one.shared = entry.restored, entry.kept, entry.shared
            one.yours, one.notes = entry.yours, entry.notes
            one.turns = entry.turns or one.turns
        case r.RevertRefused():
            move(REVERT, reverts[entry.id], "refuse")
            reverts[entry.id].reason = entry.reason
        case _:
            pass
