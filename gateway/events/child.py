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
                    type="child_started", **at, name=child.name, task=child.task, resumed=True
                )
            ]
        case e.ChildInterrupted() if record.children[entry.child].relation == Relation.SIDE_TALK:
            ended = _side_talk_ended(entry, "cancelled", record, at)
            ended["resumable"] = True
            return [ended]
        case e.ChildInterrupted():
            event = _ended(entry, "cancelled", entry.why, at)
            event["resumable"] = True
            return [event]
        case e.ChildEnded() if record.children[entry.child].was_interrupted:
            return []  # a child ends once: it was told when it was interrupted
        case e.ChildEnded() if record.children[entry.child].relation == Relation.SIDE_TALK:
            return [_side_talk_ended(entry, entry.status, record, at)]
        case e.ChildEnded():
            return [_ended(entry, entry.status, entry.reason, at)]
        case e.Offered(is_answered=False):
            return [_side_talk_accepted(entry, at)]
        case e.Offered():
            answer = (
                f"#{entry.number} in the queue is the answer of {entry.child}: {entry.said.text}"
            )
            text = f"{answer}\n/queue steer, keep or pop it."
            return [c.NoticeEvent(type="notice", **at, text=text)]
        case e.SteerArrived() if entry.turn:
            arrived = steered(record.queue, entry.item, entry.turn, entry.step, at)
            arrived["child"] = entry.child
            return [arrived]
        case e.SteerArrived() | e.ChildAdmitted() | e.ChildCancelled() | e.ChildDetached():
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
    entry: e.ChildInterrupted | e.ChildEnded, status: str, reason: str, at: c.Stamp
) -> c.ChildEndedEvent:
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
    return event


def _side_talk_ended(
    entry: e.ChildEnded | e.ChildInterrupted, status: str, record: SessionRecord, at: c.Stamp
) -> c.SideTalkEndedEvent:
    child = record.children[entry.child]
    item = record.queue.items.get(child.item)
    return c.SideTalkEndedEvent(
        type="side_talk_ended",
        **at,
        name=child.name,
        item=child.item,
        number=item.number if item is not None else None,
        status=status,
        text=entry.text,
    )


_SIDE_TALK = m.Routed(said_as="side_talk", matched="/smalltalk", rule="side-talk", ack="side_talk")


def _side_talk_accepted(entry: e.Offered, at: c.Stamp) -> c.Event:
    return accepted(
        at,
        id=entry.item,
        number=entry.number,
        said=replace(entry.said, user=""),
        routed=_SIDE_TALK,
        has_words=False,
    )
