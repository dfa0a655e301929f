"""An actor's decision in answer to one message, as a value."""

from __future__ import annotations

from typing import Any, Literal

from ...journal.entries import Entry
from ...machines import protocol as m
from ...machines.value import Value

Role = Literal["session", "queue", "turn", "children", "goal"]
"""One of a session's actors."""

Order = tuple[Role, Any]
"""A message for another actor of the same session; it is sent as soon as the decision is folded."""


class Decision(Value):
    """Entries to be journalled as one, and what follows from them.

    `effects` are performed after the commit, and only if no stop has come in between; `urgent` ones at
    once: they only ever stop something. So are `early` ones, if no stop has come: done twice they do no
    harm, and what comes of them is told and acted upon after the commit. `facts` are published once
    everything decided before is durable. `reply` answers the message that called for the decision.
    """

    entries: tuple[Entry, ...] = ()
    effects: tuple[m.Effect, ...] = ()
    urgent: tuple[m.Effect, ...] = ()
    early: tuple[m.Effect, ...] = ()
    facts: tuple[m.Fact, ...] = ()
    orders: tuple[Order, ...] = ()
    reply: Any = None

    def __bool__(self) -> bool:
        effects = self.effects or self.urgent or self.early
        return bool(self.entries or effects or self.facts or self.orders)

    def __add__(self, other: Decision) -> Decision:
        """Return both as one, in order; the later reply holds."""
        return Decision(
            entries=self.entries + other.entries,
            effects=self.effects + other.effects,
            urgent=self.urgent + other.urgent,
            early=self.early + other.early,
            facts=self.facts + other.facts,
            orders=self.orders + other.orders,
            reply=self.reply if other.reply is None else other.reply,
        )


NOTHING = Decision()
"""Nothing is to be done."""


def answer(**fields: Any) -> dict[str, Any]:
    """Return the reply to an order that was carried out."""
    return {"ok": True, **fields}


def refused_with(reason: str, **fields: Any) -> dict[str, Any]:
    """Return the reply to an order that was not carried out."""
    return {"ok": False, "reason": reason, **fields}


def refusal(reason: str, **fields: Any) -> Decision:
    """Return the decision to do nothing, and why."""
    return Decision(reply=refused_with(reason, **fields))
