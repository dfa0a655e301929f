"""What all actors of one program share: the dispatcher, the clock, who died of what."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykka import ActorRef

    from .actor import Actor
    from .dispatcher import Dispatcher

__all__ = ["ActorSystem", "Birth", "DeadLetter"]

logger = logging.getLogger("steersman")
REMEMBERED_LETTERS = 100


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that killed its actor: shown in dumps, never redelivered."""

    time: float
    actor: str
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class Birth:
    """Whose child an actor is, and the ref it takes over if it is a new incarnation."""

    name: str = ""
    supervisor: ActorRef[Any] | None = None
    ref: ActorRef[Any] | None = None


class ActorSystem:
    """Makes and keeps actors. `now` returns seconds since the epoch; it is handed in."""

    def __init__(self, dispatcher: Dispatcher, now: Callable[[], float]) -> None:
        self.dispatcher = dispatcher
        self.now = now
        self.dead_letters: deque[DeadLetter] = deque(maxlen=REMEMBERED_LETTERS)
        self._urns = itertools.count(1)
        self._birth: Birth | None = None
        self._living: dict[str, Actor] = {}

    def next_urn(self) -> str:
        """Return a new actor address."""
        return f"actor:{next(self._urns)}"

    def spawn(
        self,
        start: Callable[[], ActorRef[Any]],
        name: str,
        supervisor: ActorRef[Any],
        adopt: ActorRef[Any] | None = None,
    ) -> ActorRef[Any]:
        """Start an actor under a supervisor; with `adopt`, as a new incarnation behind that ref."""
        self._birth = Birth(name, supervisor, adopt)
        try:
            return start()
        finally:
            self._birth = None

    def birth(self) -> Birth:
        """Return, once, under what circumstances the actor being built is born."""
        birth, self._birth = self._birth, None
        return birth or Birth()

    def keep(self, actor: Actor) -> None:
        """Hold an actor alive: pykka's refs are weak, and nothing else need know it."""
        self._living[actor.actor_urn] = actor

    def drop(self, ref: ActorRef[Any]) -> None:
        """Let go of an actor that ended."""
        self._living.pop(ref.actor_urn, None)

    def bury(self, actor: Actor, message: str, error: BaseException) -> str:
        """Remember the message that killed an actor and return why, in a line."""
        name = actor.name or type(actor).__name__
        reason = f"{type(error).__name__}: {error}"
        self.dead_letters.append(DeadLetter(self.now(), name, message, reason))
        logger.error("actor %s died of %s: %s", name, message, reason, exc_info=error)
        return reason
