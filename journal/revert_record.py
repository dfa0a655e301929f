"""A session's reverts as data, and the fold of the entries that change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from msgspec.structs import replace

from ..machines.delivery import Relation
from ..machines.lifecycles import REVERT, RUN
from ..machines.value import Value
from ..workflows.spelling import counted_paths
from . import entries as e
from .child_record import ChildRecord, Children
from .fold import EntryKinds, moved
from .run_record import RunRecord

REMEMBERED = 20
NAMED = 20
"""Files that are named to the model."""


class RevertRecord(Value):
    """One revert."""

    asked: e.RevertAsked
    """The request."""
    state: str = "asked"
    """A state of the revert machine."""
    files: int = 0
    """How many files are about to be restored."""
    outcome: e.Reverted | None = None
    """What came of it."""
    reason: str = ""
    """Why nothing was changed."""

    @property
    def id(self) -> str:
        """Its name in this session."""
        return self.asked.id

    @property
    def is_open(self) -> bool:
        """Whether it is still to be carried out."""
        return self.state not in REVERT.final


_Folded = e.AnyRevertEntry
_FOLDED = EntryKinds[_Folded](_Folded)


def apply_to_reverts(
    reverts: Mapping[str, RevertRecord], entry: e.Entry
) -> Mapping[str, RevertRecord]:
    """Return the reverts after one entry; one that is not about them leaves them as they are."""
    if not _FOLDED.include(entry):
        return reverts
    match entry:
        case e.RevertAsked():
            after = {**reverts, entry.id: RevertRecord(asked=entry)}
            while len(after) > REMEMBERED:
                del after[next(iter(after))]
            return after
        case e.RevertStarted() | e.RevertBegun() | e.Reverted() | e.RevertRefused():
            return {**reverts, entry.id: _moved(reverts[entry.id], entry)}
        case _:
            assert_never(entry)


def _moved(
    revert: RevertRecord, entry: e.RevertStarted | e.RevertBegun | e.Reverted | e.RevertRefused
) -> RevertRecord:
    match entry:
        case e.RevertStarted():
            return replace(revert, state=moved(REVERT, revert.state, "start"))
        case e.RevertBegun():
            return replace(revert, state=moved(REVERT, revert.state, "begin"), files=entry.files)
        case e.RevertRefused():
            state = moved(REVERT, revert.state, "refuse")
            return replace(revert, state=state, reason=entry.reason)
        case e.Reverted():
            return replace(revert, state=moved(REVERT, revert.state, "restore"), outcome=entry)


def taken_back(reverts: Mapping[str, RevertRecord], turn: str) -> set[str]:
    """Return the files of a turn that reverts restored, and that were not given back since."""
    paths: set[str] = set()
    for known in reverts.values():
        done = known.outcome
        if done is None or done.is_dry_run:
            continue
        if done.scope == "undo":
            paths.difference_update(done.restored)
        elif turn in done.turns:
            paths.update(done.restored)
    return paths


def beside(children: Children, reverts: Mapping[str, RevertRecord]) -> list[ChildRecord]:
    """Return the children that work beside turns, or were interrupted, oldest first; no side talks.

    One that was interrupted, and whose turn's files were taken back, does not go on by itself.
    """
    kinds = (Relation.BACKGROUND_CHILD, Relation.DETACHED_CHILD)
    there = (child for child in children.values() if child.relation in kinds)
    return [
        child
        for child in there
        if child.is_at_work
        or (child.state == "interrupted" and not taken_back(reverts, child.turn))
    ]


REVERTED = "reverted"
"""How a run is in lists whose work is undone."""
OVER = frozenset({*RUN.final, REVERTED})
"""How a run is that cannot go on."""


def result_of(run: RunRecord, reverts: Mapping[str, RevertRecord]) -> str:
    """Return the state of a run for lists: that of its machine, or that its work is undone."""
    return REVERTED if was_taken_back(reverts) else run.state


def was_taken_back(reverts: Mapping[str, RevertRecord]) -> bool:
    """Whether a revert restored the files that a run changed, and none gave them back since."""
    is_undone = False
    for known in reverts.values():
        done = known.outcome
        if done is not None and done.restored and done.scope != "last" and not done.is_dry_run:
            is_undone = done.scope == "turn"
    return is_undone


def news_of(entry: e.Reverted) -> str:
    """Return what tells the model, before the next message, that its files changed; empty if none did."""
    if entry.is_dry_run or not entry.restored:
        return ""
    count = len(entry.restored)
    names = ", ".join(entry.restored[:NAMED]) + (", …" if count > NAMED else "")
    files = counted_paths(entry.restored)
    if entry.scope == "undo" and set(entry.shared) >= set(entry.restored):
        return f"[The user says that these changes are the user's own: {names}. Read them again.]"
    what = (
        f"took back a revert: {files} {'holds' if count == 1 else 'hold'} your changes again"
        if entry.scope == "undo"
        else f"reverted your changes of {files} to what was there before"
    )
    return f"[The user {what}: {names}. Read them again before you go on.]"
