"""What is journalled of an order to stop: from its receipt until everything is dead."""

from dataclasses import dataclass, field
from typing import Any

from ..machines.conversation import ChatMessage
from .entry import Entry

__all__ = [
    "InterruptCalledOff",
    "InterruptPlanned",
    "InterruptRequested",
    "Interrupted",
    "Stopped",
]


@dataclass(frozen=True, slots=True)
class _Cancel(Entry):
    receipt: str
    turn: str
    cause: str
    user: str = ""
    client_id: str = ""
    matched: str = ""
    rule: str = ""
    text: str = ""
    ack: str = field(default="", kw_only=True)


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
    """The turn has ended: it takes no further step. `checkpoint` is {done, total, unit} or none."""

    turn: str
    cause: str
    checkpoint: dict[str, Any] | None = None
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped(Entry):
    """Everything that the interrupted turn started is dead; `killed` and `survivors` are pids."""

    turn: str
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
