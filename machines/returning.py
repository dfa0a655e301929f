"""What becomes of a child's result: the third routing table.

A child ends when it likes, and its parent may by then wait for it, do something else, be stopping, or
be gone. A result never starts anything that a person did not ask for: where nothing runs it is
offered, and waits until somebody steers, keeps or drops it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .delivery import Relation
from .routing import Row, Table, when


class Awaited(StrEnum):
    """How the parent stands to a child that has just ended."""

    CALL = "call"  # the tool call that made the child waits for it
    BUSY = "busy"  # a turn runs that takes in what comes at its boundaries
    ENDING = "ending"  # a turn is being stopped
    IDLE = "idle"  # nothing runs
    OVER = "over"  # the parent ends for good


class SessionOwner(StrEnum):
    """Whose session the parent is."""

    PERSON = "person"
    AGENT = "agent"  # itself a child: nobody is there to be offered anything


class Return(StrEnum):
    """What is done with a result."""

    ANSWER = "answer"  # it is the tool call's result
    BOUNDARY = "boundary"  # it enters the running turn at its next boundary
    OFFER = "offer"  # it waits in the queue, and never runs by itself
    RUN = "run"  # it is the parent's next message
    KEEP = "keep"  # it stays with the child's record


@dataclass(frozen=True, slots=True)
class ReturnRow(Row):
    """One rule, and why it is so."""

    action: Return
    why: str


_CHILDREN: Final = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD)

DEFAULT_RETURNS: Final = Table(
    "returns",
    {
        "relation": (*_CHILDREN, Relation.SIDE_TALK),
        "parent": tuple(Awaited),
        "owner": tuple(SessionOwner),
    },
    (
        ReturnRow(
            "nobody-left",
            when(parent=Awaited.OVER),
            Return.KEEP,
            "The session that asked for it has ended.",
        ),
        ReturnRow(
            "side-talk",
            when(relation=Relation.SIDE_TALK),
            Return.OFFER,
            "It was asked beside the work, and enters it only if the person wants that.",
        ),
        ReturnRow(
            "call-result",
            when(parent=Awaited.CALL),
            Return.ANSWER,
            "The turn waits for exactly this.",
        ),
        ReturnRow(
            "next-boundary",
            when(parent=Awaited.BUSY),
            Return.BOUNDARY,
            "The agent asked for it and can use it now.",
        ),
        ReturnRow(
            "next-message",
            when(parent=(Awaited.IDLE, Awaited.ENDING), owner=SessionOwner.AGENT),
            Return.RUN,
            "An agent that works for another goes on with what its own children found.",
        ),
        ReturnRow(
            "offered",
            when(parent=(Awaited.IDLE, Awaited.ENDING)),
            Return.OFFER,
            "Nothing starts by itself: a person decides what it is for.",
        ),
    ),
)


def give_back(table: Table[ReturnRow], relation: str, parent: str, owner: str) -> ReturnRow:
    """Return what becomes of a result; raises `MachineError` for an unknown value."""
    return table.decide((relation, parent, owner))
