"""What became of the wishes to have files as they were: their part of a session's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..machines.lifecycles import REVERT
from . import revert_entries as r
from .entries import Entry
from .fold import changed, moved
from .revert_entries import Reverted

# What the model is told when files that it changed were given back --------------------------------


NAMED = 20
"""Files that it is told by name."""


def news_of(entry: Reverted) -> str:
    """Say to the model what became of its files, in front of the next message; empty if nothing."""
    if entry.is_dry_run or not entry.restored:
        return ""
    count = len(entry.restored)
    names = ", ".join(entry.restored[:NAMED]) + (", …" if count > NAMED else "")
    files = "1 file" if count == 1 else f"{count} files"
    what = (
        f"took back a revert: {files} hold your changes again"
        if entry.scope == "undo"
        else f"reverted your changes of {files}, which are as they were before"
    )
    return f"[The user {what}: {names}. Read them anew before you go on.]"


REMEMBERED = 20


@dataclass(frozen=True, slots=True)
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


def apply_to_reverts(
    reverts: Mapping[str, RevertRecord], entry: Entry
) -> Mapping[str, RevertRecord]:
    """Return the wishes after one entry; one that is not about them leaves them as they are."""
    match entry:
        case r.RevertAsked():
            return _ask(reverts, entry)
        case r.RevertStarted() | r.RevertBegun() | r.Reverted() | r.RevertRefused():
            return {**reverts, entry.id: _moved(reverts[entry.id], entry)}
        case _:
            return reverts


def _ask(reverts: Mapping[str, RevertRecord], entry: r.RevertAsked) -> Mapping[str, RevertRecord]:
    asked = RevertRecord(
        entry.id,
        entry.scope,
        entry.turn,
        entry.turns,
        entry.since,
        entry.paths,
        entry.force,
        entry.is_dry_run,
    )
    after = {**reverts, entry.id: asked}
    while len(after) > REMEMBERED:
        del after[next(iter(after))]
    return after


def _moved(
    revert: RevertRecord, entry: r.RevertStarted | r.RevertBegun | r.Reverted | r.RevertRefused
) -> RevertRecord:
    match entry:
        case r.RevertStarted():
            return changed(revert, state=moved(REVERT, revert.state, "start"))
        case r.RevertBegun():
            state = moved(REVERT, revert.state, "begin")
            return changed(revert, state=state, files=entry.files)
        case r.RevertRefused():
            state = moved(REVERT, revert.state, "refuse")
            return changed(revert, state=state, reason=entry.reason)
        case r.Reverted():
            return changed(
                revert,
                state=moved(REVERT, revert.state, "restore"),
                restored=entry.restored,
                kept=entry.kept,
                shared=entry.shared,
                yours=entry.yours,
                notes=entry.notes,
                turns=entry.turns or revert.turns,
            )
