"""What is journalled of an order to stop: from its receipt until everything is dead."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.conversation import ChatMessage
from .entry import Entry

__all__ = [
    "InterruptCalledOff",
    "InterruptPlanned",
    "InterruptRequested",
    "Interrupted",
    "StopNoted",
    "Stopped",
]


@dataclass(frozen=True, slots=True)
class _Cancel(Entry):
    """A cancel: `reaches` are the relations that the delivery table names for its cause.

    `spares` are children that go on all the same. `said` numbers what one client says; `order` is the
    parent's epoch, where the stop comes from there, else 0. `is_replaced`: another message takes the
    turn's place.
    """

    receipt: str
    turn: str
    cause: str
    user: str = ""
    client_id: str = ""
    matched: str = ""
    rule: str = ""
    text: str = ""
    ack: str = field(default="", kw_only=True)
    reaches: tuple[str, ...] = field(default=(), kw_only=True)
    spares: tuple[str, ...] = field(default=(), kw_only=True)
    said: int = field(default=0, kw_only=True)
    order: int = field(default=0, kw_only=True)
    is_replaced: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class InterruptPlanned(_Cancel):
    """A cancel was accepted that takes effect, under its receipt, when `tools` have ended."""

    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InterruptCalledOff(Entry):
    """A planned cancel was taken back before the tools that it waited for had ended."""

    receipt: str
    turn: str


@dataclass(frozen=True, slots=True)
class InterruptRequested(_Cancel):
    """A cancel was accepted; `receipt` is its id, `rule` and `matched` say why it is one."""


@dataclass(frozen=True, slots=True)
class Interrupted(Entry):
    """The turn has ended: it takes no further step. `checkpoint` is {done, total, unit} or none.

    `is_replaced`: another message took its place.
    """

    turn: str
    cause: str
    checkpoint: Mapping[str, Any] | None = None
    messages: tuple[ChatMessage, ...] = ()
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class Stopped(Entry):
    """Everything that a stop reached is dead; `killed` and `survivors` are pids.

    `turn` is empty where no turn was stopped: then `receipt` names the stop. `order` as for the stop.
    """

    turn: str
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    order: int = 0
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class StopNoted(Entry):
    """A stop found nothing at work: what was ordered before it, and has not begun, does not begin."""

    cause: str
    reaches: tuple[str, ...] = ()
    said: int = 0
