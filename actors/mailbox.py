"""A mailbox with lanes, bounded for what comes from outside.

It stands in for pykka's inbox. Lanes are made when first used and dropped when empty: an idle
mailbox costs a few machine words. Any thread may put; only the dispatcher's thread takes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from pykka import ActorDeadError
from pykka.messages import _ActorStop

from ..machines.errors import AdmissionRefused
from ..machines.messages import Lane

if TYPE_CHECKING:
    from pykka._envelope import Envelope

__all__ = ["Mailbox", "Schedule", "lane_of"]

BOUND = 1_000


class Schedule(Protocol):
    """Called when a mailbox that was idle has something to take."""

    def __call__(self, mailbox: Mailbox) -> None:
        """Arrange for the mailbox's owner to run soon; any thread."""
        ...


def lane_of(message: object) -> Lane:
    """Return a message's lane; what names none, and pykka's own messages, travel in DATA."""
    return getattr(message, "lane", Lane.DATA)


class Mailbox:
    """Three lanes, each first in, first out.

    `is_scheduled` belongs to the dispatcher. A suspended mailbox takes in but hands nothing out: its
    actor is down and its supervisor has not decided yet.
    """

    __slots__ = ("_lanes", "is_closed", "is_scheduled", "is_suspended", "owner", "schedule")

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.owner: Any = None
        self.is_scheduled = False
        self.is_suspended = False
        self.is_closed = False
        self._lanes: list[deque[Envelope[Any]] | None] = [None, None, None]

    def put(self, envelope: Envelope[Any], /) -> None:
        """Take an envelope in. Raises `AdmissionRefused` for an external one past the bound."""
        message = envelope.message
        if self.is_closed:
            _answer_dead(envelope)
            return
        number = lane_of(message)
        lane = self._lanes[number]
        if lane is None:
            lane = self._lanes[number] = deque()
        elif len(lane) >= BOUND and getattr(message, "is_external", False):
            raise AdmissionRefused(
                f"{len(lane)} messages wait already",
                "nothing was taken; send it again when some of them are done",
            )
        lane.append(envelope)
        self.schedule(self)

    def take(self) -> Envelope[Any] | None:
        """Return the next envelope by lane, or none."""
        if self.is_suspended:
            return None
        for number in range(3):
            lane = self._lanes[number]
            if lane:
                envelope = lane.popleft()
                if not lane:
                    self._lanes[number] = None
                return envelope
        return None

    def get(self) -> Envelope[Any]:
        """Return the next envelope; pykka's own loop would block here, ours never does."""
        envelope = self.take()
        if envelope is None:
            raise LookupError("the mailbox is empty")
        return envelope

    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return self.is_suspended or not any(self._lanes)

    def depth(self) -> tuple[int, int, int]:
        """Return how many envelopes wait in SYSTEM, CONTROL and DATA."""
        system, control, data = (len(lane) if lane else 0 for lane in self._lanes)
        return system, control, data

    def purge(self, kind: type) -> None:
        """Throw away waiting messages of one type (orders to an incarnation that is gone)."""
        for number, lane in enumerate(self._lanes):
            if lane:
                kept = deque(one for one in lane if not isinstance(one.message, kind))
                self._lanes[number] = kept or None

    def close(self) -> None:
        """Answer every waiting ask as dead, and every later one."""
        self.is_closed = True
        self.is_suspended = False
        while (envelope := self.take()) is not None:
            _answer_dead(envelope)


def _answer_dead(envelope: Envelope[Any]) -> None:
    future = envelope.reply_to
    if future is None:
        return
    if isinstance(envelope.message, _ActorStop):
        future.set(None)
        return
    error = ActorDeadError("the actor stopped before it could handle the message")
    future.set_exception((ActorDeadError, error, None))
