"""The dry run of a message, with reasons: both tables asked without anything being done.

The same answer serves the dry run (`steersman routes explain`), the comparison of two tables and the
replay of a session under another one. A `Recipient` is a session or goal that a cause may reach; where
the recipients are not known, each relation stands for those that there may be.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ..machines.delivery import Cause, Delivery, DeliveryRow, Relation
from ..machines.disposition import DispositionRow
from ..machines.routes import Routes
from ..machines.value import Value

RELATIONS: Final[Mapping[str, str]] = {
    Relation.SELF: "the turn",
    Relation.PARENT: "the parent",
    Relation.FOREGROUND_CHILD: "a child that the turn waits for",
    Relation.DETACHED_CHILD: "a child that the turn waits for, declared to go on without it",
    Relation.BACKGROUND_CHILD: "a child in the background",
    Relation.SIDE_TALK: "a side talk",
    Relation.SIBLING: "a sibling",
    Relation.GOAL: "the goal",
}

CAUSES: Final[Mapping[str, str]] = {
    Cause.STOP: "/stop, or Esc",
    Cause.NEW: "/new",
    Cause.BARE_WORD: "a message of only interrupt words, or a revert",
    Cause.MORE_WORD: "an interrupt word in a longer message",
    Cause.MESSAGE: "a message that interrupts by the busy mode or the strategy",
    Cause.SIGNAL: "the program is left: /exit, or a signal",
    Cause.TIMEOUT: "a child reaches its time limit",
    Cause.BUDGET: "the session reaches a limit of tokens, cost, time or model calls",
    Cause.NO_PROGRESS: "the turn repeats itself, and nobody lets it go on",
    Cause.PARENT: "the parent is stopped",
    Cause.PARENT_BOUNDARY: "the parent is stopped, at the boundary of what runs",
    Cause.FINALIZE: "/finalize",
    Cause.TURN_ENDED: "the turn ends, for whatever reason",
    Cause.STEER: "a steer for the turn",
    Cause.STEER_THROUGH: "a steer for the children that the turn waits for",
    Cause.STEER_NAMED: "/steer @NAME TEXT",
}
"""The origin of each cause, as people see it."""

SITUATIONS: Final[Mapping[str, str]] = {
    "idle": "nothing runs",
    "held": "nothing runs, and the queue is held",
    "unattended": "no turn runs, but background children or a goal do",
    "busy": "a turn runs, and no child",
    "accompanied": "a turn runs, with children in the background",
    "delegating": "a turn waits for a child",
    "interrupting": "a turn is being stopped",
    "overtaken": "a stop overtook the message",
    "finalizing": "the session ends",
}


class Recipient(Value):
    """A recipient of a cause: the session itself, a child, a side talk, a goal."""

    name: str
    relation: Relation


class ExplainedDelivery(Value):
    """A recipient's delivery, and the row that decides it."""

    who: Recipient
    row: DeliveryRow


class Explanation(Value):
    """The row that decides about a message, and what each recipient gets; empty without a cause."""

    row: DispositionRow
    receipts: tuple[ExplainedDelivery, ...] = ()

    @property
    def given(self) -> tuple[ExplainedDelivery, ...]:
        """Return the receipts of those that get something."""
        return tuple(receipt for receipt in self.receipts if receipt.row.action != Delivery.NONE)

    @property
    def outcome(self) -> tuple[str, ...]:
        """Return action, acknowledgement and deliveries, without names of rows: to compare two tables."""
        given = sorted(f"{receipt.row.action} {receipt.who.name}" for receipt in self.given)
        return self.row.action, self.row.ack, *given


def everybody(situation: str) -> tuple[Recipient, ...]:
    """Return a recipient for each relation that there may be in a situation, the session first."""
    there = {
        "delegating": (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD),
        "accompanied": (Relation.BACKGROUND_CHILD,),
        "unattended": (Relation.BACKGROUND_CHILD,),
        "interrupting": (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD),
        "overtaken": (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD),
    }
    relations = (Relation.SELF, *there.get(situation, ()), Relation.SIDE_TALK)
    return tuple(Recipient(name=RELATIONS[relation], relation=relation) for relation in relations)


def explain(routes: Routes, key: tuple[str, ...], company: Iterable[Recipient]) -> Explanation:
    """Ask the first table about a message, then the second about each recipient.

    `key` is a combination of the first table: intent, situation, busy, strategy, auto_queue. Raises
    `MachineError` where a table has no answer.
    """
    row = routes.dispositions.decide(key)
    return Explanation(row=row, receipts=receipts(routes, row.cause, company) if row.cause else ())


def receipts(
    routes: Routes, cause: str, company: Iterable[Recipient]
) -> tuple[ExplainedDelivery, ...]:
    """Ask the second table what a cause gives to each; one it does not know gives nothing."""
    if cause not in routes.deliveries.space["cause"]:
        return ()
    return tuple(
        ExplainedDelivery(who=who, row=routes.deliveries.decide((cause, who.relation)))
        for who in company
    )
