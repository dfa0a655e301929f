"""How a session is stopped, left and ended: the second routing table, asked and carried out.

Whatever the cause, the table says which relations it reaches; nothing here walks the tree of children.
A stop is one decision: its receipt, and a new epoch for those it reaches. From that instant on nothing
that was ordered before it begins (`gate.py`); turn, children and goal are woken, look at the record,
and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.child_record import ChildRecord, at_work
from ...journal.record import SessionRecord, StopRecord
from ...machines import protocol as m
from ...machines.delivery import ENDS, WAITED, Cause, Delivery, Relation, deliver, in_force
from ...machines.lifecycles import SESSION
from ...machines.machine import Refusal, step
from ...machines.value import Value
from .decision import NOTHING, Decision, answer
from .queries import DELEGATE, is_revert_wanted, recipient, running_calls, stopping_effects
from .rearrangement import hold

if TYPE_CHECKING:
    from ..environment import Environment


DOWNWARD = (
    Relation.SELF,
    Relation.FOREGROUND_CHILD,
    Relation.BACKGROUND_CHILD,
    Relation.SIDE_TALK,
    Relation.GOAL,
)
BY_PARENT = (Cause.PARENT, Cause.PARENT_BOUNDARY)
ENDS_SESSION = (Cause.SIGNAL, Cause.FINALIZE, Cause.NEW)
ALWAYS_HOLDS = (*BY_PARENT, Cause.BUDGET, Cause.NO_PROGRESS)
"""Causes after which the queue is held until a person resumes it, whatever is configured."""


class StopReach(Value):
    """What a cause ends here: the relations `now`, and those `later`, at the boundary of what runs.

    `spared` names the children that the turn waits for and that go on; it waits for them all the same
    if it `is_held`.
    """

    now: tuple[Relation, ...]
    later: tuple[Relation, ...] = ()
    spared: tuple[str, ...] = ()
    is_held: bool = False

    @property
    def ended(self) -> tuple[Relation, ...]:
        """All relations that it ends, now or later."""
        return tuple(one for one in DOWNWARD if one in self.now or one in self.later)


def reached_children(
    record: SessionRecord, environment: Environment, cause: str, what: Delivery
) -> tuple[str, ...]:
    """Name the children at work that get something from a cause."""
    return tuple(
        child.name
        for child in at_work(record.children)
        if deliver(
            environment.deliveries, cause, recipient(child, environment.delegation.detached)
        ).action
        is what
    )


def reach(record: SessionRecord, order: m.StopOrder, environment: Environment) -> StopReach:
    """Ask the table, as it is in force here, what a stop ends.

    Where files are to be restored no child may go on with them, whatever its agent is declared.
    """
    table = in_force(
        environment.deliveries, environment.policy.interrupt_at, record.run is not None
    )
    given = {one: deliver(table, order.cause, one).action for one in (*DOWNWARD, *WAITED)}
    is_revert = order.is_revert or is_revert_wanted(record)
    detached = () if is_revert else environment.delegation.detached
    waited = {
        child.name: recipient(child, detached)
        for child in at_work(record.children, Relation.FOREGROUND_CHILD)
        if child.turn == record.turn and record.running is not None
    }
    spared = tuple(name for name, relation in waited.items() if given[relation] not in ENDS)
    reached = [one for one in DOWNWARD if given[one] in ENDS]
    if len(spared) < len(waited) and Relation.FOREGROUND_CHILD not in reached:
        reached.append(Relation.FOREGROUND_CHILD)
    later = tuple(one for one in reached if given[one] is Delivery.BOUNDARY)
    return StopReach(
        now=tuple(one for one in reached if one not in later),
        later=later,
        spared=spared if Relation.SELF in reached else (),
        is_held=given[Relation.FOREGROUND_CHILD] not in ENDS,
    )


# Stops --------------------------------------------------------------------------------------------


def interrupt(record: SessionRecord, message: m.Interrupt, environment: Environment) -> Decision:
    """Carry out a stop by command, key, signal, limit, or by the parent."""
    key = message.order.said.client_id
    known = record.stop_keys.get(key) if key else None
    if known:
        return Decision(reply=answer(interrupted=None, receipt=known, reason="known already"))
    if message.turn and message.turn != record.turn:
        return Decision(reply=answer(interrupted=None, reason=f"turn {message.turn} has ended"))
    return stop(record, message.order, environment)


def interrupt_offline(
    record: SessionRecord, message: m.Interrupt, environment: Environment
) -> Decision:
    """Say that there is nothing to stop: no program runs the session."""
    return Decision(reply=answer(interrupted=None, reason="nothing runs"))


def stop(record: SessionRecord, order: m.StopOrder, environment: Environment) -> Decision:
    """Decide what a stop reaches, and stop it."""
    ended = reach(record, order, environment)
    if is_told_before(record):
        ended = replace(ended, now=ended.ended, later=())
    children = tuple(
        child.name
        for child in at_work(record.children, *ended.ended)
        if ended.ended and child.name not in ended.spared and _is_new_to(child, ended)
    )
    moved = step(SESSION, record.state, "interrupt")
    is_running = not isinstance(moved, Refusal) and moved.changed and record.running is not None
    if is_running and Relation.SELF in ended.ended:
        if _must_wait(record, ended):
            return _plan(record, order, ended, environment)
        return _stop_turn(record, order, ended, children, environment)
    goal = record.goals.current if Relation.GOAL in ended.ended and record.goals.is_pursued else ""
    if children or goal or order.epoch:  # a parent waits for the answer in any case
        return _stop_beside(record, order, ended, children, goal, environment)
    reason = moved.reason if isinstance(moved, Refusal) else moved.ignored or "nothing is reached"
    return _stop_nothing(record, order, ended, reason, environment)


def is_told_before(record: SessionRecord) -> bool:
    """Whether a stop waits for a boundary already: the next one is now."""
    return any(stop.state == "planned" for stop in record.stops.values()) or any(
        child.is_patient for child in at_work(record.children)
    )


def _is_new_to(child: ChildRecord, ended: StopReach) -> bool:
    """Whether a stop changes something for a child that it reaches."""
    if child.is_patient:
        return child.relation in ended.now
    return child.state != "stopping" and child.stopped <= child.epoch


def _must_wait(record: SessionRecord, ended: StopReach) -> bool:
    """Whether a stop takes effect only when what runs has ended.

    It waits for a child that the turn waits for, too, where it does not reach such children.
    """
    running = running_tools(record)
    is_patient = Relation.SELF in ended.later or (ended.is_held and DELEGATE in running)
    return is_patient and bool(running) and planned_stop(record) is None


def running_tools(record: SessionRecord) -> list[str]:
    """Name what runs of the turn: its tools, or the steps of a run that processes do."""
    if record.run is None:
        return running_calls(record)
    steps = (attempt.step for attempt in record.run.open.values() if not attempt.is_child)
    return list(dict.fromkeys(steps))


def _receipt(record: SessionRecord) -> str:
    return f"i{record.receipts + 1}"


def _requested(
    record: SessionRecord, order: m.StopOrder, turn: str, ended: StopReach
) -> e.InterruptRequested:
    """Return the entry of a stop of `turn`, or, where that is empty, of what is beside it."""
    return e.InterruptRequested(
        receipt=_receipt(record),
        turn=turn,
        order=order,
        reaches=ended.ended if turn else _beside(record, ended.ended),
        patient=tuple(one for one in ended.later if one != Relation.SELF),
        spares=ended.spared if turn else (),
    )


def _stop_turn(
    record: SessionRecord,
    order: m.StopOrder,
    ended: StopReach,
    children: tuple[str, ...],
    environment: Environment,
) -> Decision:
    requested = _requested(record, order, record.turn, ended)
    entries = (
        *(e.ChildDetached(child=name) for name in ended.spared),
        requested,
        *_hold_what_replaces(record, order, environment),
    )
    reply = answer(interrupted=record.turn, children=list(children), receipt=requested.receipt)
    at_once = stopping_effects(record) if record.run is None else ()  # the turn says it again
    urgent = tuple(effect for effect in at_once if not isinstance(effect, m.StopChild))
    return Decision(entries=entries, urgent=urgent, reply=reply)


def _plan(
    record: SessionRecord, order: m.StopOrder, ended: StopReach, environment: Environment
) -> Decision:
    """Stop what is beside the turn, and the turn when the tools that run have ended.

    Children that stop at their own boundary are told now: they begin nothing more.
    """
    planned = e.InterruptPlanned(
        receipt=_receipt(record),
        turn=record.turn,
        order=order,
        tools=tuple(running_tools(record)),
        reaches=tuple(one for one in ended.ended if one != Relation.SELF),
        patient=tuple(one for one in ended.later if one != Relation.SELF),
        spares=ended.spared,
    )
    entries = (
        *(e.ChildDetached(child=name) for name in ended.spared if not ended.is_held),
        planned,
        *_hold_what_replaces(record, order, environment),
    )
    reply = answer(interrupted=record.turn, children=[], receipt=planned.receipt)
    return Decision(entries=entries, reply=reply)


def _stop_beside(
    record: SessionRecord,
    order: m.StopOrder,
    ended: StopReach,
    children: tuple[str, ...],
    goal: str,
    environment: Environment,
) -> Decision:
    """Stop children and goal where no turn is stopped: the session itself answers for them."""
    requested = _requested(record, order, "", ended)
    entries = (requested, *_hold_what_replaces(record, order, environment))
    reply = answer(interrupted=None, children=list(children), receipt=requested.receipt)
    return Decision(entries=entries, reply={**reply, **({"goal": goal} if goal else {})})


def _beside(record: SessionRecord, relations: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """Leave out a turn that is being stopped already: its own stop says what that reached."""
    return tuple(
        relation for relation in relations if record.running is None or relation != Relation.SELF
    )


def _stop_nothing(
    record: SessionRecord,
    order: m.StopOrder,
    ended: StopReach,
    reason: str,
    environment: Environment,
) -> Decision:
    """Nothing is at work: what was ordered before the stop, and has not begun, does not begin."""
    reply = answer(interrupted=None, reason=reason)
    facts = (_told_of(order, f"i{record.receipts}"),) if order.said.text else ()
    if record.state in ("finalized", "suspended"):
        return Decision(facts=facts, reply=reply)
    held = _holds(record, order, environment)
    entries = (e.StopNoted(order=order, reaches=_beside(record, ended.ended)), *held)
    return Decision(entries=entries, facts=facts, reply=reply)


def _told_of(order: m.StopOrder, receipt: str) -> m.MessageKnown:
    """Answer a message that stops what is stopped already."""
    key = order.said.client_id
    return m.MessageKnown(id=receipt, number=None, client_id=key, routed=order.routed)


def _hold_what_replaces(
    record: SessionRecord, order: m.StopOrder, environment: Environment
) -> tuple[e.Entry, ...]:
    """A bare stop means what was to replace the running turn, too; one of the parent, everything."""
    queue = record.queue
    if order.epoch:
        return hold(queue, "interrupt", is_all=True)
    is_hold = environment.policy.after_interrupt == "hold" and not order.is_replaced
    if is_hold and any(item.is_next for item in queue.special()):
        return hold(queue, "interrupt", is_all=True)
    return ()


def _holds(
    record: SessionRecord, order: m.StopOrder, environment: Environment
) -> tuple[e.Entry, ...]:
    """Hold what waits behind a turn that has just ended: the stop was meant for that."""
    is_hold = environment.policy.after_interrupt == "hold" or order.cause in ALWAYS_HOLDS
    waits = [item for item in record.queue.pending() if not record.queue.holds(item)]
    return (e.QueueHeld(why="interrupt", is_all=True),) if is_hold and waits else ()


def call_off(record: SessionRecord, receipt: str) -> tuple[e.Entry, ...]:
    """Take a planned stop back, unless it has taken effect in the meantime."""
    turn, known = record.running, record.stops.get(receipt)
    if turn is None or turn.state != "acting" or known is None or known.state != "planned":
        return ()
    return (e.InterruptCalledOff(receipt=receipt, turn=turn.id),)


# A stop at the turn, the children and the goal ----------------------------------------------------


def planned_stop(record: SessionRecord) -> StopRecord | None:
    """Return the stop that takes effect when the tools that run have ended."""
    turn = record.turn
    found = [stop for stop in record.stops.values() if stop.state == "planned"]
    return found[-1] if found and found[-1].turn == turn else None


def take_effect(planned: StopRecord, environment: Environment) -> e.InterruptRequested:
    """Return the entry by which a planned stop takes effect; its receipt is written already.

    Children and goal were stopped when it was planned, as far as it reaches them.
    """
    return e.InterruptRequested(
        receipt=planned.id,
        turn=planned.turn,
        order=replace(planned.order, said=m.Said(text="", user=planned.order.said.user)),
        reaches=(Relation.SELF,),
    )


def holds_after(record: SessionRecord, cause: str, environment: Environment) -> tuple[e.Entry, ...]:
    """Hold what waits once a turn has been interrupted."""
    is_hold = environment.policy.after_interrupt == "hold" or cause in ALWAYS_HOLDS
    is_all = cause in BY_PARENT
    return hold(record.queue, "interrupt", is_all=is_all) if is_hold else ()


def has_reached(record: SessionRecord, stop: StopRecord) -> bool:
    """Whether a child that a stop has reached is not dead yet; another stop may have reached it, too."""
    return any(
        child.relation in stop.reaches
        and child.name not in stop.spares
        and child.epoch < min(child.stopped, stop.epoch)
        for child in at_work(record.children)
    )


def over(record: SessionRecord, stop: StopRecord) -> e.Stopped | None:
    """Return the entry that answers a stop beside the turn, once everything it reached is dead."""
    turn = record.unfinished
    is_last = stop.order.cause in ENDS_SESSION  # the turn's own stop is answered first
    is_turn_reached = bool(stop.order.epoch) or is_last or Relation.SELF in stop.reaches
    if turn is not None and is_turn_reached and turn.epoch < stop.epoch:
        return None  # an earlier stop is still at it
    if has_reached(record, stop):
        return None
    goal = record.goals.goal
    if goal is not None and Relation.GOAL in stop.reaches:
        is_pursued = goal.is_pursued and goal.epoch < stop.epoch
        judged = [goal for goal in record.goals.goals.values() if goal.judging]
        if is_pursued or any(goal.judged_since < stop.epoch for goal in judged):
            return None
    return e.Stopped(
        turn="",
        killed=stop.killed,
        survivors=stop.survivors,
        order=stop.order.epoch,
        receipt=stop.id,
    )


def died_of(record: SessionRecord, turn: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the processes beside a turn that died of its stops, also overtaken ones, and survivors."""
    stops = [stop for stop in record.stops.values() if stop.turn == turn]
    killed = dict.fromkeys(pid for stop in stops for pid in stop.killed)
    survivors = dict.fromkeys(pid for stop in stops for pid in stop.survivors)
    return tuple(killed), tuple(survivors)


def end(record: SessionRecord) -> Decision:
    """Answer the stops of children and goals, once everything that they reached is dead."""
    stops = [
        interrupt
        for interrupt in record.stops.values()
        if interrupt.state == "stopping" and not interrupt.turn
    ]
    for stop in stops:
        stopped = over(record, stop)
        if stopped is not None:
            return Decision(entries=(stopped,))
    return NOTHING


def ended_turn(
    record: SessionRecord, environment: Environment, cause: Cause
) -> tuple[e.Entry, ...]:
    """Return what the end of a turn stops beside it, by the table: nothing, unless by a limit."""
    ended = reach(record, m.StopOrder(cause=cause), environment)
    relations = tuple(one for one in ended.ended if one != Relation.SELF)
    children = [child for child in at_work(record.children) if child.relation in relations]
    if not children and not (Relation.GOAL in relations and record.goals.is_pursued):
        return ()
    order = m.StopOrder(cause=cause)
    receipt = _receipt(record)
    return (e.InterruptRequested(receipt=receipt, turn="", order=order, reaches=relations),)


# The end ------------------------------------------------------------------------------------------


def suspend(record: SessionRecord, message: m.Suspend, environment: Environment) -> Decision:
    """Leave the session: it can be resumed."""
    return leave(record, False, message.cause, environment)


def finalize(record: SessionRecord, message: m.Finalize, environment: Environment) -> Decision:
    """End the session permanently."""
    return leave(record, True, message.cause, environment)


def leave(record: SessionRecord, is_final: bool, cause: str, environment: Environment) -> Decision:
    """Suspend or finalize the session: a stop by the table, with its receipt if anything is at work."""
    moved = step(SESSION, record.state, "finalize" if is_final else "suspend")
    if isinstance(moved, Refusal) or moved.ignored:
        return Decision(reply=answer())
    by = Cause.SIGNAL
    if is_final:
        by = Cause.NEW if cause == Cause.NEW else Cause.FINALIZE
    order = m.StopOrder(cause=by)
    ended = reach(record, order, environment)
    turn = record.running
    is_stopped = turn is not None and Relation.SELF in ended.ended and record.state == "busy"
    is_pursued = Relation.GOAL in ended.ended and record.goals.is_pursued
    is_anything = is_stopped or is_pursued or any(at_work(record.children, *ended.ended))
    kind = e.SessionFinalizing if is_final else e.SessionLeaving
    if not is_anything:
        return Decision(entries=(kind(cause=cause, reaches=ended.ended),), reply=answer())
    requested = _requested(record, order, record.turn if is_stopped else "", ended)
    detached = (e.ChildDetached(child=name) for name in ended.spared if is_stopped)
    return Decision(entries=(*detached, kind(cause=cause), requested), reply=answer())


def is_settled(record: SessionRecord) -> bool:
    """Whether a session that is left, or ends, has nothing at work any more, but for open children."""
    is_judging = any(goal.judging for goal in record.goals.goals.values())
    is_open = any(interrupt.state == "stopping" for interrupt in record.stops.values())
    return (
        record.unfinished is None
        and not any(at_work(record.children))
        and not is_judging
        and not is_open
    )
