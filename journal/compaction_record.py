"""How a conversation grows, and how it is put together anew when older turns were summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machines.context import Fill
from ..machines.conversation import ChatMessage
from ..machines.turn import TURN
from .compaction_entries import Compacted, CompactionBegun
from .entry import Entry
from .fold import move

if TYPE_CHECKING:
    from .record import SessionRecord

__all__ = ["apply_compaction", "grow"]


def grow(conversation: list[ChatMessage], entry: Entry) -> bool:
    """Add to a conversation what an entry holds, in place; whether it holds anything."""
    said: tuple[ChatMessage, ...] = getattr(entry, "messages", ())
    if isinstance(entry, Compacted):
        conversation[: entry.dropped] = said
        return True
    conversation.extend(said)
    return bool(said)


def apply_compaction(record: SessionRecord, entry: Entry, time: float) -> None:
    """Fold what happens to the turn that sums up; other entries leave the record alone."""
    match entry:
        case CompactionBegun():
            turn = record.turns[entry.turn]
            move(TURN, turn, "overflow" if turn.state == "calling" else "compact")
            turn.since = time
        case Compacted():
            turn = record.turns[entry.turn]
            move(TURN, turn, "compacted")
            turn.since = time
            turn.usage += entry.usage
            record.usage += entry.usage
            record.compactions += 1
            record.fill = Fill()
            record.seeded = len(entry.messages) + max(0, record.seeded - entry.dropped)
        case _:
            pass
