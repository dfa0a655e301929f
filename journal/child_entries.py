"""What is journalled of a session's children, in the parent's journal; they have their own, too."""

from dataclasses import dataclass, field
from typing import Any

from ..machines.conversation import Usage
from .entry import Entry

__all__ = [
    "ChildAdmitted",
    "ChildCancelled",
    "ChildDetached",
    "ChildEnded",
    "ChildInterrupted",
    "ChildResumed",
    "ChildStarted",
    "Kept",
    "OfferAnswered",
    "OfferWanted",
    "Offered",
    "SteerArrived",
]


@dataclass(frozen=True, slots=True)
class ChildStarted(Entry):
    """A child was given a task: by tool call `call` of `turn`, or by a person, beside everything.

    `session` is the child's own id, `epoch` the parent's when it was ordered, and `above` those of the
    parent's ancestors, nearest first: a stop that is newer is the child's, too. `is_waiting`: as many as
    may work do. `item` is a side talk's place in the queue.
    `goal`: what it works for, beyond its first turn: text, gates, max_turns.
    """

    child: str
    session: str
    agent: str
    task: str
    relation: str
    turn: str = ""
    call: str = ""
    epoch: int = 0
    is_waiting: bool = False
    item: str = ""
    user: str = ""
    goal: dict[str, Any] = field(default_factory=dict[str, Any])
    above: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildAdmitted(Entry):
    """There is room now: a child that waited begins."""

    child: str


@dataclass(frozen=True, slots=True)
class ChildCancelled(Entry):
    """A child was told to end; `is_kept`: it can be resumed together with its parent."""

    child: str
    cause: str
    receipt: str = ""
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class ChildDetached(Entry):
    """The turn that waited for a child ends without it: it works in the background from now on."""

    child: str


@dataclass(frozen=True, slots=True)
class ChildInterrupted(Entry):
    """A child has stopped where it was, with everything it started, and can be resumed."""

    child: str
    why: str = ""
    text: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildResumed(Entry):
    """An interrupted child goes on, for the turn that goes on; epochs as for `ChildStarted`."""

    child: str
    turn: str = ""
    epoch: int = 0
    above: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildEnded(Entry):
    """A child is over: `status` is completed, cancelled, failed or disconnected; `text` what it had.

    `goes` is where its result goes, by the third routing table.
    """

    child: str
    status: str
    text: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    goes: str = ""


@dataclass(frozen=True, slots=True)
class Offered(Entry):
    """A result has a place in the queue, and never runs by itself; of a side talk the question."""

    item: str
    number: int
    text: str
    child: str
    user: str = ""
    client_id: str = ""
    is_answered: bool = True


@dataclass(frozen=True, slots=True)
class OfferAnswered(Entry):
    """The answer to a side talk is there."""

    item: str
    text: str


@dataclass(frozen=True, slots=True)
class OfferWanted(Entry):
    """A person decided about an answer that is not there yet: steer it, or keep it, when it comes."""

    item: str
    wants: str


@dataclass(frozen=True, slots=True)
class Kept(Entry):
    """A person wants what was offered to run, as a message in its turn; `past_hold` as for `Queued`."""

    item: str
    past_hold: bool = False


@dataclass(frozen=True, slots=True)
class SteerArrived(Entry):
    """A steer that was handed on entered a child's context, or (`turn` is empty) could not."""

    item: str
    child: str
    turn: str = ""
    step: int = 0
