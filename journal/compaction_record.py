"""How a conversation grows, and how it is put together anew when older turns were summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..machines.context import Fill
from ..machines.conversation import ChatMessage
from .compaction_entries import Compacted, CompactionBegun
from .entry import Entry
from .log import Log
from .turn_record import move_turn

if TYPE_CHECKING:
    from .record import SessionRecord


def grown(conversation: Log[ChatMessage], entry: Entry) -> Log[ChatMessage]:
    """Return a conversation with what an entry holds of it; the same one if it holds nothing."""
    said: tuple[ChatMessage, ...] = getattr(entry, "messages", ())
    if isinstance(entry, Compacted):
        return Log((*said, *conversation[entry.dropped :]))
    return conversation.extended(said)


def apply_compaction(record: SessionRecord, entry: Entry, time: float) -> None:
    """Fold what happens to the turn that sums up; other entries leave the record alone."""
    match entry:
        case CompactionBegun():
            turn = record.turns[entry.turn]
            event = "overflow" if turn.state == "calling" else "compact"
            cut: dict[str, Any] = {
                "compacted_at": entry.step,
                "dropped": entry.dropped,
                "refusal": entry.refusal,
            }
            turn = move_turn(turn, event, time, since=time, sent=entry.tokens, **cut)
            record.turns = {**record.turns, turn.id: turn}
        case Compacted():
            turn = record.turns[entry.turn]
            usage = turn.usage + entry.usage
            turn = move_turn(turn, "compacted", time, since=time, usage=usage, sent=0)
            record.turns = {**record.turns, turn.id: turn}
            record.usage += entry.usage
            record.compactions += 1
            record.fill = Fill()
            record.seeded = len(entry.messages) + max(0, record.seeded - entry.dropped)
        case _:
            pass
