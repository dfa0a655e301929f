"""One session's surroundings in a simulated program, and those of its children.

What `runtime.py` and `child_sessions.py` do for a live session is done here on a store in memory: it is
claimed, given its journal, ports and observers, its children are opened beneath it, and it is let go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace
from pykka import ActorRef

from ..actors.child_report import ChildReporter, last_report
from ..actors.commits import Commits
from ..actors.decisions.queries import DELEGATE
from ..actors.environment import Environment, Observer, Permit, Publication, ToolPolicy
from ..actors.gate import Ancestors
from ..actors.ledger import Ledger
from ..actors.mailbox import Mailbox, reply, tell
from ..actors.session import Session
from ..actors.system import ActorSystem
from ..journal import entries as e
from ..journal.memory import MemoryStore
from ..journal.record import SessionRecord
from ..journal.recovery import load_record
from ..journal.store import SessionRow
from ..machines import protocol as m
from ..machines.conversation import ToolRequest, ToolSchema
from ..machines.delivery import Relation
from ..machines.errors import UnknownSession
from ..machines.machine import Refusal
from ..machines.policy import (
    Account,
    CompactionPolicy,
    DelegationPolicy,
    GoalPolicy,
    Limits,
    Policy,
)
from ..machines.steps import WORKFLOW
from ..machines.value import Value
from ..ports.tools.permission import Permissions, Rule
from ..workflows.flow.spec import WorkflowSpec
from .happening import (
    Appended,
    Chronicle,
    Durable,
    Failed,
    Passed,
    Performed,
    Released,
    Sent,
    Started,
    Told,
)
from .lossy_store import LossyStore
from .ports import Chances, SimulatedPorts
from .schedule import Dice, MailboxObserver, SimulatedDispatcher, Timeline, waiting_in
from .writer import SimulatedWriter

if TYPE_CHECKING:
    from ..actors.decisions.decision import Decision, Role


# The tools of the simulator's sessions, and what those may do with them ---------------------------


class SimulatedToolPolicy(Struct, kw_only=True):
    """Tools by their names: `write…` change something, `ask…` need permission, `deny…` get none.

    `record` gives the session's state. `only_looks`: whatever is not `read` gets none, as beside the work
    of a parent.
    """

    record: Callable[[], SessionRecord]
    only_looks: bool = False
    may_delegate: bool = True

    def rules(self) -> tuple[Permissions, tuple[Rule, ...]]:
        """There are none: the names of the tools decide."""
        return Permissions(), ()

    def schemas(self) -> tuple[ToolSchema, ...]:
        """There are none: the model wishes for what it likes."""
        return ()

    def fault(self, request: ToolRequest) -> str:
        """Say what is wrong with a call."""
        if request.tool == DELEGATE and not self.may_delegate:
            return "there is no such tool"
        return "it makes no sense" if request.arguments.get("bad") else ""

    def permit(self, request: ToolRequest) -> Permit:
        """Look at the name."""
        if self.only_looks:
            return Permit(do="allow" if request.tool == "read" else "deny")
        if any(request.tool == tool for tool, _ in self.record().allowed):
            return Permit(do="allow", rule="always")
        if request.tool.startswith("ask"):
            return Permit(do="ask", rule="ask first")
        return (
            Permit(do="deny", rule="never")
            if request.tool.startswith("deny")
            else Permit(do="allow")
        )

    def allowance(self, request: ToolRequest, pattern: str = "") -> tuple[str, str] | str:
        """Allow the tool, whatever the pattern."""
        return request.tool, pattern or "*"

    def is_mutating(self, tool: str) -> bool:
        """Look at the name."""
        return tool.endswith("write")

    def is_idempotent(self, tool: str) -> bool:
        """Nothing here is."""
        return tool == ""


# A ledger that notes, of each effect, which entries must be durable before it may begin -----------


URGENT = (m.CancelModel, m.StopTool, m.StopChild, m.StopJudging, m.LookAfter)
"""Effects that only stop something, and wait for no commit."""


class WatchedLedger(Ledger):
    """`note` takes the effects that are messages; those for the ports are noted there."""

    def __init__(
        self,
        record: SessionRecord,
        environment: Environment,
        now: Callable[[], float],
        note: Callable[[Any], None],
        count: Callable[[], None],
    ) -> None:
        super().__init__(record, environment, now)
        self._count = count
        self._decided: dict[int, tuple[m.Effect, int]] = {}
        self._note = note

    def decide(self, role: Role, decision: Decision, posted: int = 0) -> Refusal | None:
        """Note after which entry the decision's effects may begin; it is not read off the outbox."""
        self._count()
        last = self.record.seq + len(decision.entries)
        for effect in decision.effects:
            self._decided[id(effect)] = effect, last
        return super().decide(role, decision, posted)

    def decided(self, effect: m.Effect) -> int | None:
        """Return the newest entry of the decision that asks for an effect."""
        if isinstance(effect, URGENT):
            return 0
        known = self._decided.get(id(effect))
        return known[1] if known is not None else None

    def _perform(self, effect: m.Effect, reply_to: ActorRef[Any] | None) -> None:
        if isinstance(effect, m.Delegate | m.Dismiss | m.StopChild | m.PassSteer):
            self._note(Sent(effect=effect, decided=self.decided(effect)))
        super()._perform(effect, reply_to)


MOST_DECISIONS = 50_000
"""Decisions within one step of a program; ten thousand items of a workflow need some of each."""
NODE = "n1"
FOLDER = "/home"
AGENTS = ("assistant", "scout")


class SimulatedRun(Value):
    """A workflow that a session runs, and the values of its variables."""

    spec: WorkflowSpec
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def copy(self) -> e.WorkflowCopy:
        """Return what the journal keeps of it."""
        spec = self.spec
        return e.WorkflowCopy(
            name=spec.name,
            file=spec.file,
            folder=spec.folder,
            source=spec.source,
            variables=dict(self.variables),
        )


class SimulationPlan(Value):
    """The conditions of a run, apart from the messages of people: settings, odds, planted faults.

    `haste` is how often time may go on, from 0 to 1, while an actor still has something to do.
    `most_children` is how many sessions a run may have beside the first. `watch` sees who takes which
    message, `tables` may exchange the routing tables of a session before it starts. `ports_type` makes
    the ports of each session, `tool_policy` what it may do with tools. `run` is the workflow of the
    first session, none for an agent's; `losses` is how
    often a commit loses its answer, and `included` finds those that its steps name: by their name,
    the workflow above, and the task.
    """

    policy: Policy = field(default_factory=Policy)
    chances: Chances = field(default_factory=Chances)
    crash_at: int | None = None
    crash_side: Literal["before", "after"] = "before"
    max_steps: int = 6
    longest_batch: int = 4
    haste: float = 0.2
    session_type: type[Session] = Session
    delegation: DelegationPolicy = field(default_factory=lambda: DelegationPolicy(agents=AGENTS))
    most_children: int = 8
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    limits: Limits = field(default_factory=Limits)
    goals: GoalPolicy = field(default_factory=GoalPolicy)
    watch: MailboxObserver | None = None
    tables: Callable[[Environment], None] | None = None
    ports_type: Callable[..., SimulatedPorts] = SimulatedPorts
    tool_policy: Callable[[Callable[[], SessionRecord]], ToolPolicy] = lambda record: (
        SimulatedToolPolicy(record=record)
    )
    losses: float = 0.0
    run: SimulatedRun | None = None
    included: Callable[[str, WorkflowSpec, str], SimulatedRun] | None = None


class World:
    """The world that the sessions of one incarnation share; `open` are those that it owns, by id."""

    def __init__(
        self,
        *,
        plan: SimulationPlan,
        store: MemoryStore,
        timeline: Timeline,
        system: ActorSystem,
        dice: Dice,
        chronicle: Chronicle,
        dispatcher: SimulatedDispatcher,
    ) -> None:
        """Put the journal between the sessions and the store."""
        self.plan = plan
        self.store = store
        self.timeline = timeline
        self.system = system
        self.dice = dice
        self.chronicle = chronicle
        self.dispatcher = dispatcher
        self.open: dict[str, SimulatedSession] = {}
        self.decisions = 0
        self.commits = Commits(lambda commit, token: self.writer.submit(commit, token))
        self.writer: SimulatedWriter = SimulatedWriter(
            LossyStore(store, dice, plan.losses), dice, self.commits.answered, self._written
        )
        self.system.dispatcher.after_pass.append(self.commits.flush)

    def _written(self, session: str, seq: int) -> None:
        """Note that everything up to an entry of a session is in the store."""
        self.chronicle.note(session, Durable(seq=seq))
        live = self.open.get(session)
        if live is not None:
            live.durable = seq

    def count(self) -> None:
        """Count a decision of this step of the program. Raises `AssertionError` where there is no end."""
        self.decisions += 1
        assert self.decisions <= MOST_DECISIONS, "an actor decides again and again, without an end"

    def settle(self) -> None:
        """Write everything that was decided; the sessions learn of it later."""
        self.commits.flush()
        self.writer.flush()

    def has_room(self) -> bool:
        """Whether a model may still wish for a child."""
        return len(self.chronicle.of) <= self.plan.most_children


class SimulatedSession:
    """A session that the program owns; `parent` is the session above it, if it is a child.

    `run` is the workflow that it runs, if it does.
    """

    def __init__(
        self,
        world: World,
        session: str,
        parent: SimulatedSession | None = None,
        name: str = "",
        run: SimulatedRun | None = None,
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
        self.run = run
        self.ports = plan.ports_type(
            timeline=world.timeline,
            dice=world.dice,
            chances=plan.chances,
            performed=self._performed,
            child_opener=self,
            has_room=world.has_room,
        )
        observers: tuple[Observer, ...] = (self,)
        if parent is not None:
            observers = (self, ChildReporter(name, self._report))
        environment = Environment(
            journal=world.commits,
            perform=self.ports,
            observers=observers,
            tool_policy=plan.tool_policy(lambda: self.record),
            policy=plan.policy,
            max_steps=plan.max_steps,
            delegation=plan.delegation,
            compaction=plan.compaction,
            account=Account(name="limits", limits=plan.limits),
            goals=plan.goals,
            agent=AGENTS[0],
        )
        if run is not None:
            from ..actors.runs.run import Run  # templates take their time to import

            environment.workflow, environment.turn_type = run.spec, Run
        if plan.tables is not None:
            plan.tables(environment)
        self.ledger = self._take_up(environment)
        world.open[session] = self

    @property
    def environment(self) -> Environment:
        """The environment of the session's actors."""
        return self.ledger.environment

    @property
    def record(self) -> SessionRecord:
        """The session's state, with everything that was decided until now."""
        return self.ledger.record

    def _take_up(self, environment: Environment) -> WatchedLedger:
        """Make a ledger of what the store holds, and send the actor the outcome of its commits."""
        record = load_record(self._world.store, self.id)
        record.id = self.id
        self.durable = record.seq
        self._note(Started(seq=record.seq))
        self._world.commits.own(self._lease, lambda message: reply(self.ref, message), record.seq)
        world = self._world
        return WatchedLedger(record, environment, world.timeline.read, self._note, world.count)

    def start(self, opened: e.SessionOpened | None = None) -> ActorRef[Any]:
        """Start the session's actor; from the second time on from what the store holds.

        `opened` is the first entry of a new session.
        """
        if self.ref is not None:
            self.reload()
        kind = self._world.plan.session_type
        self.ref = kind.start(self._world.system, self.ledger)
        if opened is not None and not self.record.seq:
            self.ref.tell(m.OpenSession(entry=opened))
        return self.ref

    def reload(self) -> None:
        """Forget what a dead actor knew, once all that it decided is in the store."""
        self._world.settle()
        self._note(Failed(kept=self._kept()))
        self.ledger = self._take_up(self.environment)

    def _kept(self) -> tuple[Any, ...]:
        """Return the messages that wait for the next incarnation of the session's actor."""
        if self.ref is None:
            return ()
        inbox = self.ref.actor_inbox
        assert isinstance(inbox, Mailbox)
        return tuple(envelope.message for envelope in waiting_in(inbox))

    # Its children ---------------------------------------------------------------------------------

    def open_child(self, order: m.OpenChild, supervisor: ActorRef[Any]) -> m.ChildOpened:
        """Open a child's session, new or known."""
        world = self._world
        child = world.open.get(order.session)
        if child is None:
            child = self._claim(order)
        else:
            child.reload()
            child.ref = None
        child._listener = supervisor
        record = child.record
        entry = None if record.seq else m.OpenSession(entry=self._opening(order, child.run))
        last = last_report(order.name, record) if record.seq else None
        has_task = "task" in record.queue.clients or bool(record.goals.goals)
        is_over = record.state == "finalized"
        return m.ChildOpened(
            number=order.number,
            name=order.name,
            session=order.session,
            start=child.start,
            entry=entry,
            has_task=has_task,
            is_over=is_over,
            last=last,
        )

    def _claim(self, order: m.OpenChild) -> SimulatedSession:
        world, above = self._world, self.environment
        try:
            world.store.load(order.session)
        except UnknownSession:
            world.store.create(SessionRow(session=order.session, folder=FOLDER, parent=self.id))
        child = SimulatedSession(world, order.session, self, order.name, self._included(order))
        here = child.environment
        here.delegation = replace(above.delegation, depth=above.delegation.depth + 1)
        here.path = (*above.path, order.name)
        here.agent = order.agent
        here.account.share(above.account, "child")
        here.dispositions, here.deliveries = above.dispositions, above.deliveries
        here.returns = above.returns
        here.ancestors = Ancestors(lambda: self.ledger, order.name, order.session, above.ancestors)
        is_talk = order.relation == Relation.SIDE_TALK
        is_deepest = here.delegation.depth >= here.delegation.max_depth
        if isinstance(here.tool_policy, SimulatedToolPolicy):
            here.tool_policy.only_looks = is_talk
            here.tool_policy.may_delegate = not is_deepest
        return child

    def _included(self, order: m.OpenChild) -> SimulatedRun | None:
        """Return the workflow that a child runs; none for an agent's session."""
        above, find = self.environment.workflow, self._world.plan.included
        if above is None or find is None or not order.agent.startswith(WORKFLOW):
            return None
        return find(order.agent.removeprefix(WORKFLOW), above, order.task)

    def _opening(self, order: m.OpenChild, run: SimulatedRun | None) -> e.SessionOpened:
        return e.SessionOpened(
            session=order.session,
            folder=FOLDER,
            agent=order.agent,
            model="dice",
            system="be good",
            parent=self.id,
            messages=order.seed,
            workflow=run.copy() if run is not None else None,
        )

    def close_child(self, session: str) -> None:
        """Let go of a child's session; one that is gone already is no matter."""
        child = self._world.open.get(session)
        if child is not None:
            child.release()

    def release(self) -> None:
        """Release the session, after its descendants."""
        world = self._world
        for below in [live for live in world.open.values() if live.parent is self]:
            below.release()
        world.settle()
        world.open.pop(self.id, None)
        self.ports.close()
        world.commits.disown(self.id)
        world.store.release(self._lease)
        self._note(Released())

    # Happenings -----------------------------------------------------------------------------------

    def _note(self, happening: Any) -> None:
        self._world.chronicle.note(self.id, happening)

    def _performed(self, effect: Any) -> None:
        self._note(Performed(effect=effect, decided=self.ledger.decided(effect)))

    def _report(self, report: m.ChildReport) -> None:
        if self._listener is not None:
            tell(self._listener, report)

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication:
        """Note an entry that was folded, and, later, that it was published."""
        self._note(Appended(seq=seq, entry=entry, idle=self._world.timeline.idle))
        return partial(self._note, Told(seq=seq))

    def observe_fact(self, fact: m.Fact) -> None:
        """Note a passing fact."""
        self._note(Passed(fact=fact))
