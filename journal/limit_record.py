"""How limits are folded: what was sent and never answered is counted, too; grants add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import entries as e
from .compaction_entries import Compacted, CompactionBegun
from .entry import Entry
from .limit_entries import LimitsGranted

if TYPE_CHECKING:
    from .record import SessionRecord

__all__ = ["apply_limits"]


def apply_limits(record: SessionRecord, entry: Entry) -> None:
    """Fold one entry into what a session has used and may use; others leave it alone."""
    turn = record.turns.get(getattr(entry, "turn", "") or record.turn)
    match entry:
        case LimitsGranted():
            record.grants += 1
        case e.ModelCalled() if turn is not None:
            turn.sent = entry.tokens
        case CompactionBegun() if turn is not None:
            turn.sent = entry.tokens
        case Compacted() | e.Answered() | e.ModelCallFailed() if turn is not None:
            turn.sent = 0
        case e.AnswerCut() | e.Interrupted() | e.Recovered() if turn is not None:
            record.lost += turn.sent
            turn.sent = 0
        case _:
            pass
