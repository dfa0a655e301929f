"""How a session is stopped, left and ended: the second routing table, asked and carried out.

Whatever the cause, the table says which relations it reaches; nothing here walks the tree of children.
A stop is one decision: its receipt, and a new epoch for those it reaches. From that instant on nothing
that was ordered before it begins (`gate.py`); turn, children and goal are woken, look at the record,
and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal.child_record import at_work
from ...journal.record import CancelRecord, SessionRecord
from ...machines.delivery import ENDS, Cause, Delivery, Relation, deliver
from ...machines.lifecycles import SESSION
from ...machines.machine import Refusal, step
from ...machines.messages import Interrupt
from ...machines.transient_events import MessageKnown
from ...machines.value import Value
from .decision import NOTHING, Decision, answer
from .queries import DELEGATE, is_revert_wanted, running_calls
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
BESIDE = (Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)
"""The children that a turn does not wait for."""
IN_A_HURRY = (Cause.SIGNAL, Cause.FINALIZE, Cause.NEW, Cause.PARENT)
"""Causes for which a run does not let its commands end."""
ALWAYS_HOLDS = (Cause.PARENT, Cause.BUDGET, Cause.NO_PROGRESS)
"""Causes after which the queue is held until a person resumes it, whatever is configured."""


class Stop(Value):
    """An order to stop, from a person, a limit or a parent.

    `is_patient`: the tools that run end first. `is_bare`: nothing is to run in place of what is
    stopped. `said` numbers what one client says; `order` is the parent's epoch, where it comes from
    there.
    """

    cause: str
    user: str = ""
    client_id: str = ""
    matched: str = ""
    rule: str = ""
    text: str = ""
    ack: str = ""
    said: int = 0
    order: int = 0
    is_patient: bool = False
    is_bare: bool = True


def reaches(table: Any, cause: str, *what: Delivery) -> tuple[Relation, ...]:
    """Return the relations that get any of these from a cause; without any: that are ended by it."""
    wanted = what or ENDS
    return tuple(
        relation for relation in DOWNWARD if deliver(table, cause, relation).action in wanted
    )


def reached_children(
    record: SessionRecord, table: Any, cause: str, *what: Delivery
) -> tuple[str, ...]:
    """Name the children at work that get any of these from a cause."""
    relations = reaches(table, cause, *what)
    return tuple(child.name for child in at_work(record.children, *relations) if relations)


# Stops --------------------------------------------------------------------------------------------


def interrupt(record: SessionRecord, message: Interrupt, environment: Environment) -> Decision:
    """Carry out a stop by command, key, signal, limit, or by the parent."""
    known = record.cancels.get(message.client_id) if message.client_id else None
    if known:
        return Decision(reply=answer(interrupted=None, receipt=known, reason="known already"))
    if message.turn and message.turn != record.turn:
        return Decision(reply=answer(interrupted=None, reason=f"turn {message.turn} has ended"))
    order = Stop(
        cause=message.cause,
        user=message.user,
        client_id=message.client_id,
        said=message.said,
        order=message.epoch,
    )
    return stop(record, order, environment)


def stop(
    record: SessionRecord, order: Stop, environment: Environment, is_revert: bool = False
) -> Decision:
    """Decide what a stop reaches, and stop it. `is_revert`: the files are to be restored."""
    table = environment.deliveries
    relations = reaches(table, order.cause)
    spared = _spared(record, relations, order, environment, is_revert)
    children = tuple(
        child.name
        for child in at_work(record.children)
        if child.relation in relations
        and child.name not in spared
        and child.state != "stopping"
        and child.cancelled <= child.epoch
    )
    moved = step(SESSION, record.state, "interrupt")
    is_running = not isinstance(moved, Refusal) and moved.changed and record.running is not None
    if is_running and Relation.SELF in relations:
        if _must_wait(record, relations, order):
            return _plan(record, order, relations, spared, environment)
        return _stop_turn(record, order, relations, spared, children, environment)
    goal = record.goals.current if Relation.GOAL in relations and record.goals.is_pursued else ""
    if children or goal or order.order:  # a parent waits for the answer in any case
        return _stop_beside(record, order, relations, children, goal, environment)
    reason = moved.reason if isinstance(moved, Refusal) else moved.ignored or "nothing is reached"
    return _stop_nothing(record, order, relations, reason, environment)


def _spared(
    record: SessionRecord,
    relations: tuple[Relation, ...],
    order: Stop,
    environment: Environment,
    is_revert: bool,
) -> tuple[str, ...]:
    """Name the children of calls that go on without the turn that waits for them.

    By the table, or because their agent is declared so; not when their files are to be restored, and
    not when everything below a session further up is stopped.
    """
    waited = at_work(record.children, Relation.FOREGROUND_CHILD)
    mine = [child for child in waited if child.turn == record.turn]
    if Relation.SELF not in relations or record.running is None:
        return ()
    if Relation.FOREGROUND_CHILD not in relations:
        return tuple(child.name for child in mine)
    if is_revert or is_revert_wanted(record) or order.cause == Cause.PARENT:
        return ()
    detached = environment.delegation.detached
    return tuple(child.name for child in mine if child.agent in detached)


def _must_wait(record: SessionRecord, relations: tuple[Relation, ...], order: Stop) -> bool:
    """Whether a stop takes effect only when what runs has ended.

    It waits for a child that the turn waits for, too, where it does not reach such children.
    """
    is_planned = any(stop.state == "planned" for stop in record.interrupts.values())
    running = running_tools(record)
    is_child_spared = Relation.FOREGROUND_CHILD not in relations and DELEGATE in running
    is_patient = order.is_patient or (record.run is not None and order.cause not in IN_A_HURRY)
    return (is_child_spared or is_patient) and bool(running) and not is_planned


def running_tools(record: SessionRecord) -> list[str]:
    """Name what runs of the turn: its tools, or the steps of a run that processes do."""
    if record.run is None:
        return running_calls(record)
    running = record.run.running()
    steps = (step.id for step, index in running if str(index) not in step.children)
    return list(dict.fromkeys(steps))


def _fields(record: SessionRecord, order: Stop, turn: str) -> dict[str, Any]:
    return {
        "receipt": f"i{record.receipts + 1}",
        "turn": turn,
        "cause": order.cause,
        "user": order.user,
        "client_id": order.client_id,
        "matched": order.matched,
        "rule": order.rule,
        "text": order.text,
        "ack": order.ack,
        "said": order.said,
        "order": order.order,
        "is_replaced": not order.is_bare,
    }


def _stop_turn(
    record: SessionRecord,
    order: Stop,
    relations: tuple[Relation, ...],
    spared: tuple[str, ...],
    children: tuple[str, ...],
    environment: Environment,
) -> Decision:
    requested = e.InterruptRequested(
        **_fields(record, order, record.turn), reaches=relations, spares=spared
    )
    entries = (
        *(e.ChildDetached(child=name) for name in spared),
        requested,
        *_hold_what_replaces(record, order, environment),
    )
    reply = answer(interrupted=record.turn, children=list(children), receipt=requested.receipt)
    return Decision(entries=entries, reply=reply)


def _plan(
    record: SessionRecord,
    order: Stop,
    relations: tuple[Relation, ...],
    spared: tuple[str, ...],
    environment: Environment,
) -> Decision:
    """Stop what is beside the turn now, and the turn when the tools that run have ended."""
    is_talk = Relation.FOREGROUND_CHILD not in relations
    beside: tuple[Relation, ...] = (*BESIDE, Relation.GOAL)
    if record.run is not None:  # the sessions of its steps go on where they were, when it does
        beside = (*beside, Relation.FOREGROUND_CHILD)
    now = tuple(relation for relation in relations if relation in beside)
    planned = e.InterruptPlanned(
        **_fields(record, order, record.turn),
        tools=tuple(running_tools(record)),
        reaches=now,
        spares=spared,
    )
    entries = (
        *(e.ChildDetached(child=name) for name in spared if not is_talk),
        planned,
        *_hold_what_replaces(record, order, environment),
    )
    reply = answer(interrupted=record.turn, children=[], receipt=planned.receipt)
    return Decision(entries=entries, reply=reply)


def _stop_beside(
    record: SessionRecord,
    order: Stop,
    relations: tuple[Relation, ...],
    children: tuple[str, ...],
    goal: str,
    environment: Environment,
) -> Decision:
    """Stop children and goal where no turn is stopped: the session itself answers for them."""
    requested = e.InterruptRequested(
        **_fields(record, order, ""), reaches=_beside(record, relations)
    )
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
    order: Stop,
    relations: tuple[Relation, ...],
    reason: str,
    environment: Environment,
) -> Decision:
    """Nothing is at work: what was ordered before the stop, and has not begun, does not begin."""
    reply = answer(interrupted=None, reason=reason)
    facts = (_told_of(order, f"i{record.receipts}"),) if order.text else ()
    if record.state in ("finalized", "suspended"):
        return Decision(facts=facts, reply=reply)
    held = _holds(record, order, environment)
    entries = (
        e.StopNoted(cause=order.cause, reaches=_beside(record, relations), said=order.said),
        *held,
    )
    return Decision(entries=entries, facts=facts, reply=reply)


def _told_of(order: Stop, receipt: str) -> MessageKnown:
    """Answer a message that stops what is stopped already."""
    return MessageKnown(
        id=receipt,
        said_as="interrupt",
        number=None,
        client_id=order.client_id,
        matched=order.matched,
        rule=order.rule,
        ack=order.ack,
    )


def _hold_what_replaces(
    record: SessionRecord, order: Stop, environment: Environment
) -> tuple[e.Entry, ...]:
    """A bare stop means what was to replace the running turn, too; one of the parent, everything."""
    queue = record.queue
    if order.order:
        return hold(queue, "interrupt", is_all=True)
    is_hold = environment.policy.after_interrupt == "hold" and order.is_bare
    if is_hold and any(item.is_next for item in queue.special()):
        return hold(queue, "interrupt", is_all=True)
    return ()


def _holds(record: SessionRecord, order: Stop, environment: Environment) -> tuple[e.Entry, ...]:
    """Hold what waits behind a turn that has just ended: the stop was meant for that."""
    is_hold = environment.policy.after_interrupt == "hold" or order.cause in ALWAYS_HOLDS
    waits = [item for item in record.queue.pending() if not record.queue.holds(item)]
    return (e.QueueHeld(why="interrupt", is_all=True),) if is_hold and waits else ()


def call_off(record: SessionRecord, receipt: str) -> tuple[e.Entry, ...]:
    """Take a planned stop back, unless it has taken effect in the meantime."""
    turn, known = record.running, record.interrupts.get(receipt)
    if turn is None or turn.state != "acting" or known is None or known.state != "planned":
        return ()
    return (e.InterruptCalledOff(receipt=receipt, turn=turn.id),)


# A stop at the turn, the children and the goal ----------------------------------------------------


def planned_stop(record: SessionRecord) -> CancelRecord | None:
    """Return the stop that takes effect when the tools that run have ended."""
    turn = record.turn
    found = [stop for stop in record.interrupts.values() if stop.state == "planned"]
    return found[-1] if found and found[-1].turn == turn else None


def take_effect(planned: CancelRecord, environment: Environment) -> e.InterruptRequested:
    """Return the entry by which a planned stop takes effect; its receipt is written already.

    The sessions and goal beside the turn were stopped when it was planned.
    """
    relations = reaches(environment.deliveries, planned.cause)
    return e.InterruptRequested(
        receipt=planned.id,
        turn=planned.turn,
        cause=planned.cause,
        user=planned.user,
        matched=planned.matched,
        rule=planned.rule,
        reaches=tuple(
            relation for relation in relations if relation not in (*BESIDE, Relation.GOAL)
        ),
        order=planned.order,
    )


def holds_after(record: SessionRecord, cause: str, environment: Environment) -> tuple[e.Entry, ...]:
    """Hold what waits once a turn has been interrupted."""
    is_hold = environment.policy.after_interrupt == "hold" or cause in ALWAYS_HOLDS
    is_all = cause == Cause.PARENT
    return hold(record.queue, "interrupt", is_all=is_all) if is_hold else ()


def has_reached(record: SessionRecord, stop: CancelRecord) -> bool:
    """Whether a child that a stop has reached, it or one before it, is not dead yet."""
    return any(
        child.relation in stop.reaches and child.epoch < child.cancelled <= stop.epoch
        for child in at_work(record.children)
    )


def over(record: SessionRecord, stop: CancelRecord) -> e.Stopped | None:
    """Return the entry that answers a stop beside the turn, once everything it reached is dead."""
    turn = record.unfinished
    is_turn_reached = bool(stop.order) or Relation.SELF in stop.reaches
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
        turn="", killed=stop.killed, survivors=stop.survivors, order=stop.order, receipt=stop.id
    )


def end(record: SessionRecord) -> Decision:
    """Answer the stops of children and goals, once everything that they reached is dead."""
    stops = [
        interrupt
        for interrupt in record.interrupts.values()
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
    relations = tuple(
        relation for relation in reaches(environment.deliveries, cause) if relation != Relation.SELF
    )
    children = [child for child in at_work(record.children) if child.relation in relations]
    if not children and not (Relation.GOAL in relations and record.goals.is_pursued):
        return ()
    order = Stop(cause=cause)
    return (e.InterruptRequested(**_fields(record, order, ""), reaches=relations),)


# The end ------------------------------------------------------------------------------------------


def leave(record: SessionRecord, is_final: bool, cause: str, environment: Environment) -> Decision:
    """Suspend or finalize the session: the table says what that stops."""
    moved = step(SESSION, record.state, "finalize" if is_final else "suspend")
    if isinstance(moved, Refusal) or moved.ignored:
        return Decision(reply=answer())
    by = Cause.SIGNAL
    if is_final:
        by = Cause.NEW if cause == Cause.NEW else Cause.FINALIZE
    relations = reaches(environment.deliveries, by)
    turn = record.running
    is_stopped = turn is not None and Relation.SELF in relations and turn.state != "interrupted"
    is_stopped = is_stopped and record.state == "busy"
    below = tuple(relation for relation in relations if relation != Relation.SELF or not is_stopped)
    kind = e.SessionFinalizing if is_final else e.SessionLeaving
    entries: tuple[e.Entry, ...] = (kind(cause=cause, reaches=below),)
    if is_stopped:
        order = Stop(cause=by)
        fields = _fields(record, order, record.turn)
        entries = (*entries, e.InterruptRequested(**fields, reaches=(Relation.SELF,)))
    return Decision(entries=entries, reply=answer())


def is_settled(record: SessionRecord) -> bool:
    """Whether a session that is left, or ends, has nothing at work any more, but for open children."""
    is_judging = any(goal.judging for goal in record.goals.goals.values())
    is_open = any(interrupt.state == "stopping" for interrupt in record.interrupts.values())
    return (
        record.unfinished is None
        and not any(at_work(record.children))
        and not is_judging
        and not is_open
    )
