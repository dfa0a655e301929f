"""The routing of a child's result: the third routing table.

A child ends when it likes, and its parent may by then wait for it, do something else, be stopping, or
be gone. A result never starts anything that a person did not ask for: where nothing runs it is
offered, and waits until a person steers, keeps or drops it.
"""

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
    GONE = "gone"  # it was stopped with a turn that cannot go on any more
    OVER = "over"  # the parent ends permanently


class SessionOwner(StrEnum):
    """The owner of the parent's session."""

    PERSON = "person"
    AGENT = "agent"  # itself a child: there is no person to offer anything to


class Return(StrEnum):
    """The delivery of a result."""

    ANSWER = "answer"  # it is the tool call's result
    BOUNDARY = "boundary"  # it enters the running turn at its next boundary
    OFFER = "offer"  # it waits in the queue, and never runs automatically
    RUN = "run"  # it is the parent's next message
    KEEP = "keep"  # it stays with the child's record


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
            name="parent-over",
            when=when(parent=Awaited.OVER),
            action=Return.KEEP,
            why="The session that asked for it has ended.",
        ),
        ReturnRow(
            name="turn-gone",
            when=when(parent=Awaited.GONE),
            action=Return.KEEP,
            why="The turn that asked for it was taken back, or ended without it.",
        ),
        ReturnRow(
            name="side-talk",
            when=when(relation=Relation.SIDE_TALK),
            action=Return.OFFER,
            why="A side talk enters the turn only if the person chooses so.",
        ),
        ReturnRow(
            name="call-result",
            when=when(parent=Awaited.CALL),
            action=Return.ANSWER,
            why="The turn waits for this result.",
        ),
        ReturnRow(
            name="next-boundary",
            when=when(parent=Awaited.BUSY),
            action=Return.BOUNDARY,
            why="The agent asked for it and can use it now.",
        ),
        ReturnRow(
            name="next-message",
            when=when(parent=(Awaited.IDLE, Awaited.ENDING), owner=SessionOwner.AGENT),
            action=Return.RUN,
            why="A child continues with the results of its own children.",
        ),
        ReturnRow(
            name="offered",
            when=when(parent=(Awaited.IDLE, Awaited.ENDING)),
            action=Return.OFFER,
            why="Nothing starts automatically: the person decides how to use it.",
        ),
    ),
)


def give_back(table: Table[ReturnRow], relation: str, parent: str, owner: str) -> ReturnRow:
    """Return the row that decides a result; raises `MachineError` for an unknown value."""
    return table.decide((relation, parent, owner))
