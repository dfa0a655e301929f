"""The session actor: supervisor, router, and the one place where a session's journal is ordered.

What people say arrives here, classified. The first routing table says what it is, given what the
session is doing; the second says who hears of it. The queue and the turn decide; what they decide
comes back as entries, is folded into the record, numbered, and handed to the journal. Only when it is
durable is it told to anybody, and only then, if no cancel came in between, are its effects performed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal.codec import decode, encode
from ..journal.queue import QueueRecord
from ..journal.recovery import closing_messages, recovered
from ..machines.delivery import Delivery, Relation, deliver
from ..machines.disposition import Action, DispositionRow, Intent, Situation
from ..machines.facts import Noticed
from ..machines.messages import (
    Answer,
    Committed,
    CutAnswer,
    Decided,
    Down,
    Finalize,
    Inspect,
    Interrupt,
    InterruptTurn,
    Journalled,
    Lane,
    NothingToStart,
    PolicyChange,
    QueueChange,
    QueueImport,
    ResumeQueue,
    Settle,
    Settled,
    StartNext,
    StoreBroke,
    Suspend,
    TakeBack,
    UserMessage,
)
from ..machines.participation import CallOff
from ..machines.session import SESSION
from ..machines.step import Refusal, Step, step
from .actor import Forward
from .inspection import inspect_session
from .keeper import Keeper
from .mailbox import tell
from .queue import Queue
from .reception import (
    decided,
    enqueue_order,
    interrupt_order,
    known,
    newest_stop,
    policy_of,
    replacing_order,
    revoked,
    situation,
    told_of,
    waiting_order,
    what_is_left,
)
from .supervisor import ChildSpec
from .turn import Turn

__all__ = ["Session"]


OVERTAKEN_TALK = (Intent.CONVERSE, Intent.STEER_WORD, Intent.EXPLICIT_QUEUE)


class Session(Keeper):
    """One session; `queue_type` and `turn_type` are what it starts."""

    strategy = "rest_for_one"
    queue_type: type[Queue] = Queue
    turn_type: type[Turn] = Turn
    _cut = 0
    """What was said before this number, a cancel has overtaken."""

    def on_start(self) -> None:
        """Start the queue, and put in order what a dead owner left. Nothing runs by itself."""
        self.start_child(ChildSpec("queue", self._start_queue))
        record = self.record
        if record.seq == 0 or record.state == "finalized":
            return
        if record.queue.order or record.state not in ("idle", "suspended"):
            self._say(recovered(record))
        else:
            self._say(e.SessionResumed())

    def on_receive(self, message: Any) -> Any:
        """Route. What people say waits while it is undecided what runs."""
        match message:
            case Decided():
                self._journal(message)
            case Committed(seq):
                self._release(seq)
            case StoreBroke():
                self._break(message)
            case NothingToStart():
                self._shift("nothing_to_start")
                self.unstash()
            case Settled():
                self._farewell()
            case Down():
                self._down(message)
            case e.SessionOpened():
                self._say(message)
                self.unstash()
            case Inspect():
                return inspect_session(self.record, self.mailbox, self.children)
            case _ if self._broken:
                return self._turn_away(message, self._broken)
            case _ if self.record.state == "starting" or self._cancel or not self.record.seq:
                return self.stash()
            case _ if self._is_gone(message):
                return self._turn_away(message, "session_suspended")
            case _:
                return self._obey(message)
        return None

    def _is_gone(self, message: Any) -> bool:
        """Whether nobody is there any more: all that may still be said is that it ends for good."""
        return self.record.state in ("leaving", "suspended") and not isinstance(message, Finalize)

    def _obey(self, message: Any) -> Any:
        match message:
            case UserMessage():
                self._route(message)
            case Interrupt():
                return self._interrupt(message)
            case QueueChange() | QueueImport() | ResumeQueue():
                return Forward(self._queue)
            case PolicyChange():
                self._say(e.PolicyChanged(message.busy_mode, message.is_auto_queue))
            case TakeBack():
                return self._take_back()
            case Answer():
                turn = self._turn
                return Forward(turn) if turn else {"ok": False, "reason": "nothing is asked"}
            case Suspend():
                self._leave("suspend", message.cause)
            case Finalize():
                self._leave("finalize", message.cause)
            case _:
                return super().on_receive(message)
        return {"ok": True}

    # What people say ------------------------------------------------------------------------------

    def _route(self, message: UserMessage) -> None:
        before = known(self.record, message.client_id)
        if before is not None:
            self._pass_on_when_durable(before)
            return
        policy = policy_of(self.record, self._environment.policy)
        doing = situation(self.record)
        if message.intent in OVERTAKEN_TALK and 0 < message.said < self._cut:
            doing = Situation.OVERTAKEN
        row, message = decided(self._environment.dispositions, message, doing, policy)
        match row.action:
            case Action.RUN if message.type != "normal" and self.mailbox.depth()[Lane.DATA]:
                tell(self.actor_ref, replace(message, type="normal"))  # behind what came before it
            case Action.RUN:
                self._shift("start")
                self._queue.tell(enqueue_order(message, row, "turn", is_next=True))
                self._start_next()
            case Action.QUEUE:
                is_next = doing is Situation.INTERRUPTING
                self._queue.tell(enqueue_order(message, row, "queue", is_next=is_next))
            case Action.STEER:
                turn = self.record.turn
                self._queue.tell(enqueue_order(message, row, "steer", for_turn=turn))
            case Action.INTERRUPT:
                self._cancel_by_message(message, row)
            case Action.REFUSE | Action.COMMAND:
                self._reject(row.ack or row.name, message.content, message.client_id)

    def _turn_away(self, message: Any, reason: str) -> dict[str, Any]:
        if isinstance(message, UserMessage):
            self._reject(reason, message.content, message.client_id)
        return {"ok": False, "reason": reason}

    # Cancels --------------------------------------------------------------------------------------

    def _cancel_by_message(self, message: UserMessage, row: DispositionRow) -> None:
        policy = self._environment.policy
        order = interrupt_order(
            self._next_receipt(), self.record.turn, message, row, policy.interrupt_at
        )
        self._cut = max(self._cut, message.said)
        left = what_is_left(message)
        if left:
            self._queue.tell(replacing_order(message, row, left, order))
        else:
            self._hold_what_replaces()
            self._deliver_cancel(order)

    def _hold_what_replaces(self) -> None:
        """A bare stop means what was to replace the running turn, too."""
        if self._environment.policy.after_interrupt == "hold":
            self._queue.tell(QueueChange("hold_next"))

    def _interrupt(self, message: Interrupt) -> dict[str, Any]:
        receipt = self.record.cancels.get(message.client_id)
        if receipt is not None:
            return {"ok": True, "interrupted": None, "receipt": receipt, "reason": "known already"}
        self._hold_what_replaces()
        moved = step(SESSION, self.record.state, "interrupt")
        if isinstance(moved, Refusal) or moved.ignored:
            reason = moved.reason if isinstance(moved, Refusal) else moved.ignored
            return {"ok": True, "interrupted": None, "reason": reason}
        if message.turn and message.turn != self.record.turn:
            reason = f"turn {message.turn} has ended"
            return {"ok": True, "interrupted": None, "reason": reason}
        receipt, turn = self._next_receipt(), self.record.turn
        self._cut = max(self._cut, message.said)
        self._deliver_cancel(
            InterruptTurn(receipt, message.cause, turn, message.user, message.client_id)
        )
        return {"ok": True, "interrupted": self.record.turn, "receipt": receipt}

    def _take_back(self) -> Any:
        """Queue an interrupting message after all; of any other message the queue knows."""
        now, turn = self.system.now(), self._turn
        planned = revoked(self.record, now)
        if planned and turn is not None:
            tell(turn, CallOff(planned))
        newest = newest_stop(self.record, now)
        if newest is None:
            return Forward(self._queue)
        self._queue.tell(waiting_order(newest))
        stopped = None if planned else self.record.turns.get(newest.turn)
        return {"ok": True, "id": newest.id, "number": None, "offered": stopped and stopped.number}

    def _next_receipt(self) -> str:
        return f"i{self.record.receipts + 1}"

    def _deliver_cancel(self, order: InterruptTurn) -> None:
        """Tell whom the table names. What people say next waits until the turn has answered."""
        moved = step(SESSION, self.record.state, "interrupt")
        row = deliver(self._environment.deliveries, order.cause, Relation.SELF)
        is_cancel = row.action in (Delivery.CANCEL, Delivery.FINALIZE)
        is_cancel = is_cancel and order.turn == self.record.turn
        if isinstance(moved, Step) and "interrupt_turn" in moved.effects and is_cancel:
            self._end_turn(order)
        else:
            self._acknowledge(order, f"i{self.record.receipts}")

    def _end_turn(self, order: InterruptTurn) -> None:
        """Give the turn the order; if it has just ended, the news of that is on its way."""
        self._cancel = order
        turn = self._turn
        if turn is not None:
            tell(turn, order)

    def _leave(self, event: str, cause: str) -> None:
        moved = step(SESSION, self.record.state, event)
        if isinstance(moved, Refusal) or moved.ignored:
            return
        is_final = event == "finalize"
        self._say(e.SessionFinalizing(cause) if is_final else e.SessionLeaving(cause))
        if "interrupt_turn" in moved.effects:
            why = "finalize" if is_final else "signal"
            self._end_turn(InterruptTurn(self._next_receipt(), why, self.record.turn))
        elif "settle" in moved.effects:
            self._queue.tell(Settle())

    def _farewell(self) -> None:
        """Write the last entry, now that nobody has anything left to decide."""
        record = self.record
        if record.state == "leaving":
            self._say(e.SessionSuspended())
        elif record.state == "finalizing":
            name = self._environment.finalize_id(record.id)
            self._say(e.SessionFinalized(name, record.finalize_cause or "crashed"))

    # The journal ----------------------------------------------------------------------------------

    def _react(self, entry: e.Entry) -> None:
        match entry:
            case e.TurnStarted():
                self._start_turn(entry)
                self.unstash()
            case e.Recovered():
                if self.record.state == "finalizing":
                    self._queue.tell(Settle())
            case e.Interrupted() | e.InterruptPlanned():
                self._cancel = None
                self.unstash()
            case e.TurnEnded() | e.Stopped():
                self._go_on()
            case e.Queued(for_turn=turn) | e.SteerAddressed(turn=turn) if turn:
                self._offer_cut(entry.item)
                self._start_next_if_idle()
            case e.QueueReleased() | e.QueueHeld() | e.Requeued() | e.Queued() | e.Deferred():
                self._start_next_if_idle()
            case _:
                pass

    def _offer_cut(self, item: str) -> None:
        """Tell the turn that a steer waits which need not wait for the end of an answer."""
        turn = self._turn
        if turn is not None and self._environment.policy.steer_while_streaming == "cut":
            tell(turn, CutAnswer(item))

    def _go_on(self) -> None:
        """After a turn: leave if that was asked for, else run what is next."""
        late, self._cancel = self._cancel, None
        if self.record.state in ("leaving", "finalizing"):
            self._queue.tell(Settle())
        self.unstash()
        if late is None:
            self._start_next_if_idle()
        else:
            self._too_late(late)

    def _too_late(self, order: InterruptTurn) -> None:
        """The turn ended by itself before the cancel reached it: what waits may be held, even so."""
        self._acknowledge(order, order.receipt)
        self._pass_on(Noticed("The turn had just ended by itself."))
        if self.record.state == "idle":
            self._shift("start")
            self._start_next(must_hold=self._environment.policy.after_interrupt == "hold")

    def _acknowledge(self, order: InterruptTurn, receipt: str) -> None:
        if order.text:
            self._pass_on(told_of(order, receipt))

    # Children -------------------------------------------------------------------------------------

    def _start_queue(self) -> ActorRef[Any]:
        copy = decode(QueueRecord, encode(self.record.queue))
        old = self.children.get("queue")
        if old is not None:
            old.mailbox.purge(Journalled)  # the copy has them
        return self.queue_type.start(self.system, copy, self.actor_ref, self._environment)

    def _start_next_if_idle(self) -> None:
        if self.record.state == "idle" and self.record.queue.next_item() is not None:
            self._shift("start")
            self._start_next()

    def _start_next(self, must_hold: bool = False) -> None:
        turn = f"t{self.record.turns_made + 1}"
        self._queue.tell(StartNext(turn, self.record.epoch + 1, must_hold))

    def _start_turn(self, entry: e.TurnStarted) -> None:
        record = self.record
        conversation = tuple(record.conversation)

        def start() -> ActorRef[Any]:
            return self.turn_type.start(
                self.system,
                entry.turn,
                entry.epoch,
                conversation,
                self.actor_ref,
                self._queue,
                self._environment,
            )

        self.start_child(ChildSpec("turn", start, "temporary"))

    def _down(self, down: Down) -> None:
        if down.name == "queue":
            self.children["queue"].mailbox.purge(StartNext)
            self._shift("nothing_to_start")
        self.handle_down(down)
        if down.name == "queue" and self.record.unfinished is None:
            self._queue.tell(Settle())
        self.unstash()
        self._start_next_if_idle()

    def child_ended(self, down: Down) -> None:
        """Journal the end of a turn whose actor failed; the session goes on."""
        if self._broken or self.record.unfinished is None:
            return
        reason = f"a fault in the program ended the turn ({down.reason or 'its queue failed'})"
        messages = closing_messages(self.record)
        for effect in self._stopping():
            self._environment.perform(effect, None)
        turn, hint = self.record.turn, "say it again, or ask what was done"
        self._say(e.TurnEnded(turn, "failed", reason, hint, messages))
