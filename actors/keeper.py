"""The keeper of a session's journal: numbers, folds, and holds back until it is durable.

What the queue, the turn and the session itself decide arrives here as entries. Each is folded into
the record at once and handed to the journal; only when it is durable is it told to anybody, and only
then, if no cancel came in between, are its effects performed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal.codec import encode_entry
from ..journal.record import SessionRecord, apply
from ..journal.revert_entries import Reverted
from ..journal.store import StoredEntry
from ..machines.agent_call import AnswerAgent
from ..machines.delegation import (
    CloseChild,
    Delegate,
    Dismiss,
    OpenChild,
    PassSteer,
    SetTimer,
    StopChild,
)
from ..machines.effects import (
    CallModel,
    CancelModel,
    Effect,
    RestoreFiles,
    RunTool,
    StopTool,
    Summarise,
)
from ..machines.facts import Fact, MessageRejected, StoreLost
from ..machines.messages import UserMessage
from ..machines.orders import Decided, InterruptTurn, Journalled, StoreBroke
from ..machines.pursuit import (
    AskJudge,
    AwaitCondition,
    CountChanges,
    GoalEffect,
    GoalTimer,
    RunGate,
    StopJudging,
)
from ..machines.session import SESSION
from ..machines.step import Refusal, step
from ..machines.workflow_order import LookAfter, LookBefore
from .mailbox import tell
from .outbox import Held, Outbox
from .reception import is_waiting_for_child
from .supervisor import Supervisor
from .turns.effect import stop_effect

if TYPE_CHECKING:
    from .environment import Environment
    from .system import ActorSystem

__all__ = ["Keeper"]

NAMES_THE_QUEUE = (
    e.TurnEnded,
    e.Interrupted,
    e.ProgressMade,
    e.Recovered,
    e.SessionFinalized,
    e.SessionSuspended,
    e.SteerArrived,
    Reverted,
)


class Keeper(Supervisor):
    """What a session is, apart from what people may say to it.

    `record` is the fold of everything decided so far, durable or about to be. `_broken` says why the
    journal cannot be written any more. `_cancel` is an interrupt that was given to the turn and is
    not answered yet.
    """

    def __init__(
        self, system: ActorSystem, record: SessionRecord, environment: Environment
    ) -> None:
        super().__init__(system)
        self.record = record
        self._environment = environment
        self._outbox = Outbox(record.seq)
        self._broken = ""
        self._cancel: InterruptTurn | None = None

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give back the message that cannot be taken; what the turn started ends with its actors."""
        letter = self._current.message if self._current else None
        if isinstance(letter, UserMessage):
            self._reject("fault", letter.content, letter.client_id)

    def _react(self, entry: e.Entry) -> None:
        """Decide what follows from an entry that was just folded."""
        raise NotImplementedError

    def _deliver_cancel(self, order: InterruptTurn) -> None:
        """Give an order to end to whom the table names."""
        raise NotImplementedError

    def _perform_for_goal(self, effect: GoalEffect) -> None:
        """Do what a goal asks for, unless something has come in between."""
        raise NotImplementedError

    def _say(self, entry: e.Entry) -> None:
        self._journal(Decided(self.name, (entry,)))

    def _journal(self, decided: Decided) -> None:
        """Fold, number and hand to the journal; hold back what may only be told when durable."""
        for effect in decided.urgent:
            self._perform(effect)
        if self._broken:
            return
        if self.record.queue.state == "closed":
            self._decline(decided)
            return
        for entry in decided.entries:
            self._fold(entry, decided.sender)
        if decided.effects or decided.facts:
            held = Held(self.record.seq, (), decided.effects, decided.facts)
            self._outbox.hold(held)
        for entry in decided.entries:
            self._react(entry)
        for order in decided.orders:
            self._deliver_cancel(order)
        self._release(self._outbox.durable)

    def _decline(self, decided: Decided) -> None:
        """Nothing follows the last entry; a message that crossed it goes back to its sender."""
        for entry in decided.entries:
            if isinstance(entry, e.Queued):
                self._reject("session_finalized", entry.text, entry.client_id)

    def _fold(self, entry: e.Entry, sender: str) -> None:
        record, now = self.record, self.system.now()
        seq = record.seq + 1
        apply(record, entry, seq, now)
        told = self._environment.ears.hear(entry, seq, now, record)
        self._outbox.hold(Held(seq, told))
        self._environment.journal.append(StoredEntry(seq, now, encode_entry(entry)), record)
        if sender != "queue" and isinstance(entry, NAMES_THE_QUEUE):
            self._queue.tell(Journalled(entry))
        if isinstance(entry, e.Recovered) and "nursery" in self.children:
            self._nursery.tell(Journalled(entry))

    def _release(self, seq: int) -> None:
        """Everything up to `seq` is durable: tell it, and perform what no cancel has overtaken."""
        for held in self._outbox.release(seq):
            self._environment.ears.tell(held.told)
            for fact in held.facts:
                self._pass_on(fact)
            for effect in held.effects:
                self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        """Hand an effect to whoever does it; one that stops something also when its turn has ended."""
        turn = self._turn
        match effect:
            case PassSteer():
                tell(self._nursery, effect)
            case OpenChild() | CloseChild() | SetTimer():
                self._environment.perform(effect, self._nursery)
            case StopChild():
                tell(self._nursery, replace(effect, reply_to=turn))
            case CancelModel() | StopTool() | LookAfter():
                self._environment.perform(effect, turn)
            case RestoreFiles():
                self._environment.perform(effect, self.actor_ref)
            case (
                RunGate()
                | AskJudge()
                | CountChanges()
                | StopJudging()
                | AwaitCondition()
                | GoalTimer()
            ):
                self._perform_for_goal(effect)
            case _ if turn is None or self._is_overtaken(effect):
                return
            case Delegate() | Dismiss():
                tell(self._nursery, replace(effect, reply_to=turn))
            case _:
                self._environment.perform(effect, turn)

    def _is_overtaken(
        self,
        effect: CallModel | Summarise | RunTool | AnswerAgent | Delegate | Dismiss | LookBefore,
    ) -> bool:
        """Whether a cancel came in between; one that is on its way to the turn counts, too.

        Not one that lets the tools end, though: the turn may have one that is about to start.
        """
        if isinstance(effect, CallModel) and self._is_cut(effect):
            return True
        cancel = self._cancel
        is_awaited = cancel is not None and cancel.is_talk and is_waiting_for_child(self.record)
        is_coming = cancel is not None and not cancel.is_patient and not is_awaited
        return is_coming or effect.epoch != self.record.epoch

    def _is_cut(self, effect: CallModel) -> bool:
        """Whether the answer was cut off for a steer before it was even asked for."""
        turn = self.record.running
        return turn is not None and (turn.step, turn.state) != (effect.step, "calling")

    def _break(self, message: StoreBroke) -> None:
        """Fail loudly: nothing that is not durable is told, and nothing more is accepted."""
        self._broken = message.reason
        self._outbox.clear()
        for effect in self._stopping():
            self._perform(effect)
        code = "lease_lost" if message.is_lease_lost else "store_failed"
        self._pass_on(StoreLost(code, message.reason, message.hint))
        self.unstash()

    def _reject(self, reason: str, text: str, client_id: str) -> None:
        self._pass_on(MessageRejected(reason, text, client_id))

    def _stopping(self) -> Iterator[Effect]:
        """Name everything to be stopped so that nothing of the turn is left."""
        turn = self.record.unfinished
        if turn is None:
            return
        yield CancelModel(turn.id)
        for call in turn.calls.values():
            if call.state in ("running", "stopping"):
                yield stop_effect(turn.id, self.record.epoch, call.id, call.tool)

    def stop_children(self) -> None:
        """End all actors beneath, and whatever the turn started in the world."""
        for effect in self._stopping():
            if isinstance(effect, CancelModel | StopTool):
                self._environment.perform(effect, None)
        super().stop_children()

    @property
    def _queue(self) -> ActorRef[Any]:
        return self.children["queue"].ref

    @property
    def _nursery(self) -> ActorRef[Any]:
        return self.children["nursery"].ref

    @property
    def _turn(self) -> ActorRef[Any] | None:
        child = self.children.get("turn")
        return child.ref if child is not None and child.ref.is_alive() else None

    def _shift(self, event: str) -> None:
        moved = step(SESSION, self.record.state, event)
        if not isinstance(moved, Refusal):
            self.record.state = moved.state

    def _pass_on(self, fact: Fact) -> None:
        self._environment.ears.pass_on(fact)

    def _pass_on_when_durable(self, fact: Fact) -> None:
        self._journal(Decided(self.name, (), facts=(fact,)))
