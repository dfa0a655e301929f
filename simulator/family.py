"""The promises about children, as checks of everything that happened in all sessions of a run.

`Family` reads the chronicle once, and keeps for each session what its journal says of its children;
what was lost in a crash is forgotten again when the session is resumed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..journal import entries as e
from ..journal.child_record import ChildRecord, apply_to_children, at_work, names_for
from ..journal.record import SessionRecord, apply
from ..machines import protocol as m
from ..machines.delivery import DEFAULT_DELIVERIES, Relation, deliver
from ..machines.delivery import ENDS as ENDING
from ..machines.lifecycles import SUBAGENT
from ..machines.routing import Table
from .happening import (
    Appended,
    Chronicle,
    Crashed,
    Failed,
    Happening,
    Passed,
    Performed,
    Released,
    Started,
    Told,
    Uttered,
)
from .program import ROOT, SimulatedProgram
from .promises import ProviderWait, durable_entries

STOPS = {"stop", "new", "bare_word", "signal", "parent", "parent_boundary"}
LIMITS = {"budget", "no_progress", "timeout"}
LEAVING = {"exit", "suspend", "signal"}
ENDS = {"user", "overdue", "finalize", "completed", "failed", "cancelled", "disconnected"}
CAUSES = STOPS | LIMITS | LEAVING | ENDS
PEOPLE = m.UserMessage | m.ResumeQueue | m.TakeBack | m.SideTalk | m.TryAgain


def is_reached(deliveries: Table[Any], cause: str, relation: str) -> bool:
    """Whether a cause stops who stands so, by the table that is played."""
    return deliver(deliveries, cause, relation).action in ENDING


Stop = (
    e.InterruptPlanned | e.InterruptRequested | e.StopNoted | e.SessionLeaving | e.SessionFinalizing
)
"""The entries that stop a recipient; they name the relations that they reach."""

Begins = (
    m.CallModel
    | m.RunTool
    | m.AnswerAgent
    | m.RunGate
    | m.AskJudge
    | m.CountChanges
    | m.AwaitCondition
    | m.GoalTimer
)
"""The effects that begin something on behalf of a session."""


@dataclass
class SeenSession:
    """One session as its journal shows it; `reached` are those that its newest cancel must stop.

    `is_awake`: it has journalled something since it was taken up. `died` are the processes that were
    killed in children, by the receipt of the stop. `left` is the entry with which it was
    left or ended, 0 before that.
    """

    journal: list[e.Entry] = field(default_factory=list[e.Entry])
    record: SessionRecord = field(default_factory=SessionRecord)
    is_over: bool = False
    is_awake: bool = False
    is_broken: bool = False
    is_leaving: bool = False
    left: int = 0
    stops: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    reached: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    planned: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    spared: set[str] = field(default_factory=set[str])
    died: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    detached: tuple[str, ...] = ()
    deliveries: Table[Any] = DEFAULT_DELIVERIES

    @property
    def children(self) -> Mapping[str, ChildRecord]:
        """The children as the session's own journal has them."""
        return self.record.children

    @property
    def epoch(self) -> int:
        """How many turns and stops there were."""
        return self.record.epoch

    def fold(self, entry: e.Entry) -> None:
        """Take in one entry."""
        self.journal.append(entry)
        self.is_awake = True
        reached = set[str]()
        if isinstance(entry, e.InterruptPlanned | e.InterruptRequested):
            reached = self._reached(entry.cause)
        apply(self.record, entry, self.record.seq + 1, 0.0)
        match entry:
            case e.InterruptRequested(receipt=receipt, turn=turn):
                if self.is_leaving:  # then everybody is waited for at its end
                    return
                self.stops[turn or receipt] = self.epoch, str(entry.cause)
                planned = self.planned.pop(receipt, None)
                self.reached[turn or receipt] = planned if planned is not None else reached
                self.spared.clear()
            case e.InterruptPlanned(receipt=receipt):
                self.planned[receipt] = reached
            case e.ChildDetached(child=name) | e.ChildResumed(child=name):
                self.spared.add(self.children[name].session)
                for names in (*self.reached.values(), *self.planned.values()):
                    names.discard(self.children[name].session)
            case e.Recovered():
                self.reached.clear()
                self.is_over = self.is_leaving = self.is_broken = False
            case e.SessionLeaving() | e.SessionFinalizing():
                self.is_leaving = True
                self.reached.clear()
            case e.SessionResumed():
                self.is_over = self.is_leaving = self.is_broken = False
            case e.SessionSuspended() | e.SessionFinalized():
                self.is_over = True
            case _:
                pass

    def _reached(self, cause: str) -> set[str]:
        """Name those at work whom a cancel reaches."""
        return {
            one.session
            for one in at_work(self.children)
            if is_reached(self.deliveries, cause, self._relation(one))
            and one.session not in self.spared
        }

    def _relation(self, child: ChildRecord) -> str:
        """Return how a child stands to the session: its agent may be declared to go on by itself."""
        is_declared = child.agent in self.detached and child.relation == Relation.FOREGROUND_CHILD
        return Relation.DETACHED_CHILD if is_declared else child.relation


def _check_receipt(session: str, home: SeenSession, entry: e.Stopped) -> None:
    """Check that what died by a stop is what its receipt lists, each process once."""
    turn = home.record.turns.get(entry.turn)
    died = (
        {pid for call in turn.calls.values() if call.end for pid in call.end.killed}
        if turn
        else set[int]()
    )
    for stop in home.record.stops.values():
        if stop.id == entry.receipt or (entry.turn and stop.turn == entry.turn):
            died |= home.died.get(stop.id, set())
    assert died <= set(entry.killed), f"{session}: {died} were killed, and told were {entry.killed}"
    assert len(set(entry.killed)) == len(entry.killed), f"{session}: {entry.killed} is told twice"


class Family:
    """All sessions of a run, as they took turns; agents that are `detached` outlive a stop.

    `owned` are the sessions that the program has open, `closing` those that are being let go.
    `void` are the sessions whose newest order a stop of some ancestor has overtaken: until they are
    ordered again nothing begins there, nor beneath them.
    """

    def __init__(
        self, detached: tuple[str, ...], deliveries: Table[Any] = DEFAULT_DELIVERIES
    ) -> None:
        self.detached = detached
        self.deliveries = deliveries
        self.homes: dict[str, SeenSession] = {}
        self.parents: dict[str, tuple[str, str]] = {}
        self.void: set[str] = set()
        self.owned: set[str] = set()
        self.closing: set[str] = set()
        self.may_run = True
        self._wait = ProviderWait()

    def _fresh(self) -> SeenSession:
        return SeenSession(detached=self.detached, deliveries=self.deliveries)

    def see(self, session: str, happening: Happening) -> None:
        """Check one happening."""
        home = self.homes.setdefault(session, self._fresh())
        if session == ROOT and self._wait.ends_with(happening):
            self.may_run = True
        match happening:
            case Started(seq=seq):
                self.owned.add(session)
                self.closing.discard(session)
                fresh = self._fresh()
                for entry in home.journal[:seq]:
                    fresh.fold(entry)
                fresh.is_awake = False
                self.homes[session] = fresh
            case Released():
                self.owned.discard(session)
            case Crashed():
                self.owned.clear()
                self.may_run = False
            case Failed(kept=kept):
                if session == ROOT:
                    self.may_run = any(is_word(message) for message in kept)
                self._lose_beneath(home)
            case Uttered(message=message):
                self.may_run = self.may_run or is_word(message)
            case Appended(seq=_, entry=entry):
                self._entry(session, home, entry)
            case Told(seq=seq) if seq == home.left:
                self._left(session, home)
            case Passed(fact=m.StoreLost()):
                home.is_broken = True
            case Performed(effect=m.CloseChild(session=below)):
                self.closing.add(below)
            case Performed(effect=effect) if session != ROOT and isinstance(effect, Begins):
                self._begin(session, happening)
            case _:
                pass

    def _left(self, session: str, home: SeenSession) -> None:
        """Check that no child is left when a session is reported as suspended or finalized."""
        for child in home.children.values():
            below = self.homes.get(child.session)
            is_gone = below is None or below.is_over or below.is_broken or not below.is_awake
            is_gone = is_gone or child.session not in self.owned - self.closing
            assert is_gone, f"{child.session} is left by {session}: {home.record.state}"

    def _lose_beneath(self, home: SeenSession) -> None:
        """Note that the actors beneath a session whose actor failed went with it."""
        for child in home.children.values():
            self._lose(child.session)

    def _lose(self, session: str) -> None:
        home = self.homes.get(session)
        if home is not None and home.is_awake:
            home.is_awake = False
            self._lose_beneath(home)

    def _entry(self, session: str, home: SeenSession, entry: e.Entry) -> None:
        match entry:
            case e.ChildCancelled(cause=cause):
                assert cause in CAUSES, f"{session}: {entry} for no good reason"
            case e.TurnEnded(turn=turn, status="completed"):
                waited = names_for(home.children, turn)
                assert not waited, f"{session}: {turn} is complete without {waited}"
            case e.ChildEnded(child=name, status="completed"):
                self._reached_its_goal(home.children[name])
            case _:
                pass
        self._overtake(home, entry)
        if isinstance(entry, e.ChildInterrupted | e.ChildEnded):
            by = home.children[entry.child].stopped_by
            home.died.setdefault(by, set()).update(entry.killed)
        home.fold(entry)
        match entry:
            case e.ChildStarted():
                self._start(session, home, entry)
            case e.ChildResumed(child=name):
                self._order(home.children[name].session)
            case e.ChildInterrupted(child=name) if "fault in the program" in entry.why:
                self._lose(home.children[name].session)  # its actor went with the supervisor
            case e.Stopped(turn=turn):
                left = home.reached.pop(turn or entry.receipt, set[str]())
                busy = {child.session for child in at_work(home.children)} & left
                assert not busy, f"{session}: {turn or 'all'} is stopped, and {busy} are at work"
                _check_receipt(session, home, entry)
            case e.SessionFinalized() | e.SessionSuspended():
                home.left = home.record.seq
            case _:
                pass

    def _reached_its_goal(self, child: ChildRecord) -> None:
        """Check that a child which completed has achieved the goal that it was given, if any."""
        below = self.homes.get(child.session)
        goal = below.record.goals.goal if below is not None else None
        is_achieved = goal is not None and goal.state == "achieved"
        assert is_achieved or not child.goal, f"{child.session} completes without its goal"

    def _overtake(self, home: SeenSession, entry: e.Entry) -> None:
        """Note whose orders are void from this entry on: of the children, and of all beneath them."""
        match entry:
            case e.Recovered():
                reached = list(home.children.values())
            case e.ChildCancelled(child=name):
                reached = [home.children[name]]
            case _ if isinstance(entry, Stop):
                spared: tuple[str, ...] = getattr(entry, "spares", ())
                reached = [
                    child
                    for child in at_work(home.children, *entry.reaches)
                    if entry.reaches and child.name not in spared
                ]
            case _:
                return
        for child in reached:
            self._revoke(child.session)

    def _revoke(self, session: str) -> None:
        self.void.add(session)
        home = self.homes.get(session)
        for child in at_work(home.children) if home is not None else ():
            self._revoke(child.session)

    def _order(self, session: str) -> None:
        """Record a new order to a child; it is void if its sender is stopped."""
        above, _ = self.parents[session]
        if not self._stopped_above(above):
            self.void.discard(session)

    def _stopped_above(self, session: str) -> str:
        """Return the first session, upwards from this one, whose order is void."""
        while session:
            if session in self.void:
                return session
            session, _ = self.parents.get(session, ("", ""))
        return ""

    def _start(self, session: str, home: SeenSession, entry: e.ChildStarted) -> None:
        self.parents[entry.session] = session, entry.child
        self.void.discard(entry.session)
        is_late = any(
            entry.epoch < epoch and is_reached(self.deliveries, cause, entry.relation)
            for epoch, cause in home.stops.values()
        )
        if is_late or self._stopped_above(session):
            self.void.add(entry.session)
        assert entry.epoch <= home.epoch, f"{entry} is ahead of {session}"

    def _begin(self, session: str, happening: Happening) -> None:
        """Nothing begins in a child whose parent is gone, or broken, or has stopped it."""
        assert self.may_run, f"{session} acts after a restart: {happening}"
        stopped = self._stopped_above(session)
        assert not stopped, f"{session} acts though {stopped} was stopped: {happening}"
        while session in self.parents:
            above, name = self.parents[session]
            home = self.homes[above]
            assert not home.is_over, f"{session} acts though {above} is gone: {happening}"
            assert not home.is_broken, f"{session} acts though {above} is broken: {happening}"
            child = home.children.get(name)
            is_known = child is not None and child.session == session and child.is_at_work
            assert is_known, f"{session} acts, and {above} does not wait for it: {happening}"
            session = above


def is_word(message: Any) -> bool:
    """Whether it is something that a person says which may let children run."""
    is_change = isinstance(message, m.QueueChange) and message.op in ("release", "steer", "keep")
    return is_change or isinstance(message, PEOPLE)


def check_families(
    chronicle: Chronicle,
    detached: tuple[str, ...] = (),
    deliveries: Table[Any] = DEFAULT_DELIVERIES,
) -> None:
    """A child is stopped for a good reason only, and nothing begins beneath what was stopped."""
    family = Family(detached, deliveries)
    for session, happening in chronicle.all:
        family.see(session, happening)
    for session, history in chronicle.of.items():
        results_have_one_place(session, durable_entries(history))
    handed_steers_are_conserved(chronicle)
    withdrawn_steers_stay_out(chronicle)


def results_have_one_place(session: str, journal: list[e.Entry]) -> None:
    """A child's result reaches one call, one queue item, or no recipient, never two."""
    children: Mapping[str, ChildRecord] = {}
    places = Counter[str]()
    for entry in journal:
        found: list[str] = []
        match entry:
            case e.ToolEnded(call=call):
                found = [
                    child.session
                    for child in children.values()
                    if child.call == call and child.state in SUBAGENT.final
                ]
            case e.Queued(child=name) | e.Offered(child=name, is_answered=True) if name:
                bearer = children[name]  # or another that bears the name by now
                found = [bearer.session] if bearer.state in SUBAGENT.final else []
            case e.OfferAnswered(item=item):
                found = [child.session for child in children.values() if child.item == item]
            case _:
                pass
        places.update(found)
        twice = [one for one in found if places[one] > 1]
        assert not twice, f"{session}: the result of {twice} came twice: {entry}"
        children = apply_to_children(children, entry, 0.0)


def handed_steers_are_conserved(chronicle: Chronicle) -> None:
    """What a child took in is not handed back, and what arrived there is in its context, once."""
    journals = {name: durable_entries(history) for name, history in chronicle.of.items()}
    taken, passed = Counter[tuple[str, str]](), set[tuple[str, str]]()
    for session, journal in journals.items():
        keys = {
            entry.item: entry.said.client_id for entry in journal if isinstance(entry, e.Queued)
        }
        for entry in journal:
            match entry:
                case e.Steered(items=items):
                    taken.update((session, keys.get(item, "")) for item in items)
                case e.TurnStarted(item=item, resumes=""):
                    taken[session, keys.get(item, "")] += 1
                case e.SteerArrived(item=item) if entry.turn:  # it went on, one further down
                    passed.add((session, keys.get(item, "")))
                case _:
                    pass
    again = [one for one, count in taken.items() if ":" in one[1] and count > 1]
    assert not again, f"taken in twice: {again}"
    for session, journal in journals.items():
        names = dict[str, str]()
        for entry in journal:
            if isinstance(entry, e.ChildStarted):
                names[entry.child] = entry.session
            if isinstance(entry, e.SteerArrived) and entry.turn and names[entry.child] in journals:
                key = names[entry.child], f"{session}:{entry.item}"
                assert taken[key] or key in passed, f"{entry} did not arrive"


def withdrawn_steers_stay_out(chronicle: Chronicle) -> None:
    """What a person took back from a child that had stopped does not enter when that goes on."""
    journals = {name: durable_entries(history) for name, history in chronicle.of.items()}
    kept = {
        id(entry)
        for journal in journals.values()
        for entry in journal
        if isinstance(entry, e.Withdrawn) and entry.children
    }
    if not kept:
        return
    keys = {
        (session, entry.item): entry.said.client_id
        for session, journal in journals.items()
        for entry in journal
        if isinstance(entry, e.Queued)
    }
    gone = set[str]()
    for session, one in chronicle.all:
        entry = one.entry if isinstance(one, Appended) else None
        if id(entry) in kept and isinstance(entry, e.Withdrawn):
            gone.add(f"{session}:{entry.item}")
        begun = (entry.item,) if isinstance(entry, e.TurnStarted) and not entry.resumes else ()
        taken = entry.items if isinstance(entry, e.Steered) else begun
        late = [item for item in taken if keys.get((session, item)) in gone]
        assert not late, f"{session} took in what was withdrawn: {entry}"


def check_talk(chronicle: Chronicle) -> None:
    """Without a stop, no child is stopped except by its time limit, or by a limit that was reached."""
    is_limited = False
    for session, one in chronicle.all:
        if not isinstance(one, Appended):
            continue
        is_limited = is_limited or isinstance(one.entry, e.LimitReached | e.NoProgress)
        if isinstance(one.entry, e.ChildCancelled):
            is_allowed = is_limited and one.entry.cause in ("budget", "no_progress")
            is_allowed = is_allowed or _is_by_time(chronicle, session, one.entry)
            assert is_allowed, f"talk stopped a child: {one}"


def _is_by_time(chronicle: Chronicle, session: str, entry: e.ChildCancelled) -> bool:
    """Whether its time limit was reached, or that of an ancestor."""
    return entry.cause == "timeout" or session != ROOT


# At the end ---------------------------------------------------------------------------------------


def check_family_at_rest(program: SimulatedProgram) -> None:
    """No work runs, nothing is half done, and only work that can be resumed is still owned."""
    for session, live in program.world.open.items():
        record = program.record_of(session)
        assert not live.ports.tools, f"{session}: tools run: {list(live.ports.tools)}"
        if record is not None:  # else its actor died together with its nursery
            assert record.state in ("idle", "suspended", "finalized"), f"{session}: {record.state}"
            busy = [one.name for one in at_work(record.children)]
            assert not busy, f"{session} waits for {busy}"
        if live.parent:
            above = program.record_of(live.parent)
            child = above.children.get(live.environment.path[-1]) if above is not None else None
            can_go_on = child is not None and child.state == "interrupted"
            assert above is None or can_go_on, f"{session} is still owned: {child}"
    _require_results(program)


def _require_results(program: SimulatedProgram) -> None:
    """Every ended child has delivered its result to its recipient."""
    record = program.record
    if record.state != "idle" or record.run is not None:  # a run's steps take them
        return
    for child in record.children.values():
        is_over = child.state in SUBAGENT.final
        is_offered = not child.item or child.item in record.queue.order
        assert not is_over or child.is_returned or not is_offered, f"the result of {child} is lost"
