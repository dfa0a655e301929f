"""Faults to plant: each breaks one promise, and some check must see it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from simulation.planting import Plant, always, never, none, nothing, planted_all

from steersman.actors import ledger
from steersman.actors.children import ChildSupervisor
from steersman.actors.decisions import (
    calls,
    children,
    queries,
    queueing,
    routing,
    stopping,
    turning,
)
from steersman.actors.decisions.decision import Decision
from steersman.actors.kernel.mailbox import tell
from steersman.actors.ledger import Outbox, OutboxItem
from steersman.actors.session import Session
from steersman.journal import entries as e
from steersman.journal import queue_record
from steersman.journal import record as records
from steersman.journal.queue_record import ItemRecord, QueueRecord
from steersman.journal.record import SessionRecord
from steersman.journal.turn_record import CallRecord, TurnRecord
from steersman.machines import protocol as m
from steersman.machines.delivery import Cause, Relation
from steersman.machines.lifecycles import SESSION
from steersman.machines.machine import Transition
from steersman.simulator.scenario import Scenario

__all__ = ["FAULTS", "NO_LAST_WORD", "WITHIN", "Fault", "run_with"]

WITHIN = 1_000
"""Seeds within which each fault must be noticed."""

_RELEASE, _START = Outbox.release, Session.on_start
_REACH, _CUT_OFF, _RETURNED = stopping.reach, turning.cut_off, children.returned
_NEXT, _OFFERS = QueueRecord.next_item, queue_record._apply_offer
_BEGIN = calls.begin
_INTERRUPT, _TAKEN_BACK, _PERFORM = routing._interrupt, queueing.taken_back, ledger.Ledger._perform


@dataclass(frozen=True)
class Fault:
    """What is replaced by what, and a pattern of what the check says that must notice it."""

    notice: str
    plants: tuple[Plant, ...]


def _begin_held(record: SessionRecord, call: CallRecord, environment: Any) -> Decision:
    request = queries.request_of(call)
    if environment.tool_policy.permit(request).is_hold:
        return calls._intend(record, request, environment, "")
    return _BEGIN(record, call, environment)


def _reach_children_by_talk(record: SessionRecord, order: Any, environment: Any) -> Any:
    found = _REACH(record, order, environment)
    if order.cause not in (Cause.MESSAGE, Cause.MORE_WORD):
        return found
    return replace(found, now=(*found.now, Relation.BACKGROUND_CHILD))


def _report_closed_at_once(supervisor: ChildSupervisor) -> None:
    tell(supervisor.ledger.member("session"), m.ChildrenClosed())


def _return_twice(*arguments: Any) -> tuple[Any, ...]:
    orders = _RETURNED(*arguments)
    return (*orders, *orders)


def _start_and_resume_children(session: Session) -> None:
    _START(session)
    order = m.ResumeChildren(earlier=(), turn="", epoch=session.ledger.record.epoch)
    tell(session.ledger.member("children"), order)


def _start_and_release(session: Session) -> None:
    _START(session)
    if session.ledger.record.queue.state == "held":
        tell(session.actor_ref, m.QueueChange(op="release"))


def _release_all(outbox: Outbox, seq: int) -> Iterator[OutboxItem]:
    return _RELEASE(outbox, 1_000_000_000)


def _stop_one_tool(*arguments: Any) -> Decision:
    decision = _CUT_OFF(*arguments)
    stops = [effect for effect in decision.urgent if isinstance(effect, m.StopTool)]
    return replace(
        decision, urgent=tuple(effect for effect in decision.urgent if effect not in stops[1:])
    )


def _may_start_beside(record: SessionRecord, environment: Any) -> bool:
    return record.state in ("idle", "busy")


def _drop_what_interrupts(*arguments: Any) -> Decision:
    decision = _INTERRUPT(*arguments)
    kept = tuple(entry for entry in decision.entries if not isinstance(entry, e.Queued))
    return replace(decision, entries=kept)


def _perform_tools_twice(self: ledger.Ledger, effect: Any, reply_to: Any) -> None:
    _PERFORM(self, effect, reply_to)
    if isinstance(effect, m.RunTool):
        _PERFORM(self, effect, reply_to)


def _withdraw_what_is_taken_back(*arguments: Any) -> Decision:
    found = _TAKEN_BACK(*arguments)
    entries = tuple(
        e.Withdrawn(item=entry.item) if isinstance(entry, e.Requeued) else entry
        for entry in found.entries
    )
    return replace(found, entries=entries)


def _run_what_is_held(queue: QueueRecord) -> ItemRecord | None:
    return _NEXT(replace(queue, state="open"))


def _keep_past_a_hold(queue: QueueRecord, entry: Any, time: float) -> QueueRecord:
    kept = replace(entry, past_hold=True) if isinstance(entry, e.Kept) else entry
    return _OFFERS(queue, kept, time)


BUSY_TWICE = replace(
    SESSION,
    transitions=(
        Transition(event="turn_started", source=("idle", "busy"), dest="busy"),
        *SESSION.transitions,
    ),
)


def _all_that_is_requested(turn: TurnRecord, _: Any) -> list[CallRecord]:
    is_busy = any(call.state in ("asking", "running", "stopping") for call in turn.calls.values())
    return [] if is_busy else [call for call in turn.calls.values() if call.state == "requested"]


FAULTS: dict[str, Fault] = {
    "lets talk cancel a child": Fault(
        "for no good reason|talk stopped a child",
        ((stopping, "reach", _reach_children_by_talk),),
    ),
    "attaches a child after a stop": Fault(
        "stuck|waits for|no results of", ((children, "to_be_cancelled", nothing),)
    ),
    "ends before its child": Fault("is complete without", ((turning, "awaited", nothing),)),
    "forgets its children when it is left": Fault(
        "is left by", ((ChildSupervisor, "_close_all", _report_closed_at_once),)
    ),
    "delivers a result twice": Fault(
        "came twice",
        ((children, "returned", _return_twice), (queueing, "_is_returned", never)),
    ),
    "resumes children after a restart": Fault(
        "acts after a restart", ((Session, "on_start", _start_and_resume_children),)
    ),
    "tells before durable": Fault("durable is", ((Outbox, "release", _release_all),)),
    "skips the gate": Fault("acts after its interrupt", ((ledger, "admits", always),)),
    "resumes after recovery": Fault(
        "after a restart", ((Session, "on_start", _start_and_release),)
    ),
    "leaves the door open at the closing boundary": Fault(
        "a steer waits for nothing",
        ((queueing, "_is_running", always), (queueing, "_stranded", nothing)),
    ),
    "forgets a running tool": Fault(
        "were not told to stop|no results of", ((turning, "cut_off", _stop_one_tool),)
    ),
    "starts two turns": Fault(
        "turns run", ((records, "SESSION", BUSY_TWICE), (queueing, "_may_start", _may_start_beside))
    ),
    "takes a repeated message twice": Fault(
        "twice", ((queueing, "_known", none), (routing, "known", none))
    ),
    "drops a message that interrupts": Fault(
        "was never answered", ((routing, "_interrupt", _drop_what_interrupts),)
    ),
    "starts a tool twice": Fault(
        "was performed twice", ((ledger.Ledger, "_perform", _perform_tools_twice),)
    ),
    "loses what is taken back": Fault(
        "without a request for it", ((queueing, "taken_back", _withdraw_what_is_taken_back),)
    ),
    "runs what is held": Fault(
        "was held, and runs", ((QueueRecord, "next_item", _run_what_is_held),)
    ),
    "runs a call that a person holds": Fault("was held", ((calls, "begin", _begin_held),)),
    "lets an answer that is kept run past a hold": Fault(
        "was held, and runs", ((queue_record, "_apply_offer", _keep_past_a_hold),)
    ),
    "goes on after a tool that it was to stop after": Fault(
        "is to stop", ((stopping, "planned_stop", none),)
    ),
    "runs a call that changes files beside others": Fault(
        "at once", ((calls, "next_calls", _all_that_is_requested),)
    ),
}

NO_LAST_WORD = Fault("in a row", ((turning, "_last_words", nothing),))
"""Leaves a conversation that was cut without the agent's last word."""


def run_with(fault: Fault, seed: int, scenario: Callable[[int], Any] = Scenario) -> bool:
    """Run one seed with a fault planted; return whether the check that must notice it did."""
    try:
        with planted_all(*fault.plants):
            scenario(seed).run()
    except AssertionError as found:
        return re.search(fault.notice, str(found)) is not None
    return False
