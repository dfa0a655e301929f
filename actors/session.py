"""The session actor: supervisor, router, and the one place where a session's journal is ordered.

What people say arrives here, classified. The first routing table says what it is, given what the
session is doing; the second says who hears of it. The queue and the turn decide; what they decide
comes back as entries, is folded into the record, numbered, and handed to the journal. Only when it is
durable is it told to anybody, and only then, if no cancel came in between, are its effects performed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal.codec import decode, encode, encode_entry
from ..journal.record import QueueRecord, SessionRecord, apply
from ..journal.recovery import closing_messages, recovered
from ..journal.store import StoredEntry
from ..machines.delivery import Delivery, Relation, deliver
from ..machines.disposition import Action, DispositionRow, Situation, dispose
from ..machines.effects import CancelModel, Effect, StopTool
from ..machines.facts import MessageKnown, MessageRejected, Noticed, StoreLost
from ..machines.messages import (
    Answer,
    Committed,
    Decided,
    Down,
    Enqueue,
    Finalize,
    Inspect,
    Interrupt,
    InterruptTurn,
    Journalled,
    NothingToStart,
    QueueChange,
    ResumeQueue,
    StartNext,
    StoreBroke,
    Suspend,
    UserMessage,
)
from ..machines.session import SESSION
from ..machines.step import Refusal, Step, step
from .actor import Forward
from .inspection import inspect_session
from .mailbox import Mailbox
from .queue import Queue
from .supervisor import ChildSpec, Supervisor
from .turn import Turn

if TYPE_CHECKING:
    from .environment import Environment
    from .system import ActorSystem

__all__ = ["Session", "situation"]

NAMES_THE_QUEUE = (
    e.TurnEnded,
    e.Interrupted,
    e.ProgressMade,
    e.Recovered,
    e.SessionFinalized,
)


@dataclass(frozen=True, slots=True)
class Held:
    """What may be told and done once entry `seq` is durable."""

    seq: int
    told: tuple[Any, ...]
    effects: tuple[Effect, ...]


class Session(Supervisor):
    """One session. `record` is the fold of everything decided so far, durable or about to be."""

    strategy = "rest_for_one"

    def __init__(
        self, system: ActorSystem, record: SessionRecord, environment: Environment
    ) -> None:
        super().__init__(system)
        self.record = record
        self._environment = environment
        self._held: deque[Held] = deque()
        self._broken = ""
        self._cancel: InterruptTurn | None = None

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
            case Down():
                self._down(message)
            case e.SessionOpened():
                self._say(message)
            case Inspect():
                return inspect_session(self.record, self.children)
            case _ if self._broken:
                return self._turn_away(message)
            case _ if self.record.state == "starting" or self._cancel:
                return self.stash()
            case _:
                return self._obey(message)
        return None

    def _obey(self, message: Any) -> Any:
        match message:
            case UserMessage():
                self._route(message)
            case Interrupt():
                return self._interrupt(message)
            case QueueChange() | ResumeQueue():
                return Forward(self._queue)
            case Answer():
                turn = self.children.get("turn")
                return Forward(turn.ref) if turn else {"ok": False, "reason": "nothing is asked"}
            case Suspend():
                self._leave("suspend", message.cause)
            case Finalize():
                self._leave("finalize", message.cause)
            case _:
                return super().on_receive(message)
        return {"ok": True}

    # What people say ------------------------------------------------------------------------------

    def _route(self, message: UserMessage) -> None:
        if message.client_id and message.client_id in self.record.queue.clients:
            self._known(message)
            return
        policy = self._environment.policy
        row = dispose(
            self._environment.dispositions,
            message.intent,
            situation(self.record),
            policy.busy_mode,
            policy.strategy,
            "on" if policy.is_auto_queue else "off",
        )
        match row.action:
            case Action.RUN:
                self._shift("start")
                self._enqueue(message, row, "turn", is_next=True)
                self._start_next()
            case Action.QUEUE:
                self._enqueue(message, row, "queue", is_next=self.record.state == "interrupting")
            case Action.STEER:
                self._enqueue(message, row, "steer", for_turn=self.record.turn)
            case Action.INTERRUPT:
                self._cancel_by_message(message, row)
            case Action.REFUSE | Action.COMMAND:
                fact = MessageRejected(row.ack or row.name, message.content, message.client_id)
                self._pass_on(fact)

    def _enqueue(
        self,
        message: UserMessage,
        row: DispositionRow,
        said_as: str,
        is_next: bool = False,
        for_turn: str = "",
    ) -> None:
        self._queue.tell(
            Enqueue(
                message.content,
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
        )

    def _known(self, message: UserMessage) -> None:
        name = self.record.queue.clients[message.client_id]
        item = self.record.queue.items.get(name)
        said_as, number = (item.said_as, item.number) if item else ("turn", None)
        self._pass_on(MessageKnown(name, said_as, number, message.client_id))

    def _turn_away(self, message: Any) -> dict[str, Any]:
        if isinstance(message, UserMessage):
            self._pass_on(MessageRejected(self._broken, message.content, message.client_id))
        return {"ok": False, "reason": self._broken}

    # Cancels --------------------------------------------------------------------------------------

    def _cancel_by_message(self, message: UserMessage, row: DispositionRow) -> None:
        order = InterruptTurn(
            self._next_receipt(),
            row.cause,
            message.user,
            message.client_id,
            message.matched,
            row.name,
            message.content,
        )
        self._deliver_cancel(order)
        if message.then:
            self._enqueue(message, row, "turn", is_next=True)

    def _interrupt(self, message: Interrupt) -> dict[str, Any]:
        moved = step(SESSION, self.record.state, "interrupt")
        if isinstance(moved, Refusal) or moved.ignored:
            reason = moved.reason if isinstance(moved, Refusal) else moved.ignored
            return {"ok": True, "interrupted": None, "reason": reason}
        if message.turn and message.turn != self.record.turn:
            reason = f"turn {message.turn} has ended"
            return {"ok": True, "interrupted": None, "reason": reason}
        receipt = self._next_receipt()
        self._deliver_cancel(
            InterruptTurn(receipt, message.cause, message.user, message.client_id)
        )
        return {"ok": True, "interrupted": self.record.turn, "receipt": receipt}

    def _next_receipt(self) -> str:
        return f"i{self.record.receipts + 1}"

    def _deliver_cancel(self, order: InterruptTurn) -> None:
        """Tell whom the table names. What people say next waits until the turn has answered."""
        moved = step(SESSION, self.record.state, "interrupt")
        row = deliver(self._environment.deliveries, order.cause, Relation.SELF)
        turn = self.children.get("turn")
        is_cancel = row.action in (Delivery.CANCEL, Delivery.FINALIZE)
        if isinstance(moved, Step) and "interrupt_turn" in moved.effects and turn and is_cancel:
            self._cancel = order
            turn.ref.tell(order)
        else:
            self._acknowledge(order)

    def _leave(self, event: str, cause: str) -> None:
        moved = step(SESSION, self.record.state, event)
        if isinstance(moved, Refusal) or moved.ignored:
            return
        is_final = event == "finalize"
        if moved.state in ("suspended", "finalized"):
            self._say(self._last_entry(is_final, cause))
            return
        self._say(e.SessionFinalizing(cause) if is_final else e.SessionLeaving(cause))
        if "interrupt_turn" in moved.effects and (turn := self.children.get("turn")):
            cause_of_cancel = "finalize" if is_final else "signal"
            self._cancel = InterruptTurn(self._next_receipt(), cause_of_cancel)
            turn.ref.tell(self._cancel)

    def _last_entry(self, is_final: bool, cause: str) -> e.Entry:
        if is_final:
            return e.SessionFinalized(self._environment.finalize_id(self.record.id), cause)
        return e.SessionSuspended(cause)

    # The journal ----------------------------------------------------------------------------------

    def _say(self, entry: e.Entry) -> None:
        self._journal(Decided(self.name, (entry,)))

    def _journal(self, decided: Decided) -> None:
        """Fold, number and hand to the journal; hold back what may only be told when durable."""
        for effect in decided.urgent:
            self._perform(effect)
        for entry in decided.entries:
            self._fold(entry, decided.sender)
        if decided.effects:
            self._held.append(Held(self.record.seq, (), decided.effects))
        for entry in decided.entries:
            self._react(entry)

    def _fold(self, entry: e.Entry, sender: str) -> None:
        record, now = self.record, self.system.now()
        if isinstance(entry, e.LateResult) and record.state == "finalized":
            return
        seq = record.seq + 1
        apply(record, entry, seq, now)
        told = self._environment.ears.hear(entry, seq, now, record)
        self._held.append(Held(seq, told, ()))
        self._environment.journal.append(StoredEntry(seq, now, encode_entry(entry)), record)
        if sender != "queue" and isinstance(entry, NAMES_THE_QUEUE):
            self._queue.tell(Journalled(entry))

    def _react(self, entry: e.Entry) -> None:
        match entry:
            case e.TurnStarted():
                self._start_turn(entry)
                self.unstash()
            case e.Recovered():
                if self.record.state == "finalized":
                    self._say(self._last_entry(True, self.record.finalize_cause or "crashed"))
            case e.InterruptRequested():
                self._cancel = None
                self.unstash()
            case e.TurnEnded() | e.Stopped():
                self._go_on()
            case e.QueueReleased() | e.QueueHeld() | e.Requeued() | e.Queued():
                self._start_next_if_idle()
            case _:
                pass

    def _go_on(self) -> None:
        """After a turn: leave if that was asked for, else run what is next."""
        record, late = self.record, self._cancel
        self._cancel = None
        if record.state == "suspended":
            self._say(e.SessionSuspended())
        elif record.state == "finalized":
            self._say(self._last_entry(True, record.finalize_cause))
        self.unstash()
        if late is None:
            self._start_next_if_idle()
        else:
            self._too_late(late)

    def _too_late(self, order: InterruptTurn) -> None:
        """The turn ended by itself before the cancel reached it: nothing else may start, either."""
        self._acknowledge(order)
        self._pass_on(Noticed("The turn had just ended by itself."))
        self._queue.tell(QueueChange("hold"))

    def _acknowledge(self, order: InterruptTurn) -> None:
        if order.text:
            self._pass_on(
                MessageKnown(
                    order.receipt, "interrupt", None, order.client_id, order.matched, order.rule
                )
            )

    def _release(self, seq: int) -> None:
        """Everything up to `seq` is durable: tell it, and perform what no cancel has overtaken."""
        held = self._held
        while held and held[0].seq <= seq:
            one = held.popleft()
            self._environment.ears.tell(one.told)
            for effect in one.effects:
                self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        is_stale = not isinstance(effect, CancelModel | StopTool) and (
            effect.epoch != self.record.epoch
        )
        turn = self.children.get("turn")
        if not is_stale and turn is not None:
            self._environment.perform(effect, turn.ref)

    def _break(self, message: StoreBroke) -> None:
        """Fail loudly: nothing that is not durable is told, and nothing more is accepted."""
        self._broken = message.reason
        self._held.clear()
        if self.record.running is not None:
            for effect in self._stopping():
                self._perform(effect)
        code = "lease_lost" if message.is_lease_lost else "store_failed"
        self._pass_on(StoreLost(code, message.reason, message.hint))

    # Children -------------------------------------------------------------------------------------

    @property
    def _queue(self) -> ActorRef[Any]:
        return self.children["queue"].ref

    def _start_queue(self) -> ActorRef[Any]:
        copy = decode(QueueRecord, encode(self.record.queue))
        old = self.children.get("queue")
        if old is not None:
            assert isinstance(old.ref.actor_inbox, Mailbox)
            old.ref.actor_inbox.purge(Journalled)
        return Queue.start(self.system, copy, self.actor_ref, self._environment)

    def _start_next_if_idle(self) -> None:
        if self.record.state == "idle" and self.record.queue.next_item() is not None:
            self._shift("start")
            self._start_next()

    def _start_next(self) -> None:
        turn = f"t{self.record.turns_made + 1}"
        self._queue.tell(StartNext(turn, self.record.epoch + 1))

    def _start_turn(self, entry: e.TurnStarted) -> None:
        record = self.record
        conversation = tuple(record.conversation)

        def start() -> ActorRef[Any]:
            return Turn.start(
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
        if down.name == "queue" and self.record.state == "starting":
            self._shift("nothing_to_start")
        self.handle_down(down)
        self.unstash()

    def child_ended(self, down: Down) -> None:
        """Journal the end of a turn whose actor failed; the session goes on."""
        running = self.record.running
        if down.name != "turn" or running is None or self._broken:
            return
        reason = f"a fault in the program ended the turn ({down.reason or 'its queue failed'})"
        messages = closing_messages(self.record)
        for effect in self._stopping():
            self._environment.perform(effect, None)
        self._say(e.TurnEnded(running.id, "failed", reason, "`/resume` or say it again", messages))

    def _stopping(self) -> list[Effect]:
        turn = self.record.turns[self.record.turn]
        calls = [one.id for one in turn.calls.values() if one.state == "running"]
        stops: list[Effect] = [StopTool(turn.id, self.record.epoch, call) for call in calls]
        return [CancelModel(turn.id), *stops]

    def _shift(self, event: str) -> None:
        moved = step(SESSION, self.record.state, event)
        if not isinstance(moved, Refusal):
            self.record.state = moved.state

    def _pass_on(self, fact: Any) -> None:
        self._environment.ears.pass_on(fact)


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
