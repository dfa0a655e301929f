"""The events about children in the parent's stream, beside the child's own."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.queue_record import QueueRecord
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.delivery import Relation
from ..wording.acknowledgement import accepted
from . import contract as c


def of_child(
    entry: e.AnyChildEntry | e.Offered | e.SteerArrived, record: SessionRecord, at: c.Stamp
) -> list[c.Event]:
    """Return the events of an entry about a child."""
    match entry:
        case e.ChildStarted():
            return [
                c.ChildStartedEvent(
                    type="child_started",
                    **at,
                    name=entry.child,
                    task=entry.task,
                    id=entry.session,
                    agent=entry.agent,
                    relation=entry.relation,
                    waiting=entry.is_waiting,
                )
            ]
        case e.ChildResumed():
            child = record.children[entry.child]
            return [
                c.ChildStartedEvent(
                    type="child_started",
                    **at,
                    name=child.name,
                    task=child.task,
                    id=child.session,
                    resumed=True,
                )
            ]
        case e.ChildInterrupted() | e.ChildEnded():
            return _ended(entry, record, at)
        case e.Offered(is_answered=False):
            said, name, number = replace(entry.said, user=""), entry.item, entry.number
            routed = _SIDE_TALK
            return [accepted(at, id=name, number=number, said=said, routed=routed, has_words=False)]
        case e.Offered():
            number, said = entry.number, entry.said
            text = f"#{number} in the queue is the answer of {entry.child}: {said.text}\n"
            text += f"`/queue steer {number}` hands it over, `keep` or `pop` decides otherwise."
            return [c.notice(at, text)]
        case e.SteerArrived() if entry.turn:
            arrived = steered(record.queue, entry.item, entry.turn, entry.step, at)
            arrived["child"] = entry.child
            return [arrived]
        case e.SteerArrived() | e.NoEvent():
            return []
        case _:
            assert_never(entry)


def steered(queue: QueueRecord, name: str, turn: str, step: int, at: c.Stamp) -> c.SteeredEvent:
    """Return the event of a steer that entered a turn."""
    item = queue.items.get(name)
    number, text = (item.number, item.text) if item is not None else (None, "")
    return c.SteeredEvent(
        type="steered", **at, id=name, number=number, text=text, turn=turn, step=step
    )


def _ended(
    entry: e.ChildInterrupted | e.ChildEnded, record: SessionRecord, at: c.Stamp
) -> list[c.Event]:
    """Return the event of a child's end; it ends once, so none if it was interrupted before."""
    child = record.children[entry.child]
    if isinstance(entry, e.ChildInterrupted):
        status, reason, is_paused = "cancelled", entry.why, True
    elif child.was_interrupted:
        return []
    else:
        status, reason, is_paused = entry.status, entry.reason, False
    event: c.SideTalkEndedEvent | c.ChildEndedEvent
    if child.relation == Relation.SIDE_TALK:
        item = record.queue.items.get(child.item)
        event = c.SideTalkEndedEvent(
            type="side_talk_ended",
            **at,
            name=child.name,
            item=child.item,
            number=item.number if item is not None else None,
            status=status,
            text=entry.text,
        )
    else:
        event = c.ChildEndedEvent(
            type="child_ended",
            **at,
            name=entry.child,
            status=status,
            killed=list(entry.killed),
            survivors=list(entry.survivors),
        )
        if reason:
            event["reason"] = reason
    if is_paused:
        event["resumable"] = True
    return [event]


_SIDE_TALK = m.Routed(said_as="side_talk", matched="/smalltalk", rule="side-talk", ack="side_talk")
