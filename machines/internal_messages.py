"""Messages between the actors of one session: frozen values, each with its lane.

They share one record (`actors/ledger.py`), so no message carries a copy of state. A message says what
its sender wants; the receiver looks at the record as it is then.
"""

from typing import Any, ClassVar

from .messages import Lane, Message
from .said import ItemKind, Routed, Said


class Wake(Message):
    """The record has changed in a way that concerns the receiver: it does what is due."""

    lane: ClassVar[Lane] = Lane.SYSTEM


class OpenSession(Message):
    """The first message of a new session: `entry` is the first entry of its journal."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    entry: Any


class NoteEntry(Message):
    """Journal an entry about the session that none of its actors decides: a hook that has run."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    entry: Any


class Committed(Message):
    """Everything up to entry `seq` of this session is durable."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    seq: int


class StoreBroke(Message):
    """The journal cannot be written, or another process owns it: nothing more may be accepted."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    reason: str
    hint: str = ""
    is_lease_lost: bool = False


class RecoverRecord(Message):
    """The journal can be written again: recover a session that broke off from its durable entries."""

    lane: ClassVar[Lane] = Lane.SYSTEM


class Down(Message):
    """A supervised actor ended; its last act. `reason` is empty for a normal end.

    `wants_restart`: it asks to be started again, and has not failed.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    name: str
    urn: str
    reason: str = ""
    letter: str = ""
    wants_restart: bool = False


class Kill(Message):
    """End now; the mailbox is kept for the next incarnation.

    `incarnation` is the one that is meant, counted from 0: a later one ignores the order.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    incarnation: int = 0


class Mailed(Message):
    """A message from the session's mailbox: the decision about it consumes the one with id `posted`."""

    message: Message
    posted: int

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """That of the message."""
        return self.message.lane

    @property
    def is_external(self) -> bool:  # type: ignore[override]
        """As the message is."""
        return self.message.is_external


def mailed(message: Any, posted: int) -> Any:
    """Return a message as one from the mailbox; unchanged with id 0, which no posted one has."""
    return Mailed(message=message, posted=posted) if posted else message


class Retire(Message):
    """Forget the session `name`, which this program does not own any more."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    name: str
    urn: str


class TimerFired(Message):
    """A timer that the receiver set has run out."""

    lane: ClassVar[Lane] = Lane.CONTROL
    name: str
    epoch: int = 0


class Enqueue(Message):
    """Take a message into the queue.

    `is_next`: run before everything that waits, also while the queue is held. `is_overtaken`: it was
    said before a stop that was served first. `for_turn`: a steer for a boundary of that turn;
    `for_children`: for one of each of these, or, with `beneath`, for a child of theirs. `child`: it is
    the result of that child.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    said: Said
    routed: Routed = Routed()
    kind: ItemKind = ItemKind.MESSAGE
    is_next: bool = False
    for_turn: str = ""
    position: int | None = None
    for_children: tuple[str, ...] = ()
    child: str = ""
    beneath: str = ""
    is_overtaken: bool = False


class TakeSteers(Message):
    """At a boundary before `step` of `turn`: hand over what waits for it. Answered with `Wake`."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    step: int


class SteerWaits(Message):
    """The queue's news for the turn that steer `item` waits for its next boundary."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    item: str


class HandBack(Message):
    """The model can't work a message in: `words` are how it begins, empty if there is only one.

    The queue answers the turn with the result of the tool call.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    epoch: int
    step: int
    call: str
    words: str
    why: str


class GoalMessage(Message):
    """Let the message that goes on with a goal wait in the queue.

    `is_first`: it is the goal's first, which also runs past what is held and behind what waits.
    `after`: only while that turn is the newest; none if a person wants it, whatever has run.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    goal: str
    said: Said
    is_first: bool = False
    after: str | None = None


class CloseChildren(Message):
    """The session ends: answered with `ChildrenClosed` once no child's session is open here."""

    lane: ClassVar[Lane] = Lane.SYSTEM


class ChildrenClosed(Message):
    """No session of a child is open any more."""

    lane: ClassVar[Lane] = Lane.SYSTEM


class Describe(Message):
    """Ask a session for a `SessionDescription`; answered to an `ask`."""

    lane: ClassVar[Lane] = Lane.CONTROL


class Inspect(Message):
    """Ask an actor for its part of a dump; answered to an `ask`.

    `is_last`: only after everything that waits in the mailbox now. `is_of_queue`: a session has its
    queue answer, behind all earlier messages to both.
    """

    is_last: bool = False
    is_of_queue: bool = False

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL, so that a busy actor answers; DATA to see the outcome of all messages."""
        return Lane.DATA if self.is_last else Lane.CONTROL
