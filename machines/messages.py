"""Messages between actors: frozen values, each with its lane (see `message.py`)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .conversation import ChatMessage
from .message import Lane, Message
from .policy import RoutesChoice

__all__ = [
    "Answer",
    "Committed",
    "CutAnswer",
    "Decided",
    "Down",
    "Enqueue",
    "Finalize",
    "Inspect",
    "Interrupt",
    "InterruptTurn",
    "Journalled",
    "Kill",
    "Lane",
    "Message",
    "NothingToStart",
    "PolicyChange",
    "QueueChange",
    "QueueImport",
    "ResumeQueue",
    "Settle",
    "Settled",
    "StartNext",
    "SteersTaken",
    "StoreBroke",
    "Suspend",
    "TakeBack",
    "TakeSteers",
    "TimerFired",
    "UserMessage",
    "Watch",
]


# From people and other programs -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserMessage(Message):
    """What a person said, classified before it is posted; one type from every surface.

    `intent` and `matched` are the classification, `queue_position` where to put it (none: last).
    `then` is what of an interrupting message is left to run next, empty if nothing. `said` rises
    with each thing that one client says: a cancel overtakes what was said before it. `to` names the
    child that a steer is for, or `parent`; `revert` is what to give back once the turn has stopped.
    """

    type: Literal["normal", "steer", "interrupt"]
    content: str
    intent: str
    matched: str = ""
    then: str = ""
    queue_position: int | None = None
    user: str = ""
    client_id: str = ""
    said: int = 0
    to: str = ""
    revert: Literal["", "turn", "last"] = ""

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL for whatever stops or steers, so that it never waits behind data."""
        return Lane.DATA if self.type == "normal" else Lane.CONTROL

    @property
    def is_external(self) -> bool:  # type: ignore[override]
        """Counted against the bound, apart from interrupts, which are never refused."""
        return self.type != "interrupt"


@dataclass(frozen=True, slots=True)
class Interrupt(Message):
    """A cancel by command, key or signal: `cause` is a key of the delivery table.

    `turn` none addresses whatever turn runs; a turn's id addresses that one and no other.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str
    turn: str = ""
    user: str = ""
    client_id: str = ""
    said: int = 0


@dataclass(frozen=True, slots=True)
class Answer(Message):
    """A person's answer to a question: `choice` is allow, always or deny."""

    lane: ClassVar[Lane] = Lane.CONTROL
    question: str
    choice: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueueChange(Message):
    """A change of the queue that a person asked for: `op` with its number, text or position.

    `position` counts from 1 among what waits or was interrupted. `hold_next`: if something is to
    run before all that waits, it waits like the rest. `to`: the child to steer, `parent`, or whoever
    works; the session finds out `for_children`.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    op: Literal[
        "withdraw", "clear", "hold", "hold_next", "release", "edit", "move", "steer", "keep"
    ]
    number: int | None = None
    text: str = ""
    position: int = 1
    to: str = ""
    for_children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueImport(Message):
    """Take in all of these (text, user), in order, or none of them; held where nothing runs.

    `may_overfill`: what was saved once may come back, however many may wait now.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    items: tuple[tuple[str, str], ...]
    may_overfill: bool = False


@dataclass(frozen=True, slots=True)
class PolicyChange(Message):
    """A person chooses how this session takes messages; what is empty or none stays."""

    lane: ClassVar[Lane] = Lane.CONTROL
    busy_mode: Literal["", "interrupt", "steer", "queue"] = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None


@dataclass(frozen=True, slots=True)
class TakeBack(Message):
    """The newest message was not meant as it was read: let it wait in the queue instead."""

    lane: ClassVar[Lane] = Lane.CONTROL


@dataclass(frozen=True, slots=True)
class ResumeQueue(Message):
    """Run what was interrupted, from its checkpoint, then what waits.

    `children`: those beside the turns that go on, too; the session finds them out.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    number: int | None = None
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspend(Message):
    """Leave: interrupt what runs, keep everything, answer when it is durable."""

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str = "exit"


@dataclass(frozen=True, slots=True)
class Finalize(Message):
    """End the session for good; happens once."""

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str = "user"


# Between the actors of one session ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided(Message):
    """Entries that one actor decided, for the session to journal in one commit, and their effects.

    `entries` are journal entries, `effects` are performed only after the commit and only if the
    turn's epoch has not moved; `urgent` are performed at once (they only ever stop things); `facts`
    are told once everything decided before them is durable; `orders` are cancels that follow from
    the entries.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    sender: str
    entries: tuple[Any, ...]
    effects: tuple[Any, ...] = ()
    urgent: tuple[Any, ...] = ()
    facts: tuple[Any, ...] = ()
    orders: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Journalled(Message):
    """An entry that somebody else decided and that names the receiver."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    entry: Any


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """Everything up to entry `seq` of this session is durable."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    seq: int


@dataclass(frozen=True, slots=True)
class StoreBroke(Message):
    """The journal cannot be written, or somebody else owns it: nothing more may be accepted."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    reason: str
    hint: str = ""
    is_lease_lost: bool = False


@dataclass(frozen=True, slots=True)
class Down(Message):
    """A supervised actor ended; its last act. `reason` is empty for a normal end."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    name: str
    urn: str
    reason: str = ""
    letter: str = ""


@dataclass(frozen=True, slots=True)
class Kill(Message):
    """End now; the mailbox is kept for whoever decides what follows."""

    lane: ClassVar[Lane] = Lane.SYSTEM


@dataclass(frozen=True, slots=True)
class Watch(Message):
    """Tell `watcher` when the receiver is down."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    watcher: Any


@dataclass(frozen=True, slots=True)
class TimerFired(Message):
    """A timer that the receiver set has run out."""

    lane: ClassVar[Lane] = Lane.CONTROL
    name: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Enqueue(Message):
    """Take a message into the queue; `said_as` is how the routing table took it.

    `cancels`: the order to the running turn that goes out when the message is safe.
    `is_next`: run before everything that waits, also while the queue is held.
    `for_turn`: a steer, waiting for a boundary of that turn; `for_children`: for one of each of these.
    `child`: it is the result of that child.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    text: str
    said_as: str
    user: str
    client_id: str
    matched: str
    rule: str
    ack: str = ""
    is_next: bool = False
    for_turn: str = ""
    position: int | None = None
    cancels: "InterruptTurn | None" = None
    for_children: tuple[str, ...] = ()
    child: str = ""


@dataclass(frozen=True, slots=True)
class StartNext(Message):
    """Begin turn `turn` with the next item; answered with Decided or NothingToStart.

    `must_hold`: a cancel has just missed the last turn, so hold what waits first.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    epoch: int
    must_hold: bool = False


@dataclass(frozen=True, slots=True)
class NothingToStart(Message):
    """The queue's answer when nothing waits that may run."""

    lane: ClassVar[Lane] = Lane.SYSTEM


@dataclass(frozen=True, slots=True)
class Settle(Message):
    """Ask the queue for whatever it still has to decide; answered with `Settled`, its last word."""

    lane: ClassVar[Lane] = Lane.SYSTEM


@dataclass(frozen=True, slots=True)
class Settled(Message):
    """The queue, or the nursery, has decided everything that it was told until now."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    sender: str = "queue"


@dataclass(frozen=True, slots=True)
class TakeSteers(Message):
    """At a boundary of `turn`: hand over what waits for it. `closing`: the answer is complete.

    When nothing waits at a closing boundary the queue shuts the door: a steer for this turn that
    comes later is a message of its own.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    step: int
    is_closing: bool
    reply_to: Any


@dataclass(frozen=True, slots=True)
class SteersTaken(Message):
    """The queue's answer: `messages` extend the context, already journalled; `items` are in them."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    step: int
    is_closing: bool
    messages: tuple[ChatMessage, ...]
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutAnswer(Message):
    """The session's word to its turn that steer `item` waits and may cut the streaming answer."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    item: str


@dataclass(frozen=True, slots=True)
class InterruptTurn(Message):
    """The session's order to its turn to end now; the turn journals the receipt with its end.

    `is_patient`: let the tools that run end first. `spares`: calls whose children go on without the
    turn. `companions`: children that are being stopped with it, apart from those of its calls.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    receipt: str
    cause: str
    turn: str = ""
    user: str = ""
    client_id: str = ""
    matched: str = ""
    rule: str = ""
    text: str = ""
    is_patient: bool = False
    spares: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    ack: str = ""


@dataclass(frozen=True, slots=True)
class Inspect(Message):
    """Ask an actor for its part of a dump; answered to an `ask`.

    `is_last`: only after everything that waits in the mailbox now.
    """

    is_last: bool = False

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL, so that a busy actor answers; DATA to see what became of all that was said."""
        return Lane.DATA if self.is_last else Lane.CONTROL
