"""What became of a message that a program sent: waited for while the session lives, or read later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Literal, cast, get_args

from msgspec import Struct, field

from ..actors.environment import Publication
from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.record import SessionRecord, apply
from ..journal.recovery import load_record
from ..journal.store import Store
from ..journal.turn_record import TurnRecord
from ..machines import protocol as m
from ..machines.conversation import Usage
from ..machines.errors import SteersmanError, StoreError, UnknownSession, UsageError
from ..machines.lifecycles import INTERRUPT

Status = Literal["done", "steered", "withdrawn", "interrupted", "failed", "held"]

REMEMBERED = 100
"""Turns whose answers are at hand; those of older ones are read from the journal."""

LEFT_BEFORE = (
    "the session was left before the message was done",
    "it waits in the queue, or was interrupted: resume the session, then resume_queue()",
)
"""Why the outcome of a message is not known."""
_OF_A_TURN = ("done", "failed", "interrupted")
_SAYS_WHY = ("failed", "interrupted")
_AS = {"superseded": "interrupted", "unanswered": "failed"}
"""What is told of items that can be resumed."""
_WAITS = ("pending", "offered")


class Outcome(Struct, eq=False):
    """What became of a message.

    `status`: `done` or `failed`, its turn has ended; `steered`, it was taken into the running turn;
    `interrupted`, its turn was stopped, and `resume_queue` continues it; `withdrawn`, a person took it
    back; `held`, it waits while nothing runs (only where the end of its turn is waited for). `turn` is
    the turn's id, `text` the agent's last answer in it, `usage` its tokens and cost.
    `reason` says why a turn failed, which limit it reached, and otherwise what there is to say of the
    status. `value` is the answer as the agent's `output` reads it, for a message that was sent by `ask`.
    """

    status: Status
    turn: str = ""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    reason: str = ""
    value: Any = None

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
        self._waiting: dict[tuple[str, bool], list[Callable[[], None]]] = {}
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
            self._wake(tuple(key for key in self._waiting if _outcome(record, self._answers, *key)))

    def close(self) -> None:
        """Tell everybody that the session was left."""
        self._fault = UnknownSession(*LEFT_BEFORE)
        self._wake(tuple(self._waiting))

    def _wake(self, keys: tuple[tuple[str, bool], ...]) -> None:
        for key in keys:
            for wake in self._waiting.pop(key, ()):
                wake()

    async def of(self, item: str, *, with_turn: bool = False) -> Outcome:
        """Wait for the outcome of a message, or of an interrupt; from any loop.

        `with_turn`: that of a steer comes with the end of the turn that it entered, and a message that is
        held while nothing runs has one, too.
        """
        while (outcome := await self._look(item, with_turn=with_turn)) is None:
            if self._fault is not None:
                raise self._fault
            loop, woken = asyncio.get_running_loop(), asyncio.Event()
            key = (item, with_turn)
            self._waiting.setdefault(key, []).append(partial(later, loop, woken.set))
            if _outcome(self._record, self._answers, *key) is None and self._fault is None:
                await woken.wait()
        return outcome

    async def _look(self, item: str, *, with_turn: bool) -> Outcome | None:
        """Return the outcome as it is known now; what the session has forgotten is in the journal."""
        record, answers = self._record, self._answers
        outcome = _outcome(record, answers, item, with_turn)
        is_forgotten = item not in record.queue.items and item not in record.stops
        has_ended = outcome is not None and outcome.status in _OF_A_TURN and outcome.turn
        if is_forgotten or (has_ended and outcome is not None and outcome.turn not in answers):
            stored = StoredOutcome(self._store(), self._session, item, with_turn=with_turn)
            return await asyncio.to_thread(stored.look)
        return outcome


class StoredOutcome:
    """What a message became last, by the journal, of which each look reads what is new."""

    def __init__(self, store: Store, session: str, item: str, *, with_turn: bool = False) -> None:
        self._store, self._session = store, session
        self._item, self._with_turn = item, with_turn
        self._record = SessionRecord()
        self._answers: dict[str, str] = {}
        self._outcome: Outcome | None = None

    def look(self) -> Outcome | None:
        """Return it as far as the journal tells; none if it waits or runs.

        Raises `UsageError` for a message that the session has never had.
        """
        if not self._record.seq:
            self._skip_earlier()
        record = self._record
        for stored in self._store.entries(self._session, record.seq):
            entry = decode_entry(stored.data)
            apply(record, entry, stored.seq, stored.time)
            if isinstance(entry, e.TurnEnded | e.Interrupted):
                self._answers = {entry.turn: last_answer(record)}
            found = _outcome(record, self._answers, self._item, self._with_turn)
            known = self._outcome
            if found is None:
                self._outcome = None if self._item in record.queue.items else known
            elif known is None or (found.status, found.turn) != (known.status, known.turn):
                self._outcome = found
        is_there = self._item in record.queue.items or self._item in record.stops
        if self._outcome is None and not is_there:
            raise UsageError(
                f"no message `{self._item}` is known in session `{self._session}`",
                f"`steersman sessions receipts {self._session}` lists those that there are",
            )
        return self._outcome

    def _skip_earlier(self) -> None:
        """Begin with the newest snapshot, unless what became of the message is before it."""
        record = load_record(self._store, self._session)
        known = _outcome(record, {}, self._item, self._with_turn)
        is_there = self._item in record.queue.items or self._item in record.stops
        if is_there and (known is None or known.status not in _OF_A_TURN or not known.turn):
            self._record, self._outcome = record, known


def _outcome(
    record: SessionRecord, answers: dict[str, str], item: str, with_turn: bool
) -> Outcome | None:
    """Return what a message has become; none if it waits, runs, or is not known."""
    items = record.queue.items
    found = items.get(item)
    while found is not None and found.deferred_to in items:  # the model handed the steer back
        found = items[found.deferred_to]
    if found is None:
        cancel = record.stops.get(item)
        is_over = cancel is not None and cancel.state in INTERRUPT.final
        return Outcome("done", cancel.turn) if is_over and cancel is not None else None
    if with_turn and found.state in _WAITS and record.is_quiet:
        return Outcome("held")
    if with_turn and found.state == "steered" and not found.for_children:
        turn = record.turns.get(found.turn)
        found = items.get(turn.item, found) if turn is not None else found
    is_left = record.state in ("suspended", "finalized")
    if found.state == "interrupted" and found.is_next and not is_left:
        return None  # it goes on, when what was stopped has ended
    state = _AS.get(found.state, found.state)
    if state not in get_args(Status) or (state == "steered" and not found.turn):
        return None
    turn = record.turns.get(found.turn)
    return Outcome(
        cast("Status", state),
        found.turn,
        answers.get(found.turn, "") if state in _OF_A_TURN else "",
        turn.usage if turn is not None else Usage(),
        str((turn.reason if turn is not None and state in _SAYS_WHY else "") or found.why)
        or _refused(turn),
    )


def _refused(turn: TurnRecord | None) -> str:
    """Say which calls of a turn were not allowed: its agent may speak as if they had been done."""
    calls = turn.calls.values() if turn is not None else ()
    names = [call.tool for call in calls if call.state == "denied"]
    return f"not allowed, and so not done: {', '.join(names)}" if names else ""


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
