"""Reception: what people say, put into the words of the routing table and of the queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..journal.child_record import names_for
from ..journal.record import CancelRecord, SessionRecord
from ..machines.delivery import Cause
from ..machines.disposition import DispositionRow, Intent, Situation, dispose
from ..machines.facts import MessageKnown
from ..machines.messages import UserMessage
from ..machines.orders import Enqueue, InterruptTurn
from ..machines.policy import Policy
from ..machines.routing import Table
from .rearrangement import MOMENT
from .turns.effect import DELEGATE

__all__ = [
    "addressed",
    "decided",
    "enqueue_order",
    "interrupt_order",
    "is_asked_here",
    "is_waiting_for_child",
    "known",
    "newest_stop",
    "policy_of",
    "replacing_order",
    "revoked",
    "situation",
    "taken_back",
    "told_of",
    "waiting_order",
    "what_is_left",
]

BY_WORDS = (Cause.BARE_WORD, Cause.MORE_WORD, Cause.MESSAGE)
SAYS_MORE = (Intent.CONVERSE, Intent.STEER_WORD, Intent.INTERRUPT_MORE)


def situation(record: SessionRecord) -> Situation:
    """Say what the session is doing, in the words of the routing table."""
    has_children = any(one.is_at_work for one in record.children.values())
    match record.state:
        case "busy" if record.run is not None:
            return Situation.DELEGATING  # a run does nothing itself
        case "busy":
            if names_for(record.children, record.turn) or is_waiting_for_child(record):
                return Situation.DELEGATING
            return Situation.ACCOMPANIED if has_children else Situation.BUSY
        case "interrupting" | "leaving":
            return Situation.INTERRUPTING
        case "finalizing" | "finalized":
            return Situation.FINALIZING
        case _ if has_children or record.goals.is_pursued:
            return Situation.UNATTENDED
        case _:
            return Situation.HELD if record.queue.state == "held" else Situation.IDLE


def is_waiting_for_child(record: SessionRecord) -> bool:
    """Whether a call of the turn waits for a child, be it at work or just asked for."""
    turn = record.running
    calls = turn.calls.values() if turn is not None else ()
    return any(one.tool == DELEGATE and one.state == "running" for one in calls)


def addressed(doing: Situation, to: str) -> Situation:
    """Say what the session does to a steer that names somebody: a child, or the agent itself."""
    if to not in ("", "parent"):
        return Situation.DELEGATING
    return Situation.ACCOMPANIED if to and doing is Situation.DELEGATING else doing


def is_asked_here(record: SessionRecord, question: str) -> bool:
    """Whether a question is one of the session's own turn, not of a child."""
    turn = record.running
    calls = turn.calls.values() if turn is not None else ()
    return any(one.question == question for one in calls)


def policy_of(record: SessionRecord, configured: Policy) -> Policy:
    """Return what a session goes by: what a person chose for it, else what is configured."""
    chosen: dict[str, Any] = {}
    if record.busy_mode:
        chosen["busy_mode"] = record.busy_mode
    if record.is_auto_queue is not None:
        chosen["is_auto_queue"] = record.is_auto_queue
    return replace(configured, **chosen) if chosen else configured


def decided(
    table: Table[DispositionRow], message: UserMessage, doing: Situation, policy: Policy
) -> tuple[DispositionRow, UserMessage]:
    """Look up what becomes of a message; it keeps its word only where the word decided that.

    It did where the same message would have met another row as mere talk.
    """
    rest = doing, policy.busy_mode, policy.strategy, "on" if policy.is_auto_queue else "off"
    row = dispose(table, message.intent, *rest)
    if message.matched and dispose(table, Intent.CONVERSE, *rest) is row:
        message = replace(message, matched="")
    return row, message


def told_of(order: InterruptTurn, receipt: str) -> MessageKnown:
    """Answer who stops by a message what is stopped already, or has just ended."""
    return MessageKnown(
        receipt, "interrupt", None, order.client_id, order.matched, order.rule, order.ack
    )


def what_is_left(message: UserMessage) -> str:
    """Return what of an interrupting message is to run next: all of it where it says more."""
    return message.then or (message.content if message.intent in SAYS_MORE else "")


def enqueue_order(
    message: UserMessage,
    row: DispositionRow,
    said_as: str,
    *,
    text: str = "",
    is_next: bool = False,
    is_overtaken: bool = False,
    for_turn: str = "",
    for_children: tuple[str, ...] = (),
    beneath: str = "",
) -> Enqueue:
    """Order the queue to take a message in; `text`, when given, is what is left of it."""
    return Enqueue(
        text or message.content,
        said_as,
        message.user,
        message.client_id,
        message.matched,
        row.name,
        row.ack,
        is_next,
        for_turn,
        message.queue_position,
        for_children=for_children,
        attached=message.attached,
        beneath=beneath,
        is_overtaken=is_overtaken,
    )


def replacing_order(
    message: UserMessage, row: DispositionRow, text: str, cancels: InterruptTurn
) -> Enqueue:
    """Order the queue to take in what replaces the running turn, which is told once that is safe."""
    silent = replace(cancels, text="", client_id="")  # the message's own receipt says it all
    taken = enqueue_order(message, row, "interrupt", text=text, is_next=True)
    return replace(taken, cancels=silent)


def interrupt_order(
    receipt: str, turn: str, message: UserMessage, row: DispositionRow, interrupt_at: str = "now"
) -> InterruptTurn:
    """Order the turn to end because of a message; only what words say may wait for a tool."""
    return InterruptTurn(
        receipt,
        row.cause,
        turn,
        message.user,
        message.client_id,
        message.matched,
        row.name,
        message.content,
        interrupt_at == "boundary" and row.cause in BY_WORDS,
        ack=row.ack,
    )


def known(record: SessionRecord, client_id: str) -> MessageKnown | None:
    """Return what a message with this key got when it came before."""
    name = record.queue.clients.get(client_id)
    if name is not None:
        item = record.queue.items.get(name)
        said_as, number = (item.said_as, item.number) if item else ("turn", None)
        return MessageKnown(name, said_as, number, client_id)
    receipt = record.cancels.get(client_id)
    return MessageKnown(receipt, "interrupt", None, client_id) if receipt else None


# Taking back --------------------------------------------------------------------------------------


def newest_stop(record: SessionRecord, now: float) -> CancelRecord | None:
    """Return the message that only stopped, if it was the last thing said and still may be undone."""
    newest = next(reversed(record.interrupts.values()), None)
    if newest is None or not newest.text or newest.taken <= _last_taken(record):
        return None
    return newest if now - newest.taken <= MOMENT else None


def revoked(record: SessionRecord, now: float) -> str:
    """Return the receipt of a planned interrupt that goes when the last message is taken back.

    That is the message that only stopped, or the one that was to run instead of the turn.
    """
    planned = [one for one in record.interrupts.values() if one.state == "planned"]
    if not planned:
        return ""
    if planned[-1].text:
        return planned[-1].id if newest_stop(record, now) is planned[-1] else ""
    last = record.queue.items.get(record.queue.taken)
    is_its = last is not None and (last.state, last.said_as) == ("pending", "interrupt")
    return planned[-1].id if is_its and now - _last_taken(record) <= MOMENT else ""


def taken_back(record: SessionRecord, now: float) -> tuple[str, Enqueue | None, dict[str, Any]]:
    """Say what becomes of the newest message when it is taken back.

    Returns the receipt of a planned interrupt that is off then, the order to queue a message that only
    stopped, none if it was no such message, and the reply to whoever takes it back.
    """
    planned, newest = revoked(record, now), newest_stop(record, now)
    if newest is None:
        return planned, None, {}
    key = f"undo-{newest.id}"
    stopped = None if planned else record.turns.get(newest.turn)
    reply = {"ok": True, "id": newest.id, "key": key, "offered": stopped and stopped.number}
    return planned, replace(waiting_order(newest), client_id=key), reply


def waiting_order(stop: CancelRecord) -> Enqueue:
    """Order the queue to take in a message that stopped something, as one that waits."""
    return Enqueue(stop.text, "queue", stop.user, "", stop.matched, "taken-back", "queued")


def _last_taken(record: SessionRecord) -> float:
    last = record.queue.items.get(record.queue.taken)
    return last.taken if last else 0.0
