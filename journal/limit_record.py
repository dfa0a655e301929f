"""How limits are folded: what was sent and never answered is counted, too; grants add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import entries as e
from .entry import Entry
from .limit_entries import LimitsGranted

if TYPE_CHECKING:
    from .record import SessionRecord


def apply_limits(record: SessionRecord, entry: Entry) -> None:
    """Fold one entry into what a session has used and may use; others leave it alone."""
    match entry:
        case LimitsGranted():
            record.grants += 1
        case e.AnswerCut() | e.Interrupted():
            _lose(record, entry.turn)
        case e.Recovered():
            _lose(record, record.turn)
        case _:
            pass


def _lose(record: SessionRecord, turn: str) -> None:
    """Count what was sent and is not answered; the turn itself forgets it."""
    if turn in record.turns:
        record.lost += record.turns[turn].sent
