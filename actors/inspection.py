"""What an actor shows of itself when it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..journal.codec import encode
from ..journal.record import SessionRecord

if TYPE_CHECKING:
    from .mailbox import Mailbox
    from .supervisor import Child

__all__ = ["inspect_session"]


def inspect_session(
    record: SessionRecord, mailbox: Mailbox, children: dict[str, Child]
) -> dict[str, Any]:
    """Return the session's record without its conversation, and its actors, as plain data."""
    data: dict[str, Any] = encode(replace(record, conversation=[], sources=[]))
    data["messages"] = record.spoken
    data["actors"] = {
        "session": {"mailbox": _depth(mailbox)},
        **{name: _of_child(child) for name, child in children.items()},
    }
    return data


def _of_child(child: Child) -> dict[str, Any]:
    """Return how a child does: its mail by lane, and how often it was restarted."""
    return {"mailbox": _depth(child.mailbox), "restarts": child.restarts}


def _depth(mailbox: Mailbox) -> dict[str, int]:
    system, control, data = mailbox.depth()
    return {"system": system, "control": control, "data": data}
