"""`[[route]]`: a route of one's own, as it stands in a configuration or a workflow file.

    [[route]]
    name = "talk-through"
    message = "converse"
    when = { session = "delegating" }
    deliver = [{ to = "children.active", as = "steer" }]
    ack = "steered_child"

What it means is `machines/override.py`'s business; here its words are checked.
"""

from typing import Annotated

from pydantic import Field

from ..machines.delivery import Cause
from ..machines.disposition import ACKS, AutoQueue, BusyMode, Intent, Situation, Strategy
from ..machines.override import GIFTS, TARGETS, Gift, Override
from .declaration import Declaration, Several
from .name import UserName
from .word import OneOf, OneOrMany

__all__ = ["Route", "RouteGift", "RouteWhen"]

Words = tuple[str, ...]


class RouteWhen(Declaration, frozen=True):
    """What a route is narrowed to; what is left out may be anything."""

    session: Annotated[Words, OneOrMany(tuple(Situation))] = ()
    busy: Annotated[Words, OneOrMany(tuple(BusyMode))] = ()
    strategy: Annotated[Words, OneOrMany(tuple(Strategy))] = ()
    auto_queue: Annotated[Words, OneOrMany(tuple(AutoQueue))] = ()


class RouteGift(Declaration, frozen=True):
    """Who gets what."""

    to: Annotated[Words, OneOrMany(tuple(TARGETS))]
    what: Annotated[str, OneOf(GIFTS), Field(alias="as")]


class Route(Declaration, frozen=True):
    """One route, for a `message` or for a `cause`."""

    name: UserName
    message: Annotated[Words, OneOrMany(tuple(Intent))] = ()
    cause: Annotated[Words, OneOrMany(tuple(Cause))] = ()
    when: RouteWhen = RouteWhen.model_construct()
    deliver: Several[RouteGift] = ()
    ack: Annotated[str, OneOf(tuple(ACKS))] = ""
    why: str = ""

    def override(self) -> Override:
        """Return it in the words of the tables."""
        names = {"session": "situation"}
        narrowed = {names.get(name, name): words for name, words in self.when if words}
        gifts = tuple(Gift(one.to, one.what) for one in self.deliver)
        return Override(self.name, self.message, self.cause, narrowed, gifts, self.ack, self.why)
