"""The routing of a person's message: the first routing table, asked and carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from msgspec.structs import replace

from ...journal.record import SessionRecord, StopRecord
from ...machines import protocol as m
from ...machines.delivery import Cause, Delivery, Relation, deliver
from ...machines.disposition import (
    OVERTAKEN_INTENTS,
    Action,
    DispositionRow,
    Intent,
    Situation,
    dispose,
)
from ...machines.lifecycles import meant
from ...machines.people import weigh
from ...machines.policy import Policy
from . import children, queueing, reverting, stopping
from .decision import Decision, answer, refusal, refused_with
from .queries import known, not_open, owner_of_turn, policy_of, situation
from .rearrangement import MOMENT

if TYPE_CHECKING:
    from ..environment import Environment


SAYS_MORE = (Intent.CONVERSE, Intent.ACKNOWLEDGEMENT, Intent.STEER_WORD, Intent.INTERRUPT_MORE)


def rejection(reason: str, said: m.Said, hint: str = "") -> Decision:
    """Give a message back to its sender; `hint` is what can be done instead."""
    fact: m.Fact = m.MessageRejected(reason=reason, said=said, hint=hint)
    return Decision(facts=(fact,), reply=refused_with(reason))


def route(
    record: SessionRecord,
    message: m.UserMessage,
    environment: Environment,
    may: tuple[str, ...] | None = None,
) -> Decision:
    """Decide the disposition of a message, given what the session does now.

    It is taken into the queue in the same step: no later message can come before it. `may` are the rights
    of its sender, none for a person who may do everything.
    """
    before = known(record, message.said.client_id)
    if before is not None:
        return Decision(facts=(before,), reply=answer())
    policy = policy_of(record, environment.policy)
    doing = addressed(situation(record), message.to)
    if message.intent in OVERTAKEN_INTENTS and 0 < message.utterance < record.overtaken:
        doing = Situation.OVERTAKEN
    row, message = looked_up(environment.dispositions, message, doing, policy)
    if may is not None:
        weighed = weigh(row, message.intent, message.said.user, may, owner_of_turn(record))
        if weighed.is_refused:
            return rejection("not_allowed", message.said, weighed.why)
        row = weighed.row
    match row.action:
        case Action.RUN:
            order = enqueue(message, row, "turn", is_next=not _is_about_to_run(record))
            return _take_in(record, order, environment)
        case Action.QUEUE:
            return _wait(record, message, row, doing, environment)
        case Action.STEER:
            return _steer(record, message, row, environment)
        case Action.INTERRUPT:
            return _interrupt(record, message, row, environment)
        case Action.REFUSE | Action.COMMAND:
            by = f"row `{row.name}` of the routing table refuses it"
            hint = by if row.ack == "refused" else ""
            return rejection(row.ack or row.name, message.said, hint)
        case _:
            assert_never(row.action)


def looked_up(
    table: Any, message: m.UserMessage, doing: Situation, policy: Policy
) -> tuple[DispositionRow, m.UserMessage]:
    """Look up the disposition of a message; it keeps its word only where the word decided that.

    It did where the same message would have met another row as mere talk.
    """
    rest = doing, policy.busy_mode, policy.strategy, "on" if policy.is_auto_queue else "off"
    row = dispose(table, message.intent, *rest)
    if message.matched and dispose(table, Intent.CONVERSE, *rest) is row:
        message = replace(message, matched="")
    return row, message


def addressed(doing: Situation, to: str) -> Situation:
    """Say what the session does to a steer that is addressed: to a child, or to the agent itself."""
    if to not in ("", "parent"):
        return Situation.DELEGATING
    return Situation.ACCOMPANIED if to and doing is Situation.DELEGATING else doing


def enqueue(
    message: m.UserMessage,
    row: DispositionRow,
    said_as: str,
    *,
    text: str = "",
    **more: Any,
) -> m.Enqueue:
    """Order the queue to take a message in; `text`, when given, is what is left of it."""
    said = replace(message.said, text=text) if text else message.said
    routed = routed_by(row, said_as, message.matched)
    return m.Enqueue(said=said, routed=routed, position=message.queue_position, **more)


def routed_by(row: DispositionRow, said_as: str, matched: str) -> m.Routed:
    """Say how a row took a message."""
    return m.Routed(said_as=said_as, rule=row.name, matched=matched, ack=row.ack)


def _is_about_to_run(record: SessionRecord) -> bool:
    """Whether messages of people wait for a turn that is about to begin: a new one follows them."""
    queue = record.queue
    if queue.state != "open" or queue.only_waiting_count:
        return queue.state == "open"
    return any(not (item.is_next or item.goal or item.editor) for item in queue.waiting())


def _take_in(record: SessionRecord, order: m.Enqueue, environment: Environment) -> Decision:
    return queueing.enqueue(record, order, environment) + Decision(reply=answer())


def _wait(
    record: SessionRecord,
    message: m.UserMessage,
    row: DispositionRow,
    doing: Situation,
    environment: Environment,
) -> Decision:
    """Let it wait for a turn of its own; in a run, for the next agent that begins."""
    is_next = doing is Situation.INTERRUPTING
    for_turn = ""
    if record.run is not None and record.running is not None:
        is_next, for_turn = False, record.turn
    is_late = doing is Situation.OVERTAKEN
    order = enqueue(message, row, "queue", is_next=is_next, is_overtaken=is_late, for_turn=for_turn)
    return _take_in(record, order, environment)


# Steers -------------------------------------------------------------------------------------------


def _steer(
    record: SessionRecord, message: m.UserMessage, row: DispositionRow, environment: Environment
) -> Decision:
    """Hand it to each relation that the second table names for its cause."""
    table = environment.deliveries
    if message.to not in ("", "parent"):
        name, _, beneath = message.to.partition("/")
        names = _steered(record, environment, Cause.STEER_NAMED, name)
        if not names:
            return rejection("no_subagent", message.said)
        order = enqueue(message, row, "steer", for_children=names, beneath=beneath)
        return _take_in(record, order, environment)
    names = _steered(record, environment, row.cause)
    if names:
        order = enqueue(message, row, "steer", for_children=names)
        return _take_in(record, order, environment)
    if row.cause == Cause.STEER_THROUGH:  # no child is left: it is for the turn alone
        row = replace(row, cause=Cause.STEER)
    if deliver(table, row.cause, Relation.SELF).action is not Delivery.STEER:
        return _take_in(record, enqueue(message, row, "queue"), environment)
    order = enqueue(message, row, "steer", for_turn=record.turn)
    return _take_in(record, order, environment)


def _steered(
    record: SessionRecord, environment: Environment, cause: str, name: str = ""
) -> tuple[str, ...]:
    """Name the children that a steer reaches by the table; of these, if given, the one named."""
    names = stopping.reached_children(record, environment, cause, Delivery.STEER)
    return names if name in ("", "all") else meant(names, name)


def steer_waiting(
    record: SessionRecord, message: m.QueueChange, environment: Environment
) -> Decision:
    """Make a message that waits a steer: for the turn, or, while that waits, for its children."""
    names: tuple[str, ...] = ()
    if message.to not in ("", "parent"):
        names = _steered(record, environment, Cause.STEER_NAMED, message.to)
        if not names:
            return refusal(f"No subagent `{message.to}` works")
    elif not message.to and situation(record) is Situation.DELEGATING:
        names = _steered(record, environment, Cause.STEER_THROUGH)
    return queueing.change(record, replace(message, for_children=names))


# Interrupts ---------------------------------------------------------------------------------------


def _interrupt(
    record: SessionRecord, message: m.UserMessage, row: DispositionRow, environment: Environment
) -> Decision:
    """Stop what the cause reaches; the rest of the message runs next."""
    left = message.then or (message.said.text if message.intent in SAYS_MORE else "")
    wish = reverting.wish(record, message, row.cause, environment)
    order = m.StopOrder(
        cause=row.cause,
        said=m.Said(text="", user=message.said.user) if left else message.said,
        routed=routed_by(row, "interrupt", message.matched),
        utterance=message.utterance,
        is_replaced=bool(left),
        is_revert=bool(wish),
    )
    stopped = stopping.stop(record, order, environment)
    if not left:
        return wish + stopped
    # the message's own receipt says it all; it runs when the turn is over
    rest = enqueue(message, row, "interrupt", text=left, is_next=True)
    return wish + replace(stopped, facts=(), reply=None) + _take_in(record, rest, environment)


# Side talks ---------------------------------------------------------------------------------------


def side_talk(record: SessionRecord, message: m.SideTalk, environment: Environment) -> Decision:
    """Give a question beside the work its place in the queue, and have a child look at it.

    Both are one step: no stop can come between them, and no crash leaves a question without an answer.
    """
    before = known(record, message.said.client_id)
    if before is not None:
        return Decision(facts=(before,), reply=answer())
    if record.state in ("finalizing", "finalized"):
        return rejection("finalizing", message.said)
    if record.run is not None:
        return rejection("in_run", message.said, m.IN_RUN.format(record.id))
    question = queueing.question(record, message)
    begun = children.talk(record, question, environment)
    return Decision(entries=(question, begun), reply=answer())


def talk_offline(record: SessionRecord, message: m.SideTalk, environment: Environment) -> Decision:
    """Give a question back: no program runs the session that could answer it."""
    return rejection(not_open(record), message.said)


# Taking back --------------------------------------------------------------------------------------


def take_back(record: SessionRecord, now: float, environment: Environment) -> Decision:
    """Take back the newest message: it waits in the queue instead. A planned stop is called off."""
    planned, newest = _revoked(record, now), _newest_stop(record, now)
    off = stopping.call_off(record, planned) if planned else ()
    if newest is None:
        return Decision(entries=off) + queueing.take_back(record, now)
    key = f"undo-{newest.id}"
    stopped = None if planned else record.turns.get(newest.turn)
    stopped = stopped if stopped is not None and record.queue.is_live(stopped.item) else None
    matched = newest.order.routed.matched
    order = m.Enqueue(
        said=replace(newest.order.said, client_id=key),
        routed=m.Routed(said_as="queue", rule="taken-back", matched=matched, ack="queued"),
    )
    reply = answer(id=newest.id, key=key, offered=stopped and stopped.number)
    queued = queueing.enqueue(record, order, environment)
    return Decision(entries=off) + queued + Decision(reply=reply)


def _newest_stop(record: SessionRecord, now: float) -> StopRecord | None:
    """Return the message that only stopped, if it was the last thing said and still may be undone."""
    newest = next(reversed(list(record.stops.values())), None)
    if newest is None or not newest.order.said.text or newest.taken <= _last_taken(record):
        return None
    return newest if now - newest.taken <= MOMENT else None


def _revoked(record: SessionRecord, now: float) -> str:
    """Return the receipt of a planned interrupt that goes when the last message is taken back.

    That is the message that only stopped, or the one that was to run instead of the turn. One that
    children have been told of stays: they begin nothing more.
    """
    planned = [stop for stop in record.stops.values() if stop.state == "planned"]
    if not planned or stopping.has_reached(record, planned[-1]):
        return ""
    if planned[-1].order.said.text:
        return planned[-1].id if _newest_stop(record, now) is planned[-1] else ""
    last = record.queue.items.get(record.queue.taken)
    is_its = last is not None and (last.state, last.routed.said_as) == ("pending", "interrupt")
    return planned[-1].id if is_its and now - _last_taken(record) <= MOMENT else ""


def _last_taken(record: SessionRecord) -> float:
    last = record.queue.items.get(record.queue.taken)
    return last.taken if last else 0.0
