"""A whole simulated program: a session, its children and theirs; stepped, crashed, started again.

`chronicle` is everything that happened, in order, across all incarnations; the checks of promises
read it. A crash ends the actors, their ports and whatever was not durable; the next start takes the
first session over under a new lease, as the program does. Children are opened when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykka import ActorRef
from pykka.messages import ProxyCall

from ..actors.environment import Environment
from ..actors.kernel.actor import Actor
from ..actors.kernel.mailbox import tell
from ..actors.kernel.supervisor import Root
from ..actors.kernel.system import ActorSystem
from ..journal.memory import MemoryStore, SimulatedCrash
from ..journal.record import SessionRecord
from .choices import Choices
from .happening import Chronicle, Happening, Poisoned, Uttered
from .ports import SimulatedPorts
from .schedule import Chooser, Dice, SimulatedDispatcher, Timeline
from .session import SimulationPlan, World
from .writer import SimulatedWriter

ROOT = "s1"
POISON = ProxyCall(attr_path=("missing",), args=(), kwargs={})
"""A message that kills the actor that handles it."""


class SimulatedProgram:
    """One program with one session that is no child. Made with the same dice it never differs."""

    def __init__(self, plan: SimulationPlan, dice: Dice, chooser: Chooser) -> None:
        self.plan = plan
        self.timeline = Timeline()
        self.chronicle = Chronicle()
        self.store = MemoryStore(
            clock=self.timeline.read, crash_at=plan.crash_at, crash_side=plan.crash_side
        )
        self._dice, self._chooser = dice, chooser
        self._paths: dict[str, str] = {}
        self.steps = 0
        self._start(is_known=False)

    # One incarnation ------------------------------------------------------------------------------

    def _start(self, *, is_known: bool) -> None:
        self.world = self._world()
        self.root = self.world.start(ROOT, is_known=is_known)

    def _world(self) -> World:
        dispatcher = SimulatedDispatcher(self.plan.watch)
        return World(
            plan=self.plan,
            store=self.store,
            timeline=self.timeline,
            system=ActorSystem(dispatcher, self.timeline.read),
            dice=self._dice,
            chronicle=self.chronicle,
            dispatcher=dispatcher,
        )

    def visitor(self) -> World:
        """Make the world of another process, after a crash of this one, on what the store holds."""
        self.store = self.store.survivor()
        return self._world()

    def crash(self) -> None:
        """Die: what is not in the store is gone."""
        self.chronicle.note_crash()
        self.timeline.forget("ports")
        self.close()
        self.dispatcher.ready.clear()
        self.world.open.clear()

    def close(self) -> None:
        """Let go of the actors."""
        for actor in self.system.living():
            self.system.retire(actor)

    def poison(self) -> None:
        """Kill an actor of any session, the first session's own too, but not the root."""
        paths = {self.path(actor): actor for actor in self.system.living()}
        del paths["root"]
        victim = paths[self._dice.choice(sorted(paths))]
        self.chronicle.note(ROOT, Poisoned())
        victim.actor_ref.tell(POISON)

    def restart(self) -> None:
        """Start again from what the store holds."""
        self.store = self.store.survivor()
        self._start(is_known=True)

    # Parts ----------------------------------------------------------------------------------------

    @property
    def system(self) -> ActorSystem:
        """The actors of this incarnation."""
        return self.world.system

    @property
    def dispatcher(self) -> SimulatedDispatcher:
        """The dispatcher of the actors."""
        return self.world.dispatcher

    @property
    def history(self) -> list[Happening]:
        """The happenings of the first session."""
        return self.chronicle.of[ROOT]

    @property
    def writer(self) -> SimulatedWriter:
        """The writer of the journals of all sessions."""
        return self.world.writer

    @property
    def ports(self) -> SimulatedPorts:
        """The first session's ports."""
        return self.root.ports

    @property
    def environment(self) -> Environment:
        """The environment of the first session."""
        return self.root.environment

    @property
    def supervisor(self) -> ActorRef[Any]:
        """The root of this incarnation's actors."""
        return self.world.sessions.root

    @property
    def session(self) -> ActorRef[Any]:
        """The first session."""
        assert self.root.ref is not None
        return self.root.ref

    @property
    def durable(self) -> int:
        """The number of the first session's newest entry in the store."""
        return self.root.durable

    @property
    def record(self) -> SessionRecord:
        """The first session's state, as its actor sees it."""
        return self.root.record

    def record_of(self, session: str) -> SessionRecord | None:
        """Return a session's state as its actor sees it, if it has one."""
        live = self.world.open.get(session)
        if live is None or live.ref is None or not live.ref.is_alive():
            return None
        return live.record

    @property
    def is_running(self) -> bool:
        """Whether there is a living program."""
        return bool(self.system.living())

    def actor(self, path: str) -> Actor | None:
        """Return the living actor at a path: `queue`, `turn`, or the session's own, which is empty."""
        found = [actor for actor in self.system.living() if self.path(actor) == path]
        return found[-1] if found else None

    def path(self, actor: Actor) -> str:
        """Name an actor by those above it and itself, the same in each run of a seed.

        The first session's path is empty, the supervisor above it is `root`.
        """
        known = self._paths.get(actor.actor_urn)
        if known is None:
            known = self._paths[actor.actor_urn] = self._path(actor)
        return known

    def _path(self, actor: Actor) -> str:
        above = actor.supervisor
        if isinstance(actor, Root):
            return "root"
        if above is None or above.actor_urn == self.supervisor.actor_urn:
            return ""
        return f"{self._path_above(above.actor_urn)}/{actor.name}".strip("/")

    def _path_above(self, urn: str) -> str:
        living = {actor.actor_urn: actor for actor in self.system.living()}
        return self.path(living[urn]) if urn in living else self._paths.get(urn, "gone")

    # Happenings -----------------------------------------------------------------------------------

    def say(self, message: Any) -> None:
        """Say something to the session, as any surface does."""
        self.chronicle.note(ROOT, Uttered(message=message))
        if self.root.ref is not None:
            tell(self.root.ref, message)

    def utter(self, message: Any) -> None:
        """Say something as a person who might as well keep quiet: a shrunken run leaves it out."""
        if not isinstance(self._dice, Choices) or self._dice.is_said():
            self.say(message)

    def step(self) -> bool:
        """Do one thing that could happen now; false when nothing is left to happen.

        A crash of the store is a crash of the program; the caller has to `restart` it.
        """
        self.steps += 1
        self.world.decisions = 0
        if not self.dispatcher.ready:
            self.dispatcher.end_pass()
        choices = self._choices()
        if not choices:
            return False
        names = [name for name, _ in choices]
        try:
            choices[self._chooser(names)][1]()
        except SimulatedCrash:
            self.crash()
        else:
            if self._has_crashed():  # under an actor, which has died of it
                self.crash()
        return True

    def _has_crashed(self) -> bool:
        crash_at = self.store.crash_at
        return crash_at is not None and self.store.writes >= crash_at

    def _choices(self) -> list[tuple[str, Callable[[], None]]]:
        choices: list[tuple[str, Callable[[], None]]] = [
            (self.path(mailbox.owner), lambda number=number: self._run(number))  # type: ignore[misc]
            for number, mailbox in enumerate(self.dispatcher.ready)
        ]
        for session in self.writer.waiting():
            name = "writer" if session == ROOT else f"writer {session}"
            choices.append((name, lambda session=session: self.writer.work(session)))  # type: ignore[misc]
        if not self.timeline:
            return choices
        if not choices:
            choices.append(("time", lambda: self.timeline.advance(is_idle=True)))
        elif self._dice.random() < self.plan.haste:
            choices.append(("time", self.timeline.advance))
        return choices

    def _run(self, number: int) -> None:
        """Let an actor handle some messages; every other time the pass of the dispatcher ends then."""
        self.dispatcher.run(number, self._dice.randrange(1, self.plan.longest_batch + 1))
        if self._dice.random() < 0.5:
            self.dispatcher.end_pass()
