"""The parts that all actors of one program share: the dispatcher, the clock, the dead letters."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pykka import ActorRegistry

from ...machines.value import Value

if TYPE_CHECKING:
    from pykka import ActorRef

    from ...machines.machine import Refusal
    from .actor import Actor
    from .dispatcher import Dispatcher


logger = logging.getLogger("steersman")
REMEMBERED_LETTERS = 100

Restart = Literal["permanent", "transient", "temporary"]
"""When a child is started again: always, after a failure, or never."""


class DeadLetter(Value):
    """A message that killed its actor: shown in dumps, never redelivered.

    `path` names the actors that lead to it, the session first, and it last.
    """

    time: float
    actor: str
    message: str
    reason: str
    path: str = ""


class Birth(Value):
    """An actor's supervisor, when it is started again, and the ref it takes over if it was.

    `incarnation` counts its starts behind that ref, from 0.
    """

    name: str = ""
    supervisor: ActorRef[Any] | None = None
    ref: ActorRef[Any] | None = None
    restart: Restart = "temporary"
    incarnation: int = 0


UNSUPERVISED = Birth()
URNS = itertools.count(1)  # pykka's registry is the process's, so addresses differ between systems


class ActorSystem:
    """Makes and keeps actors. `now` returns seconds since the epoch; it is handed in."""

    def __init__(self, dispatcher: Dispatcher, now: Callable[[], float]) -> None:
        self.dispatcher = dispatcher
        self.now = now
        self.dead_letters: deque[DeadLetter] = deque(maxlen=REMEMBERED_LETTERS)
        self.refusals: deque[tuple[str, Refusal]] = deque(maxlen=REMEMBERED_LETTERS)
        self._birth: Birth | None = None
        self._living: dict[str, Actor] = {}

    def next_urn(self) -> str:
        """Return a new actor address."""
        return f"actor:{next(URNS)}"

    def spawn(
        self,
        start: Callable[[], ActorRef[Any]],
        name: str,
        supervisor: ActorRef[Any],
        adopt: ActorRef[Any] | None = None,
        restart: Restart = "permanent",
        incarnation: int = 0,
    ) -> ActorRef[Any]:
        """Start an actor under a supervisor; with `adopt`, as a new incarnation behind that ref."""
        self._birth = Birth(
            name=name, supervisor=supervisor, ref=adopt, restart=restart, incarnation=incarnation
        )
        try:
            return start()
        finally:
            self._birth = None

    def birth(self) -> Birth:
        """Return, once, under what circumstances the actor being built is born."""
        birth, self._birth = self._birth, None
        return birth or UNSUPERVISED

    def keep(self, actor: Actor) -> None:
        """Hold an actor alive: pykka's refs are weak, and nothing else need know it."""
        self._living[actor.actor_urn] = actor

    def living(self) -> list[Actor]:
        """Return all actors that are kept, oldest first."""
        return list(self._living.values())

    def retire(self, actor: Actor) -> None:
        """Remove an actor: its ref is dead, and each ask of it, earlier or later, is answered so."""
        ActorRegistry.unregister(actor.actor_ref)
        actor.actor_stopped.set()
        self._living.pop(actor.actor_urn, None)
        actor.mailbox.close()

    def bury(self, actor: Actor, message: str, error: BaseException) -> str:
        """Remember the message that killed an actor and return why, in a line."""
        name = actor.name or type(actor).__name__
        reason = f"{type(error).__name__}: {error}"
        letter = DeadLetter(
            time=self.now(), actor=name, message=message, reason=reason, path=self._path(actor)
        )
        self.dead_letters.append(letter)
        about = {"about": (_session_of(actor),)}
        logger.error("actor %s died of %s: %s", name, message, reason, exc_info=error, extra=about)
        return reason

    def note_refusal(self, actor: Actor, refusal: Refusal) -> None:
        """Remember that a machine refused what an actor decided: nothing was done, nothing is lost."""
        name = actor.name or type(actor).__name__
        self.refusals.append((name, refusal))
        logger.warning("%s: %s", name, refusal.reason, extra={"about": (_session_of(actor),)})

    def _path(self, actor: Actor) -> str:
        """Name an actor by those above it, the root aside, and itself."""
        names: list[str] = []
        above: Actor | None = actor
        while above is not None:
            names.append(above.name)
            chief = above.supervisor
            above = self._living.get(chief.actor_urn) if chief is not None else None
        return "/".join(name for name in reversed(names) if name)


def _session_of(actor: Actor) -> str:
    """Return the id of the session that an actor belongs to; empty for one that has no ledger."""
    ledger = getattr(actor, "ledger", None)
    return ledger.record.id if ledger is not None else ""
