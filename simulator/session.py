"""The sessions of a simulated program: what `OpenSessions` is handed in place of the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace
from pykka import ActorRef

from ..actors.agent_profile import AgentProfile
from ..actors.commits import Commits
from ..actors.decisions.queries import DELEGATE
from ..actors.environment import Environment, Observer, Permit, Publication, ToolPolicy
from ..actors.kernel.mailbox import Mailbox, tell
from ..actors.kernel.system import ActorSystem
from ..actors.ledger import Ledger
from ..actors.open_sessions import OpenSessions, OwnedSession
from ..actors.session import Session
from ..journal import entries as e
from ..journal.memory import MemoryStore
from ..journal.record import SessionRecord
from ..journal.recovery import running_calls
from ..journal.store import Lease
from ..machines import protocol as m
from ..machines.conversation import ToolRequest, ToolSchema
from ..machines.delivery import Relation
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
        if any(request.tool == tool for tool, _ in self.record().holds):
            return Permit(do="ask", rule="hold", is_hold=True)
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
        """Note after which entry the decision's effects may begin; it is not read off the outbox.

        Early ones may at once.
        """
        self._count()
        last = self.record.seq + len(decision.entries)
        for effect in decision.effects:
            self._decided[id(effect)] = effect, last
        for effect in decision.early:
            self._decided[id(effect)] = effect, 0
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

    def profile(self) -> AgentProfile:
        """Return the agent that runs it."""
        name = f"{WORKFLOW}{self.spec.name}"
        return replace(_profile(name), workflow=self.spec, variables=self.variables)


def _profile(agent: str) -> AgentProfile:
    """Return an agent of the simulator, whose model is dice."""
    return AgentProfile(name=agent, model=None, system="be good", tools=())


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


def _unobserved(session: str) -> tuple[Observer, ...]:
    return ()


class SimulatedSession(OwnedSession, kw_only=True):
    """A session that a simulated program owns, below `above` if it is a child.

    `durable` is the number of its newest entry in the store.
    """

    ports: SimulatedPorts
    above: SimulatedSession | None = None
    durable: int = 0

    async def aclose(self) -> None:
        """End whatever its ports still do."""
        self.ports.close()


class World:
    """The world of one incarnation of a program: what `OpenSessions` asks for, done by dice.

    `sessions` are those that the program owns, and `open` has them by id.
    """

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
        self.sessions = OpenSessions(
            store,
            system,
            self.commits,
            self,
            by_id=self.open,
            flush=self.writer.flush,
            node=NODE,
            place="",
        )
        self.system.dispatcher.after_pass.append(self.commits.flush)

    def start(self, session: str, *, is_known: bool, is_offline: bool = False) -> SimulatedSession:
        """Begin the first session, or take it up again, which may have come to no entry.

        `is_offline`: only its queue is changed.
        """
        run = self.plan.run
        profile = _profile(AGENTS[0]) if run is None else run.profile()
        if is_known:
            spec = self.sessions.take_up(
                session, lambda record: profile, _unobserved, is_offline=is_offline
            )
        else:
            spec = self.sessions.begin(session, Path(FOLDER), profile, _unobserved)
        self.sessions.root.tell(spec)
        self.dispatcher.run(0, 1)
        live = self.open[session]
        if is_known and not is_offline and not live.record.seq:
            tell(live.ref, m.OpenSession(entry=profile.opening(session, FOLDER)))
        return live

    def settle(self) -> None:
        """Let every actor deal with what it has, and write what they decide."""
        while self.dispatcher.ready:
            self.dispatcher.run(0, 99)
        self.dispatcher.end_pass()
        for session in self.writer.waiting():
            self.writer.work(session)

    def count(self) -> None:
        """Count a decision of this step of the program. Raises `AssertionError` where there is no end."""
        self.decisions += 1
        assert self.decisions <= MOST_DECISIONS, "an actor decides again and again, without an end"

    def has_room(self) -> bool:
        """Whether a model may still wish for a child."""
        return len(self.chronicle.of) <= self.plan.most_children

    def _written(self, session: str, seq: int) -> None:
        """Note that everything up to an entry of a session is in the store."""
        self.chronicle.note(session, Durable(seq=seq))
        live = self.open.get(session)
        if live is not None:
            live.durable = seq

    # How its sessions are made --------------------------------------------------------------------

    def build(
        self,
        lease: Lease,
        record: SessionRecord,
        folder: Path,
        profile: AgentProfile,
        observers: tuple[Observer, ...],
    ) -> SimulatedSession:
        """Give a claimed session ports that roll dice."""
        plan, session = self.plan, lease.session
        record.id = session

        def performed(effect: Any) -> None:
            decided = cast("WatchedLedger", live.ledger).decided(effect)
            self.chronicle.note(session, Performed(effect=effect, decided=decided))

        ports = plan.ports_type(
            timeline=self.timeline,
            dice=self.dice,
            chances=plan.chances,
            performed=performed,
            session=lambda: live,
            children=self.sessions,
            has_room=self.has_room,
        )
        environment = Environment(
            journal=self.commits,
            perform=ports,
            observers=(Notes(self, session), *observers),
            tool_policy=plan.tool_policy(lambda: live.record),
            policy=plan.policy,
            max_steps=plan.max_steps,
            delegation=plan.delegation,
            compaction=plan.compaction,
            account=Account(name="limits", limits=plan.limits),
            goals=plan.goals,
            agent=profile.name,
            workflow=profile.workflow,
        )
        if plan.tables is not None:
            plan.tables(environment)
        ledger = self.ledger(session, record, environment)
        live: SimulatedSession = SimulatedSession(
            id=session, lease=lease, ledger=ledger, kind=plan.session_type, ports=ports
        )
        live.durable = record.seq
        return live

    def outcomes(self, live: SimulatedSession) -> Mapping[str, str]:
        """Let every third call have a tool that tells what became of it; the same at every start."""
        calls = [call.id for call in running_calls(live.record)]
        return {call: "it was done" for call in calls if crc32(call.encode()) % 3 == 0}

    def ledger(
        self, session: str, record: SessionRecord, environment: Environment
    ) -> WatchedLedger:
        """Make the ledger of a session that is taken up, by the program or after its actor failed."""
        note = partial(self.chronicle.note, session)
        if (failed := self.open.get(session)) is not None:
            failed.durable = record.seq
            inbox = failed.ref.actor_inbox if failed.ref is not None else None
            waiting = waiting_in(inbox) if isinstance(inbox, Mailbox) else []
            said = [envelope.message for envelope in waiting]
            kept = (one.message if isinstance(one, m.Mailed) else one for one in said)
            note(Failed(kept=tuple(kept)))
        note(Started(seq=record.seq))
        return WatchedLedger(record, environment, self.timeline.read, note, self.count)

    def profile_of(self, order: m.OpenChild, parent: SimulatedSession) -> AgentProfile:
        """Say what a child is: an agent, or a run of a workflow that its parent's includes."""
        above, find = parent.environment.workflow, self.plan.included
        if above is None or find is None or not order.agent.startswith(WORKFLOW):
            return _profile(order.agent)
        return find(order.agent.removeprefix(WORKFLOW), above, order.task).profile()

    def observers_of(self, session: str, parent: str) -> tuple[Observer, ...]:
        """There are none but those of each session."""
        return ()

    def share(self, child: SimulatedSession, parent: SimulatedSession, order: m.OpenChild) -> None:
        """Let a child know its parent, and a side talk only look."""
        child.above = parent
        delegation, policy = child.environment.delegation, child.environment.tool_policy
        if isinstance(policy, SimulatedToolPolicy):
            policy.only_looks = order.relation == Relation.SIDE_TALK
            policy.may_delegate = delegation.depth < delegation.max_depth

    async def part_with(self, live: SimulatedSession, release: Callable[[], None]) -> None:
        """End the pass of the dispatcher, and release a session."""
        self.dispatcher.end_pass()
        release()
        self.chronicle.note(live.id, Released())


class Notes:
    """Notes in the chronicle what a session decides, and what is published of it."""

    def __init__(self, world: World, session: str) -> None:
        self._note = partial(world.chronicle.note, session)
        self._timeline = world.timeline

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication:
        """Note an entry that was folded, and, later, that it was published."""
        self._note(Appended(seq=seq, entry=entry, idle=self._timeline.idle))
        return partial(self._note, Told(seq=seq))

    def observe_fact(self, fact: m.Fact) -> None:
        """Note a passing fact."""
        self._note(Passed(fact=fact))
