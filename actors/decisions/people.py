"""Whether a person may do what a message asks for: asked once, where the message arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...machines.delegation_messages import EndChild, SideTalk
from ...machines.goal_messages import ChangeGoal, SetGoal
from ...machines.messages import (
    Compact,
    Interrupt,
    QueueChange,
    Rename,
    ResumeQueue,
    Revert,
    RevertOutcome,
    TakeBack,
)
from ...machines.people import Deed, FromPerson, objection

if TYPE_CHECKING:
    from ...journal.record import SessionRecord


def obstacle(record: SessionRecord, asked: FromPerson) -> str:
    """Say why a person may not have a message carried out; empty if they may.

    What becomes of a message is decided when its row is known (`weigh`).
    """
    deed, owner = _deed(record, asked)
    return objection(asked.may, deed, asked.user, owner)


def owner_of_turn(record: SessionRecord) -> str:
    """Return who began the running turn; empty if none runs, or if no person began it."""
    turn = record.running
    item = record.queue.items.get(turn.item) if turn is not None else None
    return item.said.user if item is not None else ""


def _deed(record: SessionRecord, asked: FromPerson) -> tuple[Deed, str]:
    """Return what a message does, and whose work that concerns."""
    match asked.message:
        case SideTalk() | ResumeQueue(number=None) | RevertOutcome():
            return Deed.SPEAK, ""
        case SetGoal(gates=gates) if gates:  # commands that are run without a question
            return Deed.APPROVE, ""
        case QueueChange() as change:
            return _change(record, asked, change)
        case Interrupt():
            return Deed.STOP, owner_of_turn(record)
        case Revert() | TakeBack() | EndChild():
            return Deed.STOP, ""
        case ResumeQueue() | SetGoal() | ChangeGoal() | Rename() | Compact():
            return Deed.STEER, ""
        case _:
            return Deed.APPROVE, ""


def _change(record: SessionRecord, asked: FromPerson, change: QueueChange) -> tuple[Deed, str]:
    """Return what a change of the queue does: everyone who may speak may change their own message."""
    live = record.queue.live()
    found = [item for item in live if item.number == change.number] if change.number else live[-1:]
    is_own = [item.said.user for item in found] == [asked.user]
    match change.op:
        case "steer":
            return Deed.STEER, owner_of_turn(record)
        case "end_edit":
            return Deed.SPEAK, ""
        case "withdraw" | "edit" | "begin_edit" | "keep" if is_own:
            return Deed.SPEAK, ""
        case "withdraw" | "edit" | "begin_edit" | "keep":
            return Deed.STOP, found[0].said.user if found else ""
        case "move" | "release":
            return Deed.STEER, ""
        case "clear" | "hold":
            return Deed.STOP, ""
