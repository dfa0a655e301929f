"""The promises about children, as checks of everything that happened in all sessions of a run.

`Family` reads the chronicle once, and keeps for each session what its journal says of its children;
what was lost in a crash is forgotten again when the session is taken up anew.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from simulation.invariants import durable_entries, timeless

from steersman.actors.simulated.happening import (
    Appended,
    Chronicle,
    Crashed,
    Happening,
    Passed,
    Performed,
    Released,
    Started,
    Uttered,
)
from steersman.actors.simulated.program import ROOT, SimulatedProgram
from steersman.journal import entries as e
from steersman.journal.child_record import ChildRecord, apply_to_children, at_work, names_for
from steersman.machines.delegation import SideTalk
from steersman.machines.delivery import DEFAULT_DELIVERIES, Delivery, deliver
from steersman.machines.effects import CallModel, RunTool
from steersman.machines.facts import StoreLost
from steersman.machines.messages import QueueChange, ResumeQueue, TakeBack, UserMessage
from steersman.machines.subagent import SUBAGENT

__all__ = ["check_families", "check_family_at_rest", "check_talk", "interrupted_children"]

STOPS = {"stop", "new", "bare_word", "signal", "parent", "budget", "timeout"}
LEAVING = {"exit", "suspend", "signal"}
ENDS = {"user", "finalize", "completed", "failed", "cancelled", "disconnected"}
CAUSES = STOPS | LEAVING | ENDS
PEOPLE = UserMessage | ResumeQueue | TakeBack | SideTalk


def is_reached(cause: str, relation: str) -> bool:
    """Whether a cause stops who stands so, by the shipped table."""
    what = deliver(DEFAULT_DELIVERIES, cause, relation).action
    return what in (Delivery.CANCEL, Delivery.FINALIZE)


SOON = 3
"""How often a child may act before it hears that its parent's journal broke."""


@dataclass
class Home:
    """One session as its journal shows it; `reached` are those that its newest cancel must stop.

    `is_awake`: it has journalled something since it was taken up.
    """

    journal: list[e.Entry] = field(default_factory=list[e.Entry])
    children: dict[str, ChildRecord] = field(default_factory=dict[str, ChildRecord])
    epoch: int = 0
    is_over: bool = False
    is_awake: bool = False
    is_broken: bool = False
    is_leaving: bool = False
    stops: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    reached: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    planned: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    spared: set[str] = field(default_factory=set[str])
    detached: tuple[str, ...] = ()

    def fold(self, entry: e.Entry) -> None:
        """Take in one entry."""
        self.journal.append(entry)
        self.is_awake = True
        apply_to_children(self.children, entry, 0.0)
        match entry:
            case e.TurnStarted(epoch=epoch):
                self.epoch = epoch
            case e.InterruptRequested(turn=turn, cause=cause):
                self.epoch += bool(turn)
                if self.is_leaving:  # then everybody is waited for at its end
                    return
                self.stops[turn] = self.epoch, str(cause)
                planned = self.planned.pop(entry.receipt, None)
                self.reached[turn] = planned if planned is not None else self._reached(cause)
                self.spared.clear()
            case e.InterruptPlanned(receipt=receipt, cause=cause):
                self.planned[receipt] = self._reached(cause)
            case e.ChildDetached(child=name) | e.ChildResumed(child=name):
                self.spared.add(self.children[name].session)
                for names in (*self.reached.values(), *self.planned.values()):
                    names.discard(self.children[name].session)
            case e.Recovered():
                self.epoch += 1
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
            if is_reached(cause, one.relation)
            and not self._is_spared(one)
            and one.session not in self.spared
        }

    def _is_spared(self, child: ChildRecord) -> bool:
        """Whether it goes on by its agent's declaration when the turn that waits for it stops."""
        return child.agent in self.detached and child.relation == "foreground_child"


class Family:
    """All sessions of a run, as they took turns; agents that are `detached` outlive a stop."""

    def __init__(self, detached: tuple[str, ...]) -> None:
        self.detached = detached
        self.homes: dict[str, Home] = {}
        self.parents: dict[str, tuple[str, str]] = {}
        self.late: set[str] = set()
        self.owned: set[str] = set()
        self.may_run = True
        self.acted: set[str] = set()
        self.early: dict[str, Happening] = {}
        self.orphaned: Counter[str] = Counter()

    def see(self, session: str, happening: Happening) -> None:
        """Check one happening."""
        home = self.homes.setdefault(session, Home(detached=self.detached))
        match happening:
            case Started(seq):
                self.owned.add(session)
                fresh = Home(detached=self.detached)
                for entry in home.journal[:seq]:
                    fresh.fold(entry)
                fresh.is_awake = False
                self.homes[session] = fresh
            case Released():
                self.owned.discard(session)
            case Crashed():
                self.owned.clear()
                self.early.clear()
                self.orphaned.clear()
                self.may_run = False
            case Uttered(message):
                is_change = isinstance(message, QueueChange)
                if isinstance(message, PEOPLE) or (
                    is_change and message.op in ("release", "steer", "keep")
                ):
                    self.may_run = True
            case Appended(_, entry):
                self._entry(session, home, entry)
            case Passed(StoreLost()):
                home.is_broken = True
            case Performed(CallModel() | RunTool()):
                self._act(session, happening)
            case _:
                pass

    def _entry(self, session: str, home: Home, entry: e.Entry) -> None:
        match entry:
            case e.ChildStarted():
                self._start(session, home, entry)
            case e.ChildCancelled(cause=cause):
                assert cause in CAUSES, f"{session}: {entry} for no good reason"
            case e.ChildResumed(child=name):
                self.late.discard(home.children[name].session)
                self.early.pop(home.children[name].session, None)
            case e.TurnEnded(turn=turn, status="completed"):
                waited = names_for(home.children, turn)
                assert not waited, f"{session}: {turn} is complete without {waited}"
            case _:
                pass
        home.fold(entry)
        match entry:
            case e.Stopped(turn=turn):
                left = home.reached.pop(turn, set[str]())
                busy = {one.session for one in at_work(home.children)} & left
                self.late |= busy - self.acted  # they may be stopped later, if they never begin
                busy &= self.acted
                assert not busy, f"{session}: {turn or 'all'} is stopped, and {busy} are at work"
            case e.SessionFinalized() | e.SessionSuspended():
                for child in home.children.values():
                    below = self.homes.get(child.session)
                    is_gone = (
                        below is None or below.is_over or below.is_broken or not below.is_awake
                    )
                    is_gone = is_gone or child.session not in self.owned
                    assert is_gone, f"{child.session} is left by {session}: {entry}"
            case _:
                pass

    def _start(self, session: str, home: Home, entry: e.ChildStarted) -> None:
        self.parents[entry.session] = session, entry.child
        self.late.discard(entry.session)
        for epoch, cause in home.stops.values():
            if entry.epoch < epoch and is_reached(cause, entry.relation):
                self.late.add(entry.session)
        assert entry.epoch <= home.epoch, f"{entry} is ahead of {session}"

    def _act(self, session: str, happening: Happening) -> None:
        if session == ROOT:
            return
        self.acted.add(session)
        assert self.may_run, f"{session} acts after a restart: {happening}"
        parent, name = self.parents[session]
        child = self.homes[parent].children.get(name)
        if child is not None and child.session == session and child.state == "interrupted":
            self.early.setdefault(session, happening)  # the news of its resuming may be on the way
        else:
            assert session not in self.late, f"{session} was attached after a stop: {happening}"
        while parent:
            over = self.homes[parent]
            assert not over.is_over, f"{session} acts though {parent} is gone: {happening}"
            if over.is_broken:  # the news of it may be on the way
                self.orphaned[session] += 1
                is_soon = self.orphaned[session] <= SOON
                assert is_soon, f"{session} goes on though {parent} is broken: {happening}"
            parent, _ = self.parents.get(parent, ("", ""))


def check_families(chronicle: Chronicle, detached: tuple[str, ...] = ()) -> None:
    """Every promise about children that can be read off what happened."""
    family = Family(detached)
    for session, happening in chronicle.all:
        family.see(session, happening)
    assert not family.early, f"acts though it was interrupted: {family.early}"
    for session, history in chronicle.of.items():
        results_have_one_place(session, durable_entries(history))
    handed_steers_are_conserved(chronicle)


def results_have_one_place(session: str, journal: list[e.Entry]) -> None:
    """A child's result reaches one call, one place in the queue, or nobody, never two of them."""
    children: dict[str, ChildRecord] = {}
    places = Counter[str]()
    for entry in journal:
        found: list[str] = []
        match entry:
            case e.ToolEnded(call=call):
                found = [
                    one.session
                    for one in children.values()
                    if one.call == call and one.state in SUBAGENT.final
                ]
            case e.Queued(child=name) | e.Offered(child=name, is_answered=True) if name:
                bearer = children[name]  # or another that bears the name by now
                found = [bearer.session] if bearer.state in SUBAGENT.final else []
            case e.OfferAnswered(item=item):
                found = [one.session for one in children.values() if one.item == item]
            case _:
                pass
        places.update(found)
        twice = [one for one in found if places[one] > 1]
        assert not twice, f"{session}: the result of {twice} came twice: {entry}"
        apply_to_children(children, entry, 0.0)


def handed_steers_are_conserved(chronicle: Chronicle) -> None:
    """What a child took in is not handed back, and what arrived there is in its context, once."""
    journals = {name: durable_entries(history) for name, history in chronicle.of.items()}
    taken, passed = Counter[tuple[str, str]](), set[tuple[str, str]]()
    for session, journal in journals.items():
        keys = {one.item: one.client_id for one in journal if isinstance(one, e.Queued)}
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


def check_talk(chronicle: Chronicle) -> None:
    """Where nobody asks anybody to stop, no child is stopped but by its time."""
    for session, one in chronicle.all:
        if isinstance(one, Appended) and isinstance(one.entry, e.ChildCancelled):
            assert _is_by_time(chronicle, session, one.entry), f"talk stopped a child: {one}"


def _is_by_time(chronicle: Chronicle, session: str, entry: e.ChildCancelled) -> bool:
    """Whether its time was up, or that of whoever it worked for."""
    return entry.cause == "timeout" or session != ROOT


# At the end ---------------------------------------------------------------------------------------


def check_family_at_rest(program: SimulatedProgram) -> None:
    """Nobody works, nothing is half done, and only what can be resumed is still owned."""
    for session, live in program.world.open.items():
        record = program.record_of(session)
        assert not live.ports.tools, f"{session}: tools run: {list(live.ports.tools)}"
        if record is not None:  # else its actor died together with its nursery
            assert record.state in ("idle", "suspended", "finalized"), f"{session}: {record.state}"
            busy = [one.name for one in at_work(record.children)]
            assert not busy, f"{session} waits for {busy}"
            _check_copies(program, session)
        if live.parent is not None:
            above = program.record_of(live.parent.id)
            child = above.children.get(live.name) if above is not None else None
            can_go_on = child is not None and child.state == "interrupted"
            assert above is None or can_go_on, f"{session} is still owned: {child}"
    _require_results(program)


def interrupted_children(program: SimulatedProgram) -> list[str]:
    """Return the sessions of children that can be resumed, at any depth."""
    records = [program.record_of(session) for session in program.world.open]
    return [
        one.session
        for record in records
        if record is not None
        for one in record.children.values()
        if one.state == "interrupted"
    ]


def _check_copies(program: SimulatedProgram, session: str) -> None:
    """What the nursery and the queue think is what their session does."""
    for actor in program.system.living():
        owner: Any = actor.supervisor and actor.supervisor
        record = program.record_of(session)
        assert record is not None
        is_its = owner is not None and owner == program.world.open[session].ref
        if not is_its or record.state == "finalized":
            continue
        copy: Any = actor
        if actor.name == "nursery":
            assert _timeless(copy.records) == _timeless(record.children), f"{session}: copies"
        if actor.name == "queue":
            assert timeless(copy.record) == timeless(record.queue), f"{session}: copies"


def _timeless(children: dict[str, ChildRecord]) -> dict[str, ChildRecord]:
    """Leave out the times, and whether a result has arrived, which is none of the nursery's matters."""
    return {
        name: replace(one, started=0.0, since=0.0, is_returned=False)
        for name, one in children.items()
    }


def _require_results(program: SimulatedProgram) -> None:
    """What ended has given its result to whoever is there for it."""
    record = program.record
    if record.state != "idle":
        return
    for child in record.children.values():
        is_over = child.state in SUBAGENT.final
        is_offered = not child.item or child.item in record.queue.order
        assert not is_over or child.is_returned or not is_offered, f"the result of {child} is lost"
