"""The routing of a child's result: the third routing table, asked and carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.child_record import ChildRecord
from ...journal.queue_record import ItemRecord
from ...journal.record import SessionRecord
from ...journal.turn_record import CALL_ENDS
from ...machines import protocol as m
from ...machines.context import ends_of
from ...machines.conversation import ChatMessage
from ...machines.delivery import Relation
from ...machines.result_routing import Awaited, Return, ReturnRow, SessionOwner, give_back
from .decision import Order
from .queries import DELEGATE, given_up
from .wording import spoken

if TYPE_CHECKING:
    from ..environment import Environment


STATUS: dict[str, m.ToolStatus] = {"completed": "ok", "failed": "failed", "disconnected": "failed"}
STILL_AT_IT = "[I am still working on this.]"


def way_home(record: SessionRecord, child: ChildRecord, environment: Environment) -> ReturnRow:
    """Ask the table where the result of a child goes, given what its parent does."""
    owner = SessionOwner.AGENT if environment.delegation.depth else SessionOwner.PERSON
    return give_back(environment.returns, child.relation, _awaited(record, child), owner)


def _awaited(record: SessionRecord, child: ChildRecord) -> Awaited:
    turn = record.unfinished
    call = turn.calls.get(child.call) if turn is not None and child.call else None
    if call is not None and call.state not in CALL_ENDS:
        return Awaited.CALL
    if child.state == "interrupted" and child in given_up(record):
        return Awaited.GONE
    match record.state:
        case "finalizing" | "finalized":
            return Awaited.OVER
        case "interrupting" | "leaving" | "suspended":
            return Awaited.ENDING
        case _:
            return Awaited.BUSY if record.running is not None else Awaited.IDLE


def returned(
    record: SessionRecord,
    child: ChildRecord,
    environment: Environment,
    killed: tuple[int, ...] = (),
    survivors: tuple[int, ...] = (),
) -> tuple[Order, ...]:
    """Return the orders by which a child's result reaches its call, its parent's turn, or the queue.

    `child` has ended, or was interrupted together with its parent: that is reported to its call only.
    """
    if record.run is not None:
        return ()  # a run looks after its children itself
    row = way_home(record, child, environment)
    if row.action is Return.ANSWER:
        return (("turn", _result(record, child, environment, killed, survivors)),)
    if child.is_returned or child.state == "interrupted":
        return ()
    if child.relation == Relation.SIDE_TALK and child.item in record.queue.order:
        return (("queue", m.AnswerOffer(item=child.item, text=text_of(child))),)
    match row.action:
        case Return.BOUNDARY:
            return (("queue", _enqueue(child, environment, "steer", row.name, record.turn)),)
        case Return.RUN:
            return (("queue", _enqueue(child, environment, "turn", row.name)),)
        case Return.OFFER if child.relation != Relation.SIDE_TALK:
            return (("queue", m.Offer(said=_said_by(child, environment), child=child.name)),)
        case Return.OFFER | Return.KEEP:
            return ()


def _result(
    record: SessionRecord,
    child: ChildRecord,
    environment: Environment,
    killed: tuple[int, ...],
    survivors: tuple[int, ...],
) -> m.ToolFinished:
    return m.ToolFinished(
        turn=record.turn,
        epoch=record.epoch,
        call=child.call,
        result=m.ToolResult(
            status=STATUS.get(child.state, "killed"),
            text=bounded_text_of(child, environment),
            bytes=len(child.text.encode()),
            killed=killed,
            survivors=survivors,
        ),
    )


def _enqueue(
    child: ChildRecord, environment: Environment, said_as: str, rule: str, for_turn: str = ""
) -> m.Enqueue:
    return m.Enqueue(
        said=_said_by(child, environment),
        routed=m.Routed(said_as=said_as, rule=rule),
        kind=m.ItemKind.RESULT,
        for_turn=for_turn,
        child=child.name,
    )


def _said_by(child: ChildRecord, environment: Environment) -> m.Said:
    return m.Said(text=bounded_text_of(child, environment), user=child.name)


def bounded_text_of(child: ChildRecord, environment: Environment) -> str:
    """Return what its parent's model receives of a child's last word."""
    # the child's executor has written a longer answer there, before it was journalled
    place = f"{environment.outputs}/{child.session}.txt" if environment.outputs else ""
    return ends_of(text_of(child), environment.result_limits.of(DELEGATE), place)


def text_of(child: ChildRecord) -> str:
    """Return a child's last word, labelled when it is only a part."""
    had = f" What it had: {child.text}" if child.text else " It had nothing to show yet."
    match child.state:
        case "completed":
            return child.text or "[It ended without a word.]"
        case "interrupted":
            return f"[Stopped together with you; it goes on when you do.{had}]"
        case "cancelled":
            return f"[Stopped before it was done ({child.cause or 'by the user'}).{had}]"
        case _:
            return f"[It failed: {child.reason or 'no reason is known'}.{had}]"


def seed(conversation: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return a conversation as a session beside it may see it: up to where it is whole.

    Calls that have no result yet are left out, and the agent has the last word, so that a question
    can follow.
    """
    said = list(conversation)
    while said and _is_open(said):
        said.pop()
    if said and said[-1].role != "assistant":
        said.append(ChatMessage(role="assistant", text=STILL_AT_IT))
    return tuple(said)


def _is_open(said: list[ChatMessage]) -> bool:
    """Whether the newest answer has calls whose results are not all there."""
    results = 0
    for message in reversed(said):
        if message.role != "tool":
            return len(message.tool_calls) > results
        results += 1
    return False


def with_results(record: SessionRecord, order: m.GoalMessage) -> tuple[list[str], m.Said]:
    """Put the offered results of children that a goal's turns began in front of its next message.

    Nobody has to be there to hand them on. Returns the offers, and the message.
    """
    found: list[ItemRecord] = []
    for item in record.queue.special():
        child = record.children.get(item.child) if item.state == "offered" else None
        turn = record.turns.get(child.turn) if child is not None else None
        begun = record.queue.items.get(turn.item) if turn is not None else None
        if begun is not None and begun.goal == order.goal and item.kind is m.ItemKind.RESULT:
            found.append(item)
    texts = [*map(spoken, found), order.said.text]
    return [item.id for item in found], replace(order.said, text="\n\n".join(texts))


def discarded(record: SessionRecord) -> tuple[e.ChildEnded, ...]:
    """End the stopped children beside turns, which a resume would let go on. Nothing is offered."""
    beside = (Relation.BACKGROUND_CHILD, Relation.DETACHED_CHILD)
    stopped = [child for child in record.children.values() if child.state == "interrupted"]
    return tuple(
        e.ChildEnded(
            child=child.name,
            status="cancelled",
            text=child.text,
            reason="discarded",
            steps=child.steps,
            usage=child.usage,
            goes=Return.KEEP,
        )
        for child in stopped
        if record.run is None and child.relation in beside
    )
