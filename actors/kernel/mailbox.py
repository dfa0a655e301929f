"""A mailbox with lanes, bounded for what comes from outside.

It stands in for pykka's inbox. Lanes are made when first used and dropped when empty: an idle
mailbox costs a few machine words. Any thread may put; only the dispatcher's thread takes. The lock
is the dispatcher's, one for all, since it is only held for a fraction of a microsecond.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from pykka import ActorDeadError, ActorRef
from pykka.messages import _ActorStop  # pyright: ignore[reportPrivateUsage]

from ...machines import protocol as m
from ...machines.errors import AdmissionRefused

if TYPE_CHECKING:
    from pykka._envelope import Envelope

    from .dispatcher import Dispatcher


BOUND = 1_000
"""Messages from outside that a lane holds at most."""

LANES = len(m.Lane)
NO_LANES: tuple[deque[Envelope[Any]] | None, ...] = (None,) * LANES


def lane_of(message: object) -> m.Lane:
    """Return a message's lane; what names none, and pykka's own messages, travel in DATA."""
    return getattr(message, "lane", m.Lane.DATA)


def tell(ref: ActorRef[Any] | None, message: object) -> bool:
    """Tell an actor unless there is none or it is gone, and return whether it was there."""
    if ref is None or not ref.is_alive():
        return False
    ref.tell(message)
    return True


def reply(reply_to: ActorRef[Any] | None, message: object) -> None:
    """Send the reply to an ask, if there was one and the asking actor is still there."""
    tell(reply_to, message)


class Mailbox:
    """Three lanes, each first in, first out.

    `is_scheduled` belongs to the dispatcher. A suspended mailbox takes in but hands nothing out: its
    actor is down and its supervisor has not decided yet. A closed one answers each ask at once.
    """

    __slots__ = ("_lanes", "dispatcher", "is_closed", "is_scheduled", "is_suspended", "owner")

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.owner: Any = None
        self.is_scheduled = False
        self.is_suspended = False
        self.is_closed = False
        self._lanes: list[deque[Envelope[Any]] | None] | None = None

    def put(self, envelope: Envelope[Any], /) -> None:
        """Take an envelope in. Raises `AdmissionRefused` for an external one past the bound."""
        message = envelope.message
        with self.dispatcher.lock:
            is_open = not self.is_closed
            if is_open:
                lane = self._lane(lane_of(message))
                if len(lane) >= BOUND and getattr(message, "is_external", False):
                    raise AdmissionRefused(
                        f"{len(lane)} messages wait already",
                        "nothing was accepted; send it again when some of them are done",
                    )
                lane.append(envelope)
        if is_open:
            self.dispatcher.schedule(self)
        else:
            self._turn_away(envelope)

    def take(self) -> Envelope[Any] | None:
        """Return the next envelope by lane, or none."""
        return None if self.is_suspended else self._take()

    def get(self) -> Envelope[Any]:
        """Return the next envelope; pykka's own loop would block here, ours never does."""
        envelope = self.take()
        if envelope is None:
            raise LookupError("the mailbox is empty")
        return envelope

    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return self.is_suspended or self._lanes is None

    def depth(self) -> tuple[int, int, int]:
        """Return how many envelopes wait in SYSTEM, CONTROL and DATA."""
        with self.dispatcher.lock:
            lanes = self._lanes or NO_LANES
            system, control, data = (len(lane) if lane else 0 for lane in lanes)
        return system, control, data

    def close(self) -> None:
        """Answer every waiting ask as dead, and every later one. Idempotent."""
        with self.dispatcher.lock:
            self.is_closed = True
            self.is_suspended = True
        while (envelope := self._take()) is not None:
            self._turn_away(envelope)

    def _lane(self, number: int) -> deque[Envelope[Any]]:
        if self._lanes is None:
            self._lanes = list(NO_LANES)
        lane = self._lanes[number]
        if lane is None:
            lane = self._lanes[number] = deque()
        return lane

    def _take(self) -> Envelope[Any] | None:
        with self.dispatcher.lock:
            for number, lane in enumerate(self._lanes or NO_LANES):
                if lane:
                    envelope = lane.popleft()
                    if not lane:
                        self._drop(number)
                    return envelope
        return None

    def _drop(self, number: int) -> None:
        assert self._lanes is not None
        self._lanes[number] = None
        if not any(self._lanes):
            self._lanes = None

    def _turn_away(self, envelope: Envelope[Any]) -> None:
        future = envelope.reply_to
        if future is None:
            return
        if isinstance(envelope.message, _ActorStop):
            future.set(None)
            return
        error = ActorDeadError("the actor stopped before it could handle the message")
        future.set_exception((ActorDeadError, error, None))
