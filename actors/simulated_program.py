"""A whole simulated program with one session: it is stepped, crashed, and started again.

`history` is everything that happened, in order, across all incarnations; whoever checks promises
reads it. A crash ends the actors, their ports and whatever was not durable; the next start takes over
what the store holds under a new lease, as the program does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pykka import ActorRef

from ..journal import entries as e
from ..journal.memory import MemoryStore, SimulatedCrash
from ..journal.record import SessionRecord
from ..journal.recovery import load_record
from ..journal.store import SessionRow
from ..machines.effects import Effect
from ..machines.facts import Fact
from ..machines.policy import Policy
from .actor import Actor
from .environment import Environment
from .session import Session
from .simulated_ports import Chances, SimulatedJournal, SimulatedPorts, SimulatedToolbook
from .simulation import Chooser, Dice, SimulatedDispatcher, Timeline
from .system import ActorSystem

__all__ = [
    "Appended",
    "Crashed",
    "Durable",
    "Happening",
    "Passed",
    "Performed",
    "Plan",
    "SimulatedProgram",
    "Started",
    "Told",
    "Uttered",
]

SESSION = "s1"


@dataclass(frozen=True, slots=True)
class Uttered:
    """A person said something to the session."""

    message: Any


@dataclass(frozen=True, slots=True)
class Appended:
    """An entry was folded and handed to the journal."""

    seq: int
    entry: e.Entry


@dataclass(frozen=True, slots=True)
class Durable:
    """Everything up to `seq` is in the store."""

    seq: int


@dataclass(frozen=True, slots=True)
class Told:
    """A listener was told of entry `seq`."""

    seq: int


@dataclass(frozen=True, slots=True)
class Passed:
    """A listener was told a passing fact."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Performed:
    """An effect was handed to the ports."""

    effect: Effect


@dataclass(frozen=True, slots=True)
class Crashed:
    """The program died."""


@dataclass(frozen=True, slots=True)
class Started:
    """The program took the session up, whose newest durable entry is `seq`."""

    seq: int


Happening = Uttered | Appended | Durable | Told | Passed | Performed | Crashed | Started


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is like, apart from what people say: settings, odds, planted faults.

    `haste` is how often time may go on, from 0 to 1, while somebody still has something to do.
    """

    policy: Policy = field(default_factory=Policy)
    chances: Chances = field(default_factory=Chances)
    crash_at: int | None = None
    crash_side: Literal["before", "after"] = "before"
    max_steps: int = 6
    longest_batch: int = 4
    haste: float = 0.2
    session_type: type[Session] = Session


class SimulatedProgram:
    """One program with one session. Made with `dice` and `chooser` it never differs."""

    def __init__(self, plan: Plan, dice: Dice, chooser: Chooser) -> None:
        self.plan = plan
        self.timeline = Timeline()
        self.history: list[Happening] = []
        self.durable = 0
        self.store = MemoryStore(
            clock=self.timeline.read, crash_at=plan.crash_at, crash_side=plan.crash_side
        )
        self.policy = plan.policy
        self._dice, self._chooser = dice, chooser
        self.store.create(SessionRow(SESSION, "/home"))
        self._start()

    # One incarnation ------------------------------------------------------------------------------

    def _start(self) -> None:
        lease = self.store.claim(SESSION, "n1")
        assert lease is not None
        record = load_record(self.store, SESSION)
        record.id = SESSION
        self.durable = record.seq
        self.dispatcher = SimulatedDispatcher()
        self.system = ActorSystem(self.dispatcher, self.timeline.read)
        self.journal = SimulatedJournal(self.store, lease, self._dice, self._committed)
        self.ports = SimulatedPorts(
            self.timeline,
            self._dice,
            self.plan.chances,
            lambda effect: self.history.append(Performed(effect)),
        )
        toolbook = SimulatedToolbook()
        self.environment = Environment(
            self.journal, self.ports, self, toolbook, self.policy, self.plan.max_steps
        )
        self.history.append(Started(record.seq))
        self.session: ActorRef[Any] = self.plan.session_type.start(
            self.system, record, self.environment
        )
        if not record.seq:
            self.session.tell(e.SessionOpened(SESSION, "/home", "assistant", "dice", "be good"))

    def _committed(self, message: Any) -> None:
        seq = getattr(message, "seq", None)
        if seq is not None:
            self.durable = seq
            self.history.append(Durable(seq))
        if self.session.is_alive():
            self.session.tell(message)

    def crash(self) -> None:
        """Die: what is not in the store is gone."""
        self.history.append(Crashed())
        self.timeline.forget("ports")
        self.close()
        self.dispatcher.ready.clear()
        self.journal.pending.clear()

    def close(self) -> None:
        """Let go of the actors."""
        for actor in self.system.living():
            self.system.retire(actor)

    def restart(self) -> None:
        """Start again from what the store holds."""
        self.store = self.store.survivor()
        self._start()

    @property
    def record(self) -> SessionRecord:
        """The session's state, as its actor sees it."""
        session = self.actor("")
        assert isinstance(session, Session)
        return session.record

    @property
    def is_running(self) -> bool:
        """Whether there is a living program."""
        return bool(self.system.living())

    def actor(self, name: str) -> Actor | None:
        """Return the living actor of that name: `queue`, `turn`, or the session's, which is empty."""
        found = [one for one in self.system.living() if one.name == name]
        return found[-1] if found else None

    # What happens ---------------------------------------------------------------------------------

    def hear(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> tuple[Told, ...]:
        """Note an entry that was folded."""
        self.history.append(Appended(seq, entry))
        return (Told(seq),)

    def tell(self, told: tuple[Told, ...]) -> None:
        """Note what a listener is told."""
        self.history.extend(told)

    def pass_on(self, fact: Fact) -> None:
        """Note a passing fact."""
        self.history.append(Passed(fact))

    def say(self, message: Any) -> None:
        """Say something to the session, as any surface does."""
        self.history.append(Uttered(message))
        if self.session.is_alive():
            self.session.tell(message)

    # Steps ----------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do one thing that could happen now; false when nothing is left to happen.

        A crash of the store is a crash of the program; somebody has to `restart` it.
        """
        choices = self._choices()
        if not choices:
            return False
        names = [name for name, _ in choices]
        try:
            choices[self._chooser(names)][1]()
        except SimulatedCrash:
            self.crash()
        return True

    def _choices(self) -> list[tuple[str, Callable[[], None]]]:
        choices: list[tuple[str, Callable[[], None]]] = [
            (mailbox.owner.name, lambda number=number: self._run(number))  # type: ignore[misc]
            for number, mailbox in enumerate(self.dispatcher.ready)
        ]
        if self.journal.pending:
            choices.append(("writer", self.journal.write))
        is_due = not choices or self._dice.random() < self.plan.haste
        if self.timeline and is_due:
            choices.append(("time", self.timeline.advance))
        return choices

    def _run(self, number: int) -> None:
        self.dispatcher.run(number, self._dice.randrange(1, self.plan.longest_batch + 1))
