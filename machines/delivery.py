"""Whom a cause reaches: the second routing table.

A cause arises at one session; each relation of that session then gets what its row says. A child
is a session, too, and uses the same table: a `cancel` that reaches it arises there as cause
`parent`, a `finalize` as `finalize`, a `steer` as `steer`. So what reaches a child reaches its
children by the same rows, and no code walks the tree.

A row that spares somebody says why. A turn that is cancelled ends, which is a cause of its own
(`turn_end`), and not one by which anybody else is stopped.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .routing import Row, Table, when

__all__ = ["DEFAULT_DELIVERIES", "Cause", "Delivery", "DeliveryRow", "Relation", "deliver"]


class Cause(StrEnum):
    """Why something is to be told."""

    STOP = "stop"  # /stop, Esc, an explicit interrupt
    NEW = "new"  # /new
    BARE_WORD = "bare_word"  # a message of nothing but interrupt words, or a revert
    MORE_WORD = "more_word"  # an interrupt word in a message that says more
    MESSAGE = "message"  # a message that interrupts by the busy mode or the strategy
    SIGNAL = "signal"  # Ctrl-C, SIGTERM, SIGHUP
    TIMEOUT = "timeout"  # a turn's time limit
    BUDGET = "budget"  # a session's limit of tokens, cost or time
    PARENT = "parent"  # the parent cancels this session
    FINALIZE = "finalize"  # the session ends for good
    TURN_END = "turn_end"  # a turn ended, for whatever reason
    STEER = "steer"  # a steer for the turn itself
    STEER_THROUGH = "steer_through"  # a steer for those the turn waits for
    STEER_NAMED = "steer_named"  # a steer for one child, by its name


class Relation(StrEnum):
    """Who somebody is to the session at which a cause arises."""

    SELF = "self"
    PARENT = "parent"
    FOREGROUND_CHILD = "foreground_child"
    BACKGROUND_CHILD = "background_child"
    SIDE_TALK = "side_talk"
    SIBLING = "sibling"
    GOAL = "goal"


class Delivery(StrEnum):
    """What somebody gets."""

    CANCEL = "cancel"  # the running turn ends now and can be resumed
    FINALIZE = "finalize"  # the session ends for good
    STEER = "steer"  # the text, at the next boundary
    NONE = "none"


@dataclass(frozen=True, slots=True)
class DeliveryRow(Row):
    """One rule; `why` explains it, and must not be empty where somebody is spared."""

    action: Delivery
    why: str


_CHILDREN: Final = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD)
_BELOW: Final = (*_CHILDREN, Relation.SIDE_TALK)
_CANCELS: Final = (Cause.STOP, Cause.BARE_WORD, Cause.SIGNAL, Cause.PARENT, Cause.BUDGET)

DEFAULT_DELIVERIES: Final = Table(
    "deliveries",
    {"cause": tuple(Cause), "relation": tuple(Relation)},
    (
        DeliveryRow(
            "never-up-or-aside",
            when(relation=(Relation.PARENT, Relation.SIBLING)),
            Delivery.NONE,
            "A parent learns of it by the child's result; siblings are the parent's to decide.",
        ),
        DeliveryRow(
            "cancel-all",
            when(cause=_CANCELS, relation=(Relation.SELF, *_BELOW, Relation.GOAL)),
            Delivery.CANCEL,
            "Who wants work to stop means all of it, beside it and after it, too.",
        ),
        DeliveryRow(
            "finalize-all",
            when(
                cause=(Cause.NEW, Cause.FINALIZE), relation=(Relation.SELF, *_BELOW, Relation.GOAL)
            ),
            Delivery.FINALIZE,
            "Nothing outlives the session it belongs to.",
        ),
        DeliveryRow(
            "timeout",
            when(cause=Cause.TIMEOUT, relation=(Relation.SELF, Relation.FOREGROUND_CHILD)),
            Delivery.CANCEL,
            "The limit is the turn's, and of those who work for it.",
        ),
        DeliveryRow(
            "timeout-aside",
            when(cause=Cause.TIMEOUT, relation=(Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)),
            Delivery.NONE,
            "They outlive the turn anyway, and have limits of their own.",
        ),
        DeliveryRow(
            "timeout-goal",
            when(cause=Cause.TIMEOUT, relation=Relation.GOAL),
            Delivery.NONE,
            "A turn's limit is not the goal's; turn after turn that fails pauses it.",
        ),
        DeliveryRow(
            "talk-first",
            when(cause=(Cause.MESSAGE, Cause.MORE_WORD), relation=Relation.GOAL),
            Delivery.NONE,
            "The message runs first, then the goal goes on.",
        ),
        DeliveryRow(
            "stop-alone",
            when(cause=(Cause.MESSAGE, Cause.MORE_WORD), relation=Relation.SELF),
            Delivery.CANCEL,
            "The message runs next.",
        ),
        DeliveryRow(
            "talk-spares",
            when(cause=(Cause.MESSAGE, Cause.MORE_WORD), relation=_BELOW),
            Delivery.NONE,
            "Talk never stops a child.",
        ),
        DeliveryRow(
            "turn-end",
            when(cause=Cause.TURN_END),
            Delivery.NONE,
            "The end of a turn destroys nothing: children go on, their results come as messages.",
        ),
        DeliveryRow(
            "steer",
            when(cause=Cause.STEER, relation=Relation.SELF),
            Delivery.STEER,
            "The turn takes it in at its next boundary.",
        ),
        DeliveryRow(
            "steer-through",
            when(cause=Cause.STEER_THROUGH, relation=Relation.FOREGROUND_CHILD),
            Delivery.STEER,
            "Whoever works takes it in: all active children, or the one that was named.",
        ),
        DeliveryRow(
            "steer-named",
            when(cause=Cause.STEER_NAMED, relation=_BELOW),
            Delivery.STEER,
            "Whoever is named takes it in, whether the turn waits for it or not.",
        ),
        DeliveryRow(
            "steer-elsewhere",
            when(cause=(Cause.STEER, Cause.STEER_THROUGH, Cause.STEER_NAMED)),
            Delivery.NONE,
            "A steer is for one conversation, not for all around it.",
        ),
    ),
)


def deliver(table: Table[DeliveryRow], cause: str, relation: str) -> DeliveryRow:
    """Return what a relation gets from a cause; raises `MachineError` for an unknown value."""
    return table.decide((cause, relation))
