"""Mutants: one fact of the product each that must not be otherwise, and the test that notices it.

A mutant is planted as a fault is (`planting.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from simulation import test_corners as corners
from simulation import test_guards as guards
from simulation.planting import Plant, always, none, nothing

from steersman.actors import children as child_supervisor
from steersman.actors import gate, ledger
from steersman.actors import session as sessions
from steersman.actors.decisions import children, queueing, routing, stopping
from steersman.actors.kernel import mailbox
from steersman.actors.kernel import supervisor as supervisors
from steersman.actors.kernel.supervisor import ChildSpec, Supervisor
from steersman.actors.ledger import Outbox, OutboxItem
from steersman.journal import entries as e
from steersman.journal import fold
from steersman.journal import record as records
from steersman.journal.entries import AllowanceGiven, JudgingBegun
from steersman.journal.record import SessionRecord
from steersman.machines import machine as steps
from steersman.machines import protocol as m
from steersman.machines.delivery import DEFAULT_DELIVERIES, Cause, Delivery, Relation
from steersman.machines.disposition import (
    DEFAULT_DISPOSITIONS,
    Action,
    AutoQueue,
    BusyMode,
    Intent,
    Situation,
    Strategy,
)
from steersman.machines.lifecycles import ITEM, SESSION, SUBAGENT, TURN
from steersman.machines.machine import Machine
from steersman.machines.policy import Account
from steersman.machines.result_routing import DEFAULT_RETURNS, Awaited, Return, SessionOwner
from steersman.machines.routing import Table

__all__ = ["MUTANTS", "Mutant"]

_FOLDED, _RECOVER, _HOLD = ledger.Ledger._folded, records._recover, Outbox.hold
_STEP, _RESTART, _NAME = fold.step, supervisors._restart_when_all_are_down, children._name


@dataclass(frozen=True)
class Mutant:
    """A changed `fact`, how it is planted, and the test that fails with it."""

    fact: str
    plants: tuple[Plant, ...]
    noticed_by: Callable[[], None]


# Ways to change a fact ----------------------------------------------------------------------------


def _row(table: Table[Any], action: Any, *key: str) -> Plant:
    """Let a table decide otherwise about one combination."""
    return table._index, key, replace(table.decide(key), action=action)


class _Answers(Mapping[Any, Any]):
    """The answers of a machine, wherever they are kept when the mutant is planted."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def _kept(self) -> dict[Any, Any]:
        return steps._engine(self._machine).answers

    def __getitem__(self, question: Any) -> Any:
        self._kept.clear()  # other tests may have filled it
        return steps.step(self._machine, *question)

    def __setitem__(self, question: Any, answer: Any) -> None:
        self._kept[question] = answer

    def __iter__(self) -> Iterator[Any]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _refused(machine: Machine, state: str, event: str, *facts: str) -> Plant:
    """Take a transition out of a machine."""
    refusal = steps.Refusal(
        machine=machine.name, state=state, event=event, reason="a mutant has removed it"
    )
    return _Answers(machine), (state, event, frozenset(facts)), refusal


def _without(kind: type[e.Entry]) -> Plant:
    """Never journal entries of a kind."""

    def folded(self: ledger.Ledger, entries: tuple[e.Entry, ...]) -> Any:
        return _FOLDED(self, tuple(entry for entry in entries if not isinstance(entry, kind)))

    return ledger.Ledger, "_folded", folded


def _spec(old: str, new: Any) -> Callable[..., ChildSpec]:
    """Start children of one restart type as of another."""

    def spec(name: str, start: Any, restart: Any = "permanent") -> ChildSpec:
        return ChildSpec(name=name, start=start, restart=new if restart == old else restart)

    return spec


# Mutated functions --------------------------------------------------------------------------------


def _step_anywhere(machine: Machine, state: str, event: str, facts: Any = frozenset()) -> Any:
    answer = _STEP(machine, state, event, facts)
    return steps.Step(state=state) if isinstance(answer, steps.Refusal) else answer


def _hold_only_what_acts(outbox: Outbox, held: OutboxItem) -> None:
    if held.effects and not any(
        isinstance(effect, m.CallModel | m.RunTool) for effect in held.effects
    ):
        outbox._held.insert(0, replace(held, seq=0))
    else:
        _HOLD(outbox, held)


def _recover_without_epoch(record: SessionRecord, entry: e.Recovered, time: float) -> None:
    epoch, stopped = record.epoch, record.stopped
    _RECOVER(record, entry, time)
    record.epoch, record.stopped = epoch, stopped


def _start_child_unmarked(record: SessionRecord, entry: e.ChildStarted) -> None:
    record.children_made += 1


def _restart_at_once(supervisor: Supervisor) -> None:
    there = {
        name: child for name, child in supervisor.children.items() if child.state != "stopping"
    }
    whole, supervisor.children = supervisor.children, there
    _RESTART(supervisor)
    supervisor.children = whole


_ADMITS, _CANCELLED, _DECIDE = gate.admits, gate.Ancestors.is_stopped, ledger.Ledger.decide
_MOVED, _RAISED, _APPLIED = records._move_stop, records._raise_epoch, records._apply_turn


def _admitting(*kinds: type[Any]) -> Callable[..., bool]:
    """Let effects of these kinds pass the gate in any case."""
    return lambda record, above, effect: isinstance(effect, kinds) or _ADMITS(record, above, effect)


def _of_the_parent_alone(ancestors: gate.Ancestors, born: tuple[int, ...]) -> bool:
    above, ancestors._above = ancestors._above, None
    try:
        return _CANCELLED(ancestors, born)
    finally:
        ancestors._above = above


def _decide_unless_broken(self: Any, role: Any, decision: Any, posted: int = 0) -> Any:
    return "broken" if self.broken else _DECIDE(self, role, decision, posted)


def _publish_at_once(self: Any, fact: Any) -> None:
    self._observe(fact)


def _over_at_once(record: SessionRecord, stop: Any) -> e.Stopped:
    return e.Stopped(turn="", order=stop.order.epoch, receipt=stop.id)


def _move_without_memory(cancel: Any, event: str, **changes: Any) -> Any:
    if "reaches" in changes:
        changes["reaches"] = changes["reaches"][-1:]
    return _MOVED(cancel, event, **changes)


def _raise_and_fall(record: SessionRecord, entry: Any, receipt: str = "") -> None:
    _RAISED(record, entry, receipt)
    if hasattr(entry, "order"):
        record.overtaken = entry.order.utterance


def _count_no_late_result(record: SessionRecord, entry: Any, time: float) -> None:
    if not isinstance(entry, e.LateResult):
        _APPLIED(record, entry, time)


def _name_as_wanted(record: SessionRecord, wanted: str, agent: str, taken: set[str]) -> str:
    return wanted or _NAME(record, wanted, agent, taken)


AFTER_STOP = tuple(
    _row(DEFAULT_DISPOSITIONS, Action.REFUSE, Intent.CONVERSE, Situation.INTERRUPTING, *others)
    for others in (
        (busy, strategy, auto) for busy in BusyMode for strategy in Strategy for auto in AutoQueue
    )
)

MUTANTS: dict[str, Mutant] = {
    "R01": Mutant(
        "a timeout reaches nobody",
        (_row(DEFAULT_DELIVERIES, Delivery.NONE, Cause.TIMEOUT, Relation.SELF),),
        corners.test_a_child_that_takes_too_long_is_cancelled,
    ),
    "R02": Mutant(
        "talk that interrupts cancels the goal",
        (_row(DEFAULT_DELIVERIES, Delivery.CANCEL, Cause.MESSAGE, Relation.GOAL),),
        corners.test_talk_that_interrupts_leaves_the_goal,
    ),
    "R03": Mutant(
        "a result that nobody waits for runs",
        (
            _row(
                DEFAULT_RETURNS,
                Return.RUN,
                Relation.BACKGROUND_CHILD,
                Awaited.IDLE,
                SessionOwner.PERSON,
            ),
        ),
        corners.test_a_result_without_a_waiting_turn_is_offered,
    ),
    "R04": Mutant(
        "what is said during a stop is refused",
        AFTER_STOP,
        corners.test_what_is_said_during_a_stop_runs_next,
    ),
    "T01": Mutant(
        "session: no finalize while interrupting",
        (_refused(SESSION, "interrupting", "finalize"),),
        corners.test_a_session_that_is_being_stopped_can_be_finalized,
    ),
    "T02": Mutant(
        "turn: fails at a boundary only",
        (_refused(TURN, "calling", "fail"),),
        corners.test_a_turn_whose_actor_fails_in_a_call_has_failed,
    ),
    "T03": Mutant(
        "item: no edit while interrupted",
        (_refused(ITEM, "interrupted", "edit", "spoken"),),
        corners.test_an_interrupted_message_can_be_edited,
    ),
    "T05": Mutant(
        "subagent: not stopped while waiting",
        (_refused(SUBAGENT, "waiting", "stopped"),),
        corners.test_a_child_that_waits_for_room_can_be_ended,
    ),
    "T07": Mutant(
        "the fold ignores illegal transitions",
        ((fold, "step", _step_anywhere),),
        corners.test_a_decision_that_a_machine_refuses_is_refused_whole,
    ),
    "J01": Mutant(
        "ChildDetached is not journalled",
        (_without(e.ChildDetached),),
        corners.test_a_spared_child_is_detached_in_the_journal,
    ),
    "J02": Mutant(
        "`always` is not journalled",
        (_without(AllowanceGiven),),
        corners.test_what_is_always_allowed_is_journalled,
    ),
    "J03": Mutant(
        "QueueReleased is not journalled",
        (_without(e.QueueReleased),),
        corners.test_what_is_released_runs,
    ),
    "J04": Mutant(
        "JudgingBegun is not journalled",
        (_without(JudgingBegun),),
        corners.test_a_boundary_is_judged_once_that_is_journalled,
    ),
    "E01": Mutant(
        "children are opened before the commit",
        ((Outbox, "hold", _hold_only_what_acts),),
        corners.test_a_child_is_opened_after_the_commit,
    ),
    "E01 goal": Mutant(
        "gates and judges begin before the commit",
        ((Outbox, "hold", _hold_only_what_acts),),
        corners.test_gates_and_judges_begin_after_the_commit,
    ),
    "E01 model": Mutant(
        "what a model says is told before the commit",
        ((ledger.Ledger, "publish", ledger.Ledger._observe),),
        corners.test_a_model_is_asked_during_the_commit_and_heard_after_it,
    ),
    "E02": Mutant(
        "what a stop has overtaken is performed",
        ((ledger, "admits", always),),
        corners.test_a_stop_before_the_commit_keeps_an_effect_from_beginning,
    ),
    "E03": Mutant(
        "a recovery does not raise the epoch",
        ((records, "_recover", _recover_without_epoch),),
        corners.test_a_recovery_is_a_stop_of_what_was_ordered_before,
    ),
    "H01": Mutant(
        "what a stop overtook runs",
        ((routing, "OVERTAKEN_INTENTS", ()),),
        corners.test_what_a_stop_overtook_waits,
    ),
    "H04": Mutant(
        "late children are not stopped",
        ((records, "_start_child", _start_child_unmarked),),
        corners.test_a_child_that_a_stop_overtakes_has_the_stop_as_its_cause,
    ),
    "H05": Mutant(
        "a bare stop lets the message run that replaces the turn",
        ((stopping, "_hold_what_replaces", nothing),),
        corners.test_a_bare_stop_means_what_was_to_run_next_too,
    ),
    "L01": Mutant(
        "Finalize travels in DATA",
        ((m.Finalize, "lane", m.Lane.DATA),),
        corners.test_the_end_of_a_session_overtakes_what_waits,
    ),
    "L02": Mutant(
        "steers travel in DATA",
        ((m.UserMessage, "lane", m.Lane.DATA),),
        corners.test_a_steer_overtakes_what_waits,
    ),
    "L03": Mutant(
        "Committed travels in DATA",
        ((m.Committed, "lane", m.Lane.DATA),),
        corners.test_news_of_a_commit_overtakes_what_waits,
    ),
    "L04": Mutant(
        "Interrupt travels in DATA",
        ((m.Interrupt, "lane", m.Lane.DATA),),
        corners.test_a_stop_overtakes_what_waits,
    ),
    "L05": Mutant(
        "Answer travels in DATA",
        ((m.Answer, "lane", m.Lane.DATA),),
        guards.test_an_answer_overtakes_what_waits,
    ),
    "G3": Mutant(
        "a grandparent's stop voids nothing",
        ((gate.Ancestors, "is_stopped", _of_the_parent_alone),),
        guards.test_a_stop_of_a_grandparent_voids_what_was_ordered_before,
    ),
    **{
        f"{name}": Mutant(
            f"{kind.__name__} passes the gate in any case",
            ((gate, "admits", _admitting(kind)),),
            guards.test_nothing_passes_the_gate_that_nobody_waits_for,
        )
        for name, kind in (
            ("G4", m.RunTool),
            ("G6", m.AwaitCondition),
            ("G7", m.RestoreFiles),
            ("G8", m.GoalTimer),
        )
    },
    "A3": Mutant(
        "a fact overtakes what waits to be told",
        ((ledger.Ledger, "publish", _publish_at_once),),
        guards.test_no_fact_overtakes_what_was_told_before_it,
    ),
    "A4": Mutant(
        "a broken store stops no tool",
        ((ledger.Ledger, "decide", _decide_unless_broken),),
        guards.test_what_runs_is_stopped_at_a_broken_store_too,
    ),
    "S7": Mutant(
        "a stop is answered while an earlier one works",
        ((stopping, "over", _over_at_once),),
        guards.test_a_stop_is_not_answered_while_an_earlier_one_works,
    ),
    "F3": Mutant(
        "a planned stop forgets what it reached",
        ((records, "_move_stop", _move_without_memory),),
        guards.test_a_planned_stop_remembers_what_it_reached,
    ),
    "F6": Mutant(
        "an older stop takes back what a newer one has overtaken",
        ((records, "_raise_epoch", _raise_and_fall),),
        guards.test_an_older_stop_takes_nothing_back,
    ),
    "F8": Mutant(
        "two receipts are remembered",
        ((records, "REMEMBERED_STOPS", 2),),
        guards.test_the_receipts_of_many_stops_are_kept,
    ),
    "F12": Mutant(
        "what a late answer used is not counted",
        ((records, "_apply_turn", _count_no_late_result),),
        guards.test_what_a_late_answer_used_is_counted,
    ),
    "S01": Mutant(
        "a session's actors go and come together",
        ((Supervisor, "strategy", "one_for_all"),),
        corners.test_a_queue_that_fails_leaves_the_turn_alone,
    ),
    "S02": Mutant(
        "turns are permanent",
        ((sessions, "ChildSpec", _spec("temporary", "permanent")),),
        corners.test_a_turn_that_fails_is_not_started_again,
    ),
    "S04": Mutant(
        "siblings are not awaited before a restart",
        ((supervisors, "_restart_when_all_are_down", _restart_at_once),),
        corners.test_no_child_restarts_before_all_stopping_ones_are_down,
    ),
    "S05": Mutant(
        "sessions of children are temporary",
        ((child_supervisor, "ChildSpec", _spec("transient", "temporary")),),
        corners.test_a_child_whose_actor_fails_goes_on_from_its_journal,
    ),
    "X03": Mutant(
        "no call is reserved",
        ((Account, "reserve", none),),
        corners.test_a_model_call_is_reserved_before_it_is_made,
    ),
    "X05": Mutant(
        "the name of a child that is just ending is given again",
        ((children, "_name", _name_as_wanted),),
        corners.test_the_name_of_a_child_that_is_just_ending_is_not_given_again,
    ),
    "X07": Mutant(
        "steers of a turn that has ended are not taken back",
        ((queueing, "_stranded", nothing),),
        corners.test_a_steer_of_a_turn_that_has_ended_is_a_message,
    ),
    "X08": Mutant(
        "a mailbox takes in whatever comes",
        ((mailbox, "BOUND", 1_000_000),),
        corners.test_a_mailbox_is_bounded,
    ),
}
