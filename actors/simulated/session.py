"""One session's surroundings in a simulated program, and those of its children.

What the runtime and `offspring.py` do for a live session is done here on a store in memory: it is
claimed, given its journal, ports and ears, its children are opened beneath it, and it is let go.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pykka import ActorRef

from ...journal import entries as e
from ...journal.memory import MemoryStore
from ...journal.record import SessionRecord
from ...journal.recovery import load_record
from ...journal.store import SessionRow
from ...machines.delegation import ChildOpened, ChildReport, OpenChild
from ...machines.delivery import Relation
from ...machines.errors import UnknownSession
from ...machines.facts import Fact
from ...machines.limits import Account, Limits
from ...machines.policy import CompactionPolicy, DelegationPolicy, GoalPolicy, Policy
from ..children.report import ReportingEars, last_report
from ..environment import Ears, Environment
from ..mailbox import tell
from ..session import Session
from ..system import ActorSystem
from .happening import Appended, Chronicle, Durable, Passed, Performed, Released, Started, Told
from .journal import SimulatedJournal
from .ports import Chances, SimulatedPorts
from .simulation import Dice, Timeline
from .toolbook import SimulatedToolbook

__all__ = ["AGENTS", "Plan", "SimulatedSession", "World"]

NODE = "n1"
FOLDER = "/home"
AGENTS = ("assistant", "scout")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is like, apart from what people say: settings, odds, planted faults.

    `haste` is how often time may go on, from 0 to 1, while somebody still has something to do.
    `most_children` is how many sessions a run may have beside the first.
    """

    policy: Policy = field(default_factory=Policy)
    chances: Chances = field(default_factory=Chances)
    crash_at: int | None = None
    crash_side: Literal["before", "after"] = "before"
    max_steps: int = 6
    longest_batch: int = 4
    haste: float = 0.2
    session_type: type[Session] = Session
    delegation: DelegationPolicy = field(default_factory=lambda: DelegationPolicy(AGENTS))
    most_children: int = 8
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    limits: Limits = field(default_factory=Limits)
    goals: GoalPolicy = field(default_factory=GoalPolicy)


@dataclass(slots=True)
class World:
    """What the sessions of one incarnation share; `open` are those that it owns, by id."""

    plan: Plan
    store: MemoryStore
    timeline: Timeline
    system: ActorSystem
    dice: Dice
    chronicle: Chronicle
    open: dict[str, SimulatedSession] = field(default_factory=dict[str, "SimulatedSession"])

    def has_room(self) -> bool:
        """Whether a model may still wish for a child."""
        return len(self.chronicle.of) <= self.plan.most_children


class SimulatedSession:
    """A session that the program owns; `parent` is whose child it is, none for nobody's."""

    def __init__(
        self, world: World, session: str, parent: SimulatedSession | None = None, name: str = ""
    ) -> None:
        lease = world.store.claim(session, NODE)
        assert lease is not None, f"{session} is owned already"
        self.id, self.name, self.parent = session, name, parent
        self.durable = 0
        self.ref: ActorRef[Any] | None = None
        self._world = world
        self._lease = lease
        self._listener: ActorRef[Any] | None = None
        plan = world.plan
        self.journal = SimulatedJournal(world.store, lease, world.dice, self._committed)
        self.ports = SimulatedPorts(
            world.timeline, world.dice, plan.chances, self._performed, self, world.has_room
        )
        ears: Ears = self if parent is None else ReportingEars(name, self, self._report)
        self.environment = Environment(
            self.journal,
            self.ports,
            ears,
            SimulatedToolbook(),
            plan.policy,
            plan.max_steps,
            delegation=plan.delegation,
            compaction=plan.compaction,
            account=Account("limits", plan.limits),
            goals=plan.goals,
            agent=AGENTS[0],
        )
        self.record = self._load()
        world.open[session] = self

    def _load(self) -> SessionRecord:
        record = load_record(self._world.store, self.id)
        record.id = self.id
        self.durable = record.seq
        self._note(Started(record.seq))
        return record

    def start(self) -> ActorRef[Any]:
        """Start the session's actor; from the second time on from what the store holds."""
        if self.ref is not None:
            self.reload()
        kind = self._world.plan.session_type
        self.ref = kind.start(self._world.system, self.record, self.environment)
        return self.ref

    def reload(self) -> None:
        """Forget what a dead actor knew, once all that it decided is in the store."""
        if self.journal.pending:
            self.journal.write()
        self.record = self._load()

    # Its children ---------------------------------------------------------------------------------

    def open_child(self, order: OpenChild, nursery: ActorRef[Any]) -> ChildOpened:
        """Open a child's session, new or known."""
        world = self._world
        child = world.open.get(order.session)
        if child is None:
            child = self._claim(order)
        else:
            child.ref = None
            child.reload()
        child._listener = nursery
        record = child.record
        entry = None if record.seq else self._opening(order)
        last = last_report(order.name, record) if record.seq else None
        has_task = "task" in record.queue.clients
        return ChildOpened(order.name, child.start, entry, has_task, last)

    def _claim(self, order: OpenChild) -> SimulatedSession:
        world, above = self._world, self.environment
        try:
            world.store.load(order.session)
        except UnknownSession:
            world.store.create(SessionRow(order.session, FOLDER, parent=self.id))
        child = SimulatedSession(world, order.session, self, order.name)
        here = child.environment
        here.delegation = replace(above.delegation, depth=above.delegation.depth + 1)
        here.path = f"{above.path}{order.name}-"
        here.agent = order.agent
        here.account.share(above.account, "child")
        here.dispositions, here.deliveries = above.dispositions, above.deliveries
        here.returns = above.returns
        is_talk = order.relation == Relation.SIDE_TALK
        is_deepest = here.delegation.depth >= here.delegation.max_depth
        here.toolbook = SimulatedToolbook(only_looks=is_talk, may_delegate=not is_deepest)
        return child

    def _opening(self, order: OpenChild) -> e.SessionOpened:
        return e.SessionOpened(
            order.session,
            FOLDER,
            order.agent,
            "dice",
            "be good",
            parent=self.id,
            messages=order.seed,
        )

    def close_child(self, session: str) -> None:
        """Let go of a child's session; one that is gone already is no matter."""
        child = self._world.open.get(session)
        if child is not None:
            child.release()

    def release(self) -> None:
        """Give the session back, after all beneath it."""
        world = self._world
        for below in [one for one in world.open.values() if one.parent is self]:
            below.release()
        world.open.pop(self.id, None)
        self.ports.close()
        if self.journal.pending:
            self.journal.write()
        world.store.release(self._lease)
        self._note(Released())

    # What happens ---------------------------------------------------------------------------------

    def _note(self, happening: Any) -> None:
        self._world.chronicle.note(self.id, happening)

    def _performed(self, effect: Any) -> None:
        self._note(Performed(effect))

    def _committed(self, message: Any) -> None:
        seq = getattr(message, "seq", None)
        if seq is not None:
            self.durable = seq
            self._note(Durable(seq))
        if self.ref is not None:
            tell(self.ref, message)

    def _report(self, report: ChildReport) -> None:
        if self._listener is not None:
            tell(self._listener, report)

    def hear(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> tuple[Told, ...]:
        """Note an entry that was folded."""
        self._note(Appended(seq, entry))
        return (Told(seq),)

    def tell(self, told: tuple[Any, ...]) -> None:
        """Note what a listener is told."""
        for one in told:
            self._note(one)

    def pass_on(self, fact: Fact) -> None:
        """Note a passing fact."""
        self._note(Passed(fact))
