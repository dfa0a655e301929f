"""What became of a message that a program sent: waited for while the session lives, or read later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from ..actors.environment import Publication
from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.record import SessionRecord, apply
from ..journal.store import Store
from ..machines import protocol as m
from ..machines.conversation import Usage
from ..machines.errors import SteersmanError, StoreError, UnknownSession
from ..machines.value import Value
from .events.contract import (
    AcceptedEvent,
    Event,
    QueueEvent,
    RejectedEvent,
    TurnEndedEvent,
    TurnUsage,
    has_left,
)
from .wording.acknowledgement import rejected_text

Status = Literal["done", "steered", "withdrawn", "interrupted", "failed"]

REMEMBERED = 100
"""Turns whose answers are at hand; those of older ones are read from the journal."""

LEFT_BEFORE = (
    "the session was left before the message had its turn",
    "it waits in the queue: resume the session, then resume_queue()",
)
"""Why the outcome of a message is not known."""
_BECAME: dict[str, Status] = {
    "done": "done",
    "failed": "failed",
    "steered": "steered",
    "withdrawn": "withdrawn",
    "interrupted": "interrupted",
    "superseded": "interrupted",
}
_OF_A_TURN = ("done", "failed", "interrupted")


class Outcome:
    """What became of a message.

    `status`: `done` or `failed`, its turn has ended; `steered`, it was taken into the running turn;
    `interrupted`, its turn was stopped, and `resume_queue` continues it; `withdrawn`, a person took it
    back. `turn` is the turn's id, `text` the agent's last answer in it, `usage` its tokens and cost.
    `reason` says why a turn failed, and otherwise what there is to say of the status. `value` is the
    answer as the agent's `output` reads it, for a message that was sent by `ask`.
    """

    def __init__(
        self,
        status: Status,
        turn: str = "",
        text: str = "",
        usage: Usage | None = None,
        reason: str = "",
        value: Any = None,
    ) -> None:
        self.status = status
        self.turn = turn
        self.text = text
        self.usage = usage or Usage()
        self.reason = reason
        self.value = value

    def __repr__(self) -> str:
        reason = f", reason={self.reason!r}" if self.reason else ""
        return f"Outcome(status={self.status!r}, turn={self.turn!r}, text={self.text!r}{reason})"


class Outcomes:
    """Observes one session, and wakes those who wait for the outcome of a message; see `Observer`."""

    def __init__(self, session: str, store: Callable[[], Store]) -> None:
        self._session = session
        self._store = store
        self._record = SessionRecord()
        self._answers: dict[str, str] = {}
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._fault: SteersmanError | None = None

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication:
        """Look, when the entry is durable, whether a message that is waited for has become something."""
        return partial(self._learn, entry, record)

    def observe_fact(self, fact: m.Fact) -> None:
        """Tell everybody when the journal cannot be written."""
        if isinstance(fact, m.StoreLost):
            self._fault = StoreError(fact.text, fact.hint)
            self._wake(tuple(self._waiting))

    def _learn(self, entry: e.Entry, record: SessionRecord) -> None:
        if isinstance(entry, e.TurnEnded | e.Interrupted):
            self._answers[entry.turn] = last_answer(record)
            if len(self._answers) > REMEMBERED:
                del self._answers[next(iter(self._answers))]
        self._record, self._fault = record, None
        if isinstance(entry, e.SessionSuspended | e.SessionFinalized):
            self.close()
        elif self._waiting:
            self._wake(
                tuple(item for item in self._waiting if _outcome(record, item, self._answers))
            )

    def close(self) -> None:
        """Tell everybody that the session was left."""
        self._fault = UnknownSession(*LEFT_BEFORE)
        self._wake(tuple(self._waiting))

    def _wake(self, items: tuple[str, ...]) -> None:
        for item in items:
            for wake in self._waiting.pop(item, ()):
                wake()

    async def of(self, item: str) -> Outcome:
        """Wait for the outcome of a message, or of an interrupt; from any loop."""
        while (outcome := await self._look(item)) is None:
            if self._fault is not None:
                raise self._fault
            loop, woken = asyncio.get_running_loop(), asyncio.Event()
            self._waiting.setdefault(item, []).append(partial(later, loop, woken.set))
            if _outcome(self._record, item, self._answers) is None and self._fault is None:
                await woken.wait()
        return outcome

    async def _look(self, item: str) -> Outcome | None:
        """Return the outcome as it is known now; what the session has forgotten is in the journal."""
        record, answers = self._record, self._answers
        outcome = _outcome(record, item, answers)
        is_forgotten = item not in record.queue.items and item not in record.stops
        has_ended = outcome is not None and outcome.status in _OF_A_TURN and outcome.turn
        if is_forgotten or (has_ended and outcome is not None and outcome.turn not in answers):
            return await asyncio.to_thread(past_outcome, self._store(), self._session, item)
        return outcome


def _outcome(record: SessionRecord, item: str, answers: dict[str, str]) -> Outcome | None:
    """Return what a message has become; none if it waits, runs, or is not known."""
    found = record.queue.items.get(item)
    if found is None:
        cancel = record.stops.get(item)
        is_over = cancel is not None and cancel.state != "stopping"
        return Outcome("done", cancel.turn) if is_over and cancel is not None else None
    if found.state not in _BECAME or (found.state == "steered" and not found.turn):
        return None
    turn = record.turns.get(found.turn)
    return Outcome(
        _BECAME[found.state],
        found.turn,
        answers.get(found.turn, "") if found.state in _OF_A_TURN else "",
        turn.usage if turn is not None else None,
        str((turn.reason if turn is not None and found.state == "failed" else "") or found.why),
    )


def past_outcome(store: Store, session: str, item: str) -> Outcome | None:
    """Read from the journal what a message became last."""
    record, answers = SessionRecord(), dict[str, str]()
    outcome: Outcome | None = None
    for stored in store.entries(session):
        entry = decode_entry(stored.data)
        apply(record, entry, stored.seq, stored.time)
        if isinstance(entry, e.TurnEnded | e.Interrupted):
            answers = {entry.turn: last_answer(record)}
        found = _outcome(record, item, answers)
        if found is None:
            outcome = None if item in record.queue.items else outcome
        elif outcome is None or (found.status, found.turn) != (outcome.status, outcome.turn):
            outcome = found
    return outcome


def last_answer(record: SessionRecord) -> str:
    """Return the agent's last words since a message of a person; empty if there are none."""
    for message in reversed(record.conversation):
        if message.role == "user":
            break
        if message.role == "assistant" and message.text:
            return message.own
    return ""


def later(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    """Have something done on a program's loop, unless that is closed; from any thread."""
    with suppress(RuntimeError):  # it is
        loop.call_soon_threadsafe(do)


# By events, also those of another process ---------------------------------------------------------


class Ending(Value):
    """How a message ended: as its turn did, or without one.

    `status` is that of its turn; `completed` of what needs none; `rejected`; `withdrawn` from the queue;
    `held` there while nothing runs; or `left`, as the session was. `reason` says why it failed or was
    rejected.
    """

    status: str
    turn: str = ""
    usage: TurnUsage | None = None
    reason: str = ""


class _Waiting(Struct, kw_only=True):
    """One message: its queue item, and the turn that it entered as a steer."""

    accepted: asyncio.Future[str]
    ended: asyncio.Future[Ending]
    item: str = ""
    turn: str = ""

    def end(self, ending: Ending) -> None:
        if not self.ended.done():
            self.ended.set_result(ending)


class Endings:
    """The messages of one session that are awaited, by their client ids. Belongs to one asyncio loop.

    A message has ended at the end of the turn that it began or entered, with the result of a command, at
    once if it only stopped something, and if it was removed from the queue or is held.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    def expect(self, key: str) -> asyncio.Future[Ending]:
        """Await the end of a message that is about to be sent."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(accepted=loop.create_future(), ended=loop.create_future())
        self._waiting[key] = waiting
        return waiting.ended

    async def accepted(self, key: str) -> str:
        """Return what a message was accepted as: turn, queue, steer …, or rejected."""
        return await self._waiting[key].accepted

    async def ended(self, key: str) -> Ending:
        """Return how a message ended."""
        try:
            return await self._waiting[key].ended
        finally:
            self.forget(key)

    def forget(self, key: str) -> None:
        """Stop awaiting a message."""
        self._waiting.pop(key, None)

    def answered(self, key: str) -> None:
        """Note that a message has its answer, if it is awaited."""
        if waiting := self._waiting.get(key):
            waiting.end(Ending(status="completed"))

    def hear(self, event: Event, *, is_parked: bool = False) -> None:
        """Receive an event of the session itself; `is_parked`: nothing runs in the session."""
        match event["type"]:
            case "accepted" | "rejected":
                self._receipt(event)
            case "result":
                self.answered(event["client_id"] or "")
            case "steered":
                for waiting in self._of_item(event["id"]):
                    waiting.turn = event["turn"]
            case "requeued":
                for waiting in self._of_item(event["id"]):
                    waiting.item, waiting.turn = event["item"], ""
            case "turn_ended":
                self._turn_ended(event)
            case "queue":
                self._queue_changed(event, is_parked=is_parked)
            case "session_suspended" | "session_finalized":
                for waiting in self._all():
                    waiting.end(Ending(status="left"))
            case _:  # no message waits for other events
                return

    def _receipt(self, event: AcceptedEvent | RejectedEvent) -> None:
        waiting = self._waiting.get(event["client_id"] or "")
        if waiting is None or waiting.accepted.done():
            return
        if event["type"] == "rejected":
            waiting.end(Ending(status="rejected", reason=rejected_text(event)))
            waiting.accepted.set_result("rejected")
            return
        waiting.accepted.set_result(event["as"])
        if event["as"] == "command":
            return
        if event["number"] is None or event["as"] == "side_talk":
            # an interrupt or a side talk has no turn of its own to wait for
            waiting.end(Ending(status="completed"))
        else:
            waiting.item = event["id"]

    def _turn_ended(self, event: TurnEndedEvent) -> None:
        status = event["status"]
        is_failed = status not in ("completed", "interrupted")
        ending = Ending(
            status=status,
            turn=event["turn"],
            usage=event["usage"],
            reason=event.get("reason", status if is_failed else ""),
        )
        for waiting in self._all():
            if event["item"] == waiting.item or event["turn"] == waiting.turn:
                waiting.end(ending)

    def _queue_changed(self, event: QueueEvent, *, is_parked: bool) -> None:
        """End messages that left the queue without a turn, or that are held while nothing runs."""
        for waiting in self._all():
            if waiting.item and not waiting.turn and has_left(event, waiting.item):
                waiting.end(Ending(status="withdrawn"))
            elif waiting.item and is_parked:
                waiting.end(Ending(status="held"))

    def _of_item(self, item: str) -> list[_Waiting]:
        return [waiting for waiting in self._all() if waiting.item == item]

    def _all(self) -> list[_Waiting]:
        return list(self._waiting.values())
