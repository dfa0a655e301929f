"""A child's homecoming: what its parent makes of its end, by the third routing table.

Pure: reads the parent's record and answers with what is to be told to the turn or to the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...journal.child_record import ChildRecord
from ...journal.record import SessionRecord
from ...journal.turn_record import CALL_ENDS
from ...machines.conversation import ChatMessage
from ...machines.delegation import AnswerOffer, Offer
from ...machines.delivery import Relation
from ...machines.orders import Enqueue
from ...machines.results import ToolFinished
from ...machines.returning import Awaited, Owner, Return, give_back

if TYPE_CHECKING:
    from ..environment import Environment

__all__ = ["Homecoming", "seed"]

STATUS = {"completed": "ok", "failed": "failed", "disconnected": "failed"}
STILL_AT_IT = "[I am still working on this.]"


class Homecoming:
    """One child that has ended, or was interrupted together with its parent."""

    def __init__(self, record: SessionRecord, environment: Environment, child: ChildRecord) -> None:
        self._record = record
        self._child = child
        owner = Owner.AGENT if environment.delegation.depth else Owner.PERSON
        self._row = give_back(environment.returns, child.relation, self._awaited(), owner)

    def answer(
        self, killed: tuple[int, ...] = (), survivors: tuple[int, ...] = ()
    ) -> ToolFinished | None:
        """Return the result of the tool call that waits for it, if one does."""
        child, record = self._child, self._record
        if self._row.action != Return.ANSWER:
            return None
        return ToolFinished(
            record.turn,
            record.epoch,
            child.call,
            STATUS.get(child.state, "killed"),
            self._text(),
            bytes=len(child.text.encode()),
            killed=killed,
            survivors=survivors,
        )

    @property
    def was_stopped(self) -> bool:
        """Whether it was told to stop together with its parent, and ended by itself meanwhile."""
        return self._child.is_kept

    def order(self) -> Enqueue | Offer | AnswerOffer | None:
        """Return what the queue is to do with it, if anything; what was interrupted isn't over."""
        child, action = self._child, self._row.action
        if child.is_returned or child.state == "interrupted":
            return None
        if child.relation == Relation.SIDE_TALK and child.item in self._record.queue.order:
            turn = self._record.running
            return AnswerOffer(child.item, self._text(), turn.id if turn else "")
        match action:
            case Return.BOUNDARY:
                return self._enqueue("steer", for_turn=self._record.turn)
            case Return.RUN:
                return self._enqueue("turn")
            case Return.OFFER if child.relation != Relation.SIDE_TALK:
                return Offer(self._text(), child.name, child.name)
            case _:
                return None

    def _enqueue(self, said_as: str, for_turn: str = "") -> Enqueue:
        child = self._child
        return Enqueue(
            self._text(),
            said_as,
            child.name,
            "",
            "",
            self._row.name,
            for_turn=for_turn,
            child=child.name,
        )

    def _awaited(self) -> Awaited:
        record, child = self._record, self._child
        turn = record.unfinished
        call = turn.calls.get(child.call) if turn is not None and child.call else None
        if call is not None and call.state not in CALL_ENDS:
            return Awaited.CALL
        match record.state:
            case "finalizing" | "finalized":
                return Awaited.OVER
            case "interrupting" | "leaving" | "suspended":
                return Awaited.ENDING
            case _:
                return Awaited.BUSY if record.running is not None else Awaited.IDLE

    def _text(self) -> str:
        """Return the child's last word, labelled when it is only a part."""
        child = self._child
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
    """Return a conversation as somebody beside it may see it: up to where it is whole.

    Calls that have no result yet are left out, and the agent has the last word, so that a question
    can follow.
    """
    said = list(conversation)
    while said and _is_open(said):
        said.pop()
    if said and said[-1].role != "assistant":
        said.append(ChatMessage("assistant", STILL_AT_IT))
    return tuple(said)


def _is_open(said: list[ChatMessage]) -> bool:
    """Whether the newest answer has calls whose results are not all there."""
    results = 0
    for message in reversed(said):
        if message.role != "tool":
            return len(message.tool_calls) > results
        results += 1
    return False
