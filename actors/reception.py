"""Reception: what people say, put into the words of the routing table and of the queue."""

from __future__ import annotations

from dataclasses import replace

from ..journal.record import SessionRecord
from ..machines.disposition import DispositionRow, Intent, Situation
from ..machines.messages import Enqueue, InterruptTurn, UserMessage

__all__ = ["enqueue_order", "interrupt_order", "replacing_order", "situation", "what_is_left"]

SAYS_MORE = (Intent.CONVERSE, Intent.STEER_WORD, Intent.INTERRUPT_MORE)


def situation(record: SessionRecord) -> Situation:
    """Say what the session is doing, in the words of the routing table."""
    match record.state:
        case "busy":
            return Situation.BUSY
        case "interrupting" | "leaving":
            return Situation.INTERRUPTING
        case "finalizing" | "finalized":
            return Situation.FINALIZING
        case _:
            return Situation.HELD if record.queue.state == "held" else Situation.IDLE


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
    for_turn: str = "",
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
    )


def replacing_order(
    message: UserMessage, row: DispositionRow, text: str, cancels: InterruptTurn
) -> Enqueue:
    """Order the queue to take in what replaces the running turn, which is told once that is safe."""
    silent = replace(cancels, text="", client_id="")  # the message's own receipt says it all
    taken = enqueue_order(message, row, "interrupt", text=text, is_next=True)
    return replace(taken, cancels=silent)


def interrupt_order(
    receipt: str, turn: str, message: UserMessage, row: DispositionRow
) -> InterruptTurn:
    """Order the turn to end because of a message."""
    return InterruptTurn(
        receipt,
        row.cause,
        turn,
        message.user,
        message.client_id,
        message.matched,
        row.name,
        message.content,
    )
