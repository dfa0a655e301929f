"""What an actor shows of itself when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..journal.codec import encode
from ..journal.record import SessionRecord

if TYPE_CHECKING:
    from .supervisor import Child

__all__ = ["inspect_child", "inspect_session"]


def inspect_session(record: SessionRecord, children: dict[str, Child]) -> dict[str, Any]:
    """Return the session's record without its conversation, and its actors, as plain data."""
    data: dict[str, Any] = encode(record)
    data.pop("conversation", None)
    data.pop("sources", None)
    data["messages"] = len(record.conversation)
    data["actors"] = {name: inspect_child(child) for name, child in children.items()}
    return data


def inspect_child(child: Child) -> dict[str, Any]:
    """Return how a child does: supervision state, restarts, mail by lane, its last message."""
    system, control, data = child.mailbox.depth()
    owner = child.mailbox.owner
    return {
        "kind": child.ref.actor_class.__name__.lower(),
        "supervised": child.state,
        "restarts": child.restarts,
        "mailbox": {"system": system, "control": control, "data": data},
        "last_message": owner.last_message if owner is not None else "",
    }
