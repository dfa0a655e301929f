"""The line on leaving: what was saved, and how to go on."""

from __future__ import annotations

from ..gateway.attached import Attached
from ..gateway.conversation import Conversation
from ..journal.store import SessionRow
from ..machines.errors import StoreError


def farewell(conversation: Conversation | Attached, *, is_kept: bool = True) -> str:
    """Say it of a session that was just let go of; `is_kept` is false where nothing is on disk."""
    if isinstance(conversation, Attached):  # whoever has it open goes on
        return f"Session {conversation.session} goes on where it runs."
    if not is_kept:
        return "Nothing is saved: auto_queue.persistence.enabled is false."
    try:
        rows = conversation.runtime.store.sessions()
    except StoreError:  # it was told when it happened
        return ""
    row = next((one for one in rows if one.session == conversation.session), None)
    if row is None:
        return ""
    if row.state == "finalized":
        return f"Session {row.session} has ended for good; `steersman sessions show` tells it."
    return f"Saved{_left(row)}. Go on with: steersman chat --resume {row.session}"


def _left(row: SessionRow) -> str:
    parts = [
        f"{count} {word}"
        for count, word in ((row.interrupted, "interrupted"), (row.waiting, "waiting"))
        if count
    ]
    return f", with {' and '.join(parts)}" if parts else ""
