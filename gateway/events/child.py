"""What machine interfaces are told of children: in the parent's stream, beside the child's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...journal import entries as e
from ...journal.record import SessionRecord
from ...machines.delivery import Relation


def is_aside(event: Mapping[str, Any]) -> bool:
    """Whether an event is a child's own doing, which a screen leaves out; not what it asks."""
    return "parent" in event and event["type"] != "question"


def of_child(entry: e.Entry, record: SessionRecord) -> list[dict[str, Any]]:
    """Return the events of an entry about a child; none for any other."""
    match entry:
        case e.ChildStarted():
            return [_started(entry)]
        case e.ChildResumed():
            child = record.children[entry.child]
            return [
                {"type": "child_started", "name": child.name, "task": child.task, "resumed": True}
            ]
        case e.ChildInterrupted():
            return [_ended(entry, record, "cancelled", resumable=True)]
        case e.ChildEnded():
            return [_ended(entry, record, entry.status)]
        case e.Offered(is_answered=False):
            return [_talk(entry)]
        case e.Offered():
            said = f"#{entry.number} in the queue is what {entry.child} says: {entry.text}"
            return [{"type": "notice", "text": f"{said}\n/queue steer, keep or pop it."}]
        case e.SteerArrived() if entry.turn:
            place = {"turn": entry.turn, "step": entry.step, "child": entry.child}
            return [{"type": "steered", "id": entry.item, **place}]
        case _:
            return []


def _started(entry: e.ChildStarted) -> dict[str, Any]:
    return {
        "type": "child_started",
        "name": entry.child,
        "task": entry.task,
        "id": entry.session,
        "agent": entry.agent,
        "relation": entry.relation,
        "waiting": entry.is_waiting,
    }


def _ended(
    entry: e.ChildInterrupted | e.ChildEnded,
    record: SessionRecord,
    status: str,
    *,
    resumable: bool = False,
) -> dict[str, Any]:
    child = record.children[entry.child]
    if child.relation == Relation.SIDE_TALK and not resumable:
        item = record.queue.items.get(child.item)
        number = item.number if item is not None else None
        name = {"name": child.name, "item": child.item, "number": number, "status": status}
        return {"type": "side_talk_ended", **name, "text": entry.text}
    killed = {"killed": list(entry.killed), "survivors": list(entry.survivors)}
    reason = getattr(entry, "reason", "") or getattr(entry, "why", "")
    ended = {"type": "child_ended", "name": entry.child, "status": status, **killed}
    return {
        **ended,
        **({"reason": reason} if reason else {}),
        **({"resumable": True} if resumable else {}),
    }


def _talk(entry: e.Offered) -> dict[str, Any]:
    return {
        "type": "accepted",
        "id": entry.item,
        "as": "side_talk",
        "number": entry.number,
        "position": None,
        "client_id": entry.client_id or None,
        "matched": "/smalltalk",
        "rule": "side-talk",
        "ack": "side_talk",
        "text": entry.text,
    }
