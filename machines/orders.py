"""What the actors of one session tell each other: frozen values, each with its lane."""

from dataclasses import dataclass
from typing import Any, ClassVar

from .attachment import Attachment
from .conversation import ChatMessage
from .message import Lane, Message

__all__ = [
    "Committed",
    "CutAnswer",
    "Decided",
    "Down",
    "Enqueue",
    "Inspect",
    "InterruptTurn",
    "Journalled",
    "Kill",
    "NothingToStart",
    "Settle",
    "Settled",
    "StartNext",
    "SteersTaken",
    "StoreBroke",
    "TakeSteers",
    "TimerFired",
    "Watch",
]


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
    `is_next`: run before everything that waits, also while the queue is held. `is_overtaken`: it was
    said before a stop that was served first.
    `for_turn`: a steer, waiting for a boundary of that turn; `for_children`: for one of each of these,
    or, with `beneath`, for a child of theirs.
    `child`: it is the result of that child. `purpose`: it is no message but `compaction`, or `again`.
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
    attached: tuple[Attachment, ...] = ()
    purpose: str = ""
    beneath: str = ""
    is_overtaken: bool = False


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
    `is_talk`: by the table it reaches no child for which the turn waits, so it waits for one, too,
    that has been asked for since.
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
    is_talk: bool = False
    ack: str = ""


@dataclass(frozen=True, slots=True)
class Inspect(Message):
    """Ask an actor for its part of a dump; answered to an `ask`.

    `is_last`: only after everything that waits in the mailbox now. `is_of_queue`: a session has its
    queue answer, behind all that was said to both.
    """

    is_last: bool = False
    is_of_queue: bool = False

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL, so that a busy actor answers; DATA to see what became of all that was said."""
        return Lane.DATA if self.is_last else Lane.CONTROL
