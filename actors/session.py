"""The session actor: supervisor, router, and the one place where a session's journal is ordered.

What people say arrives here, classified. The first routing table says what it is, given what the
session is doing; the second says who hears of it. The queue and the turn decide; what they decide
comes back as entries, is folded into the record, numbered, and handed to the journal. Only when it is
durable is it told to anybody, and only then, if no cancel came in between, are its effects performed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..journal import entries as e
from ..journal.child_record import at_work
from ..journal.permission_entries import AllowanceForgotten, AllowanceGiven
from ..journal.recovery import recovered
from ..machines.delegation import (
    CancelChildren,
    DetachChildren,
    EndChild,
    Offer,
    Recall,
    SideTalk,
)
from ..machines.delivery import Cause, Delivery, Relation, deliver
from ..machines.disposition import Action, DispositionRow, Intent, Situation
from ..machines.messages import (
    Allow,
    Answer,
    Compact,
    Finalize,
    Interrupt,
    Lane,
    PolicyChange,
    QueueChange,
    QueueImport,
    ResumeQueue,
    Suspend,
    TakeBack,
    UserMessage,
)
from ..machines.orders import (
    Committed,
    Decided,
    Down,
    Inspect,
    InterruptTurn,
    NothingToStart,
    Settled,
    StoreBroke,
)
from ..machines.participation import CallOff
from ..machines.results import RestoreCounted, RestoreEnded
from ..machines.session import SESSION
from ..machines.step import Refusal, Step, step
from ..machines.subagent import meant
from .actor import Forward
from .household import Household
from .inspection import inspect_session
from .mailbox import tell
from .reception import (
    addressed,
    decided,
    enqueue_order,
    interrupt_order,
    is_asked_here,
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

__all__ = ["Session"]


ENDS = (Delivery.CANCEL, Delivery.FINALIZE)
BELOW = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)
OVERTAKEN_TALK = (Intent.CONVERSE, Intent.STEER_WORD, Intent.EXPLICIT_QUEUE)


class Session(Household):
    """One session, as people and other programs speak to it."""

    _cut = 0
    """What was said before this number, a cancel has overtaken."""

    def on_start(self) -> None:
        """Start the household, and put in order what a dead owner left. Nothing runs by itself."""
        self._start_household()
        record = self.record
        if record.seq == 0 or record.state == "finalized":
            return
        is_at_work = record.state not in ("idle", "suspended") or any(at_work(record.children))
        is_cut = record.queue.order or is_at_work
        self._say(recovered(record) if is_cut else e.SessionResumed())
        self._begin_reverts()

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
                self._settled(message)
            case Down():
                self._down(message)
            case e.SessionOpened():
                self._say(message)
                self.unstash()
            case Inspect():
                return inspect_session(self.record, self.mailbox, self.children)
            case RestoreCounted() | RestoreEnded():
                self._restored(message)
            case _ if self._broken:
                return self._turn_away(message, self._broken)
            case _ if self._must_wait():
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
            case QueueChange(op="steer"):
                return self._steer_waiting(message)
            case ResumeQueue(number=None):
                return Forward(self._queue, replace(message, children=self._resume_children()))
            case QueueChange() | QueueImport() | ResumeQueue() | Recall():
                return Forward(self._queue)
            case EndChild():
                return Forward(self._nursery)
            case SideTalk():
                self._side_talk(message)
            case Compact():
                return self._sum_up(message)
            case PolicyChange():
                self._say(e.PolicyChanged(message.busy_mode, message.is_auto_queue, message.routes))
            case TakeBack():
                return self._take_back()
            case Allow(tool, pattern, is_given):
                book = self._environment.toolbook
                (book.allow if is_given else book.disallow)(tool, pattern)
                self._say((AllowanceGiven if is_given else AllowanceForgotten)(tool, pattern))
            case Answer():
                is_own = is_asked_here(self.record, message.question)
                return Forward(self._turn if is_own and self._turn else self._nursery)
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
        is_named = message.to not in ("", "parent")
        doing = addressed(situation(self.record), message.to)
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
            case Action.STEER if is_named:
                self._steer_named(message, row)
            case Action.STEER:
                self._steer(message, row)
            case Action.INTERRUPT:
                self._wish(message, row.cause)
                self._cancel_by_message(message, row)
            case Action.REFUSE | Action.COMMAND:
                self._reject(row.ack or row.name, message.content, message.client_id)

    def _steer(self, message: UserMessage, row: DispositionRow) -> None:
        """Hand it to whoever the table names for its cause: the turn, or children of it."""
        names = () if row.cause == Cause.STEER else self._steered(row.cause)
        turn = "" if names else self.record.turn
        self._queue.tell(enqueue_order(message, row, "steer", for_turn=turn, for_children=names))

    def _steer_named(self, message: UserMessage, row: DispositionRow) -> None:
        """Hand it to the child that was named, whatever the session itself is doing."""
        names = self._steered(Cause.STEER_NAMED, message.to)
        if not names:
            self._reject("no_subagent", message.content, message.client_id)
            return
        self._queue.tell(enqueue_order(message, row, "steer", for_children=names))

    def _steered(self, cause: str, name: str = "") -> tuple[str, ...]:
        """Name the children that a steer reaches by the table; of these, if given, the one named."""
        reached = self._reached(cause, Delivery.STEER)
        return reached if name in ("", "all") else meant(reached, name)

    def _reached(self, cause: str, *what: Delivery) -> tuple[str, ...]:
        """Name the children at work that get any of these from a cause."""
        table = self._environment.deliveries
        return tuple(
            one.name
            for one in at_work(self.record.children)
            if deliver(table, cause, one.relation).action in what
        )

    def _steer_waiting(self, message: QueueChange) -> Any:
        """Steer by a message that waits: into the turn, or, while it waits for children, into those."""
        names: tuple[str, ...] = ()
        if message.to not in ("", "parent"):
            names = self._steered(Cause.STEER_NAMED, message.to)
            if not names:
                return {"ok": False, "reason": f"No subagent `{message.to}` works"}
        elif not message.to and situation(self.record) is Situation.DELEGATING:
            names = self._steered(Cause.STEER_THROUGH)
        return Forward(self._queue, replace(message, for_children=names))

    def _side_talk(self, message: SideTalk) -> None:
        before = known(self.record, message.client_id)
        if before is not None:
            self._pass_on_when_durable(before)
            return
        offer = Offer(message.text, "", message.user, message.client_id, is_answered=False)
        self._queue.tell(offer)

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
        receipt = self._receipt_of(message.client_id)
        if receipt:
            return {"ok": True, "interrupted": None, "receipt": receipt, "reason": "known already"}
        self._hold_what_replaces()
        record = self.record
        moved = step(SESSION, record.state, "interrupt")
        children = self._reached(message.cause, *ENDS)
        if not children and (isinstance(moved, Refusal) or moved.ignored):
            reason = moved.reason if isinstance(moved, Refusal) else moved.ignored
            return {"ok": True, "interrupted": None, "reason": reason}
        if message.turn and message.turn != record.turn:
            reason = f"turn {message.turn} has ended"
            return {"ok": True, "interrupted": None, "reason": reason}
        receipt, turn = self._next_receipt(message.client_id), record.turn if record.running else ""
        self._cut = max(self._cut, message.said)
        self._deliver_cancel(
            InterruptTurn(receipt, message.cause, record.turn, message.user, message.client_id)
        )
        stopped = {"interrupted": turn or None, "children": list(children), "receipt": receipt}
        return {"ok": True, **stopped}

    def _take_back(self) -> Any:
        """Queue an interrupting message after all; of any other message the queue knows."""
        now, turn = self.system.now(), self._turn
        planned = revoked(self.record, now)
        if planned and turn is not None:
            tell(turn, CallOff(planned))
        newest = newest_stop(self.record, now)
        if newest is None:
            return Forward(self._queue)
        key = f"undo-{newest.id}"
        self._queue.tell(replace(waiting_order(newest), client_id=key))
        stopped = None if planned else self.record.turns.get(newest.turn)
        return {"ok": True, "id": newest.id, "key": key, "offered": stopped and stopped.number}

    def _receipt_of(self, client_id: str) -> str:
        """Return what a stop with this key got when it came before, journalled or not."""
        given = (receipt for receipt, key in self._given.items() if key and key == client_id)
        return self.record.cancels.get(client_id) or next(given, "")

    def _next_receipt(self, client_id: str = "") -> str:
        """Return a receipt that nobody has; it is taken until its order is journalled, or dropped."""
        number = self.record.receipts + 1
        while f"i{number}" in self._given or f"i{number}" in self.record.interrupts:
            number += 1
        self._given[f"i{number}"] = client_id
        return f"i{number}"

    def _deliver_cancel(self, order: InterruptTurn) -> None:
        """Tell whom the table names. What people say next waits until the turn has answered."""
        record, table = self.record, self._environment.deliveries
        if any(deliver(table, order.cause, one).action in ENDS for one in BELOW):
            self._newest = order, record.epoch
        moved = step(SESSION, record.state, "interrupt")
        is_cancel = deliver(table, order.cause, Relation.SELF).action in ENDS
        is_cancel = is_cancel and order.turn == record.turn
        reached = self._reached(order.cause, *ENDS)
        waited = self._waited_for()
        if isinstance(moved, Step) and "interrupt_turn" in moved.effects and is_cancel:
            spared = [one for one in waited if one not in reached or self._is_detached(one)]
            stopped = [one for one in reached if one not in spared]
            calls = {one: record.children[one].call for one in waited}
            order = replace(
                order,
                spares=tuple(calls[one] for one in spared if calls[one]),
                companions=tuple(one for one in stopped if not calls.get(one)),
                is_talk=deliver(table, order.cause, Relation.FOREGROUND_CHILD).action not in ENDS,
            )
            if spared:
                self._nursery.tell(DetachChildren(tuple(spared)))
            self._cancel_children(order.companions, order)
            self._end_turn(order)
        elif reached and any(record.children[one].state != "stopping" for one in reached):
            self._cancel_children(reached, order, is_alone=True)
        else:
            self._given.pop(order.receipt, None)
            self._acknowledge(order, f"i{record.receipts}")

    def _cancel_children(
        self, names: tuple[str, ...], order: InterruptTurn, is_alone: bool = False
    ) -> None:
        if names:
            alone = order if is_alone else None
            self._nursery.tell(CancelChildren(names, order.cause, order.receipt, alone))

    def _stop_late_child(self, entry: e.ChildStarted) -> None:
        """Stop a child that was asked for before a cancel that reaches it, and came after."""
        order, epoch = self._newest or (None, 0)
        if order is not None and entry.epoch <= epoch:
            if entry.child in self._reached(order.cause, *ENDS):
                self._cancel_children((entry.child,), order)

    def _is_detached(self, name: str) -> bool:
        """Whether a child goes on by its agent's declaration when its parent's turn is stopped."""
        declared = self._environment.delegation.detached
        return self.record.children[name].agent in declared

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
        self._end_children(is_final, cause)
        self._say(e.SessionFinalizing(cause) if is_final else e.SessionLeaving(cause))
        if "interrupt_turn" in moved.effects:
            why = "finalize" if is_final else "signal"
            self._end_turn(InterruptTurn(self._next_receipt(), why, self.record.turn))
        elif "settle" in moved.effects:
            self._settle()

    def _acknowledge(self, order: InterruptTurn, receipt: str) -> None:
        if order.text:
            self._pass_on(told_of(order, receipt))
