"""What a turn is begun for, and what is known of the model's window then."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...journal.record import SessionRecord
from ...machines.context import Fill
from ...machines.messages import Compact
from ...machines.orders import Enqueue

__all__ = ["COMPACTION", "Purpose", "compaction_order", "purpose_of"]

COMPACTION = "compaction"
"""The purpose of an item that says nothing to the model: the conversation is to be summed up."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """`kind` is empty for a message; `wish` is what a person wants a summary to hold."""

    kind: str = ""
    wish: str = ""
    fill: Fill = field(default_factory=Fill)


def compaction_order(message: Compact) -> Enqueue:
    """Order the queue to have the conversation summed up before anything else runs."""
    text = f"/compact {message.wish}".rstrip()
    return Enqueue(text, "turn", message.user, "", "", "", is_next=True, purpose=COMPACTION)


def purpose_of(name: str, record: SessionRecord) -> Purpose:
    """Say what the turn of an item is for, and how much of the conversation was counted."""
    item, fill = record.queue.items[name], record.fill
    if fill.messages:
        since = record.spoken - fill.messages
        fill = Fill(fill.tokens, max(0, len(record.conversation) - since))
    wish = item.text.partition(" ")[2].strip() if item.purpose else ""
    return Purpose(item.purpose, wish, fill)
