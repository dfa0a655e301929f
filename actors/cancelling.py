"""How a session ends what runs: who hears of a stop, a receipt for each, and the way out.

Whatever the cause, the second routing table names whom it reaches; nothing here walks down to the
children by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..journal import entries as e
from ..journal.child_record import at_work
from ..machines.delegation import (
    CancelChildren,
    DetachChildren,
)
from ..machines.delivery import Cause, Delivery, Relation, deliver
from ..machines.disposition import DispositionRow
from ..machines.messages import (
    Interrupt,
    QueueChange,
    UserMessage,
)
from ..machines.orders import (
    InterruptTurn,
)
from ..machines.participation import CallOff
from ..machines.session import SESSION
from ..machines.step import Refusal, Step, step
from .actor import Forward
from .household import Household
from .mailbox import tell
from .reception import (
    interrupt_order,
    replacing_order,
    taken_back,
    told_of,
    what_is_left,
)

__all__ = ["ENDS", "Cancelling"]

ENDS = (Delivery.CANCEL, Delivery.FINALIZE)
"""What ends a turn or a child."""
BELOW = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)


class Cancelling(Household):
    """The side of a session that stops, leaves and finalizes."""

    _cut = 0
    """What was said before this number, a cancel has overtaken."""

    def _reached(self, cause: str, *what: Delivery) -> tuple[str, ...]:
        """Name the children at work that get any of these from a cause."""
        table = self._environment.deliveries
        return tuple(
            one.name
            for one in at_work(self.record.children)
            if deliver(table, cause, one.relation).action in what
        )

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
            if not message.turn and self._reaches_goal(message.cause):
                self._cut = max(self._cut, message.said)
                return self._pause_alone(message, self._next_receipt(message.client_id))
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
        planned, order, reply = taken_back(self.record, self.system.now())
        if planned:
            tell(self._turn, CallOff(planned))
        if order is None:
            return Forward(self._queue)
        self._queue.tell(order)
        return reply

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
            spared = [one for one in waited if one not in reached or self._goes_on(one, order)]
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
            self._stop_goal(order)
            self._end_turn(order)
        elif reached and any(record.children[one].state != "stopping" for one in reached):
            self._cancel_children(reached, order, is_alone=True)
            self._stop_goal(order)
        elif self._reaches_goal(order.cause):
            self._stop_goal_alone(order)
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

    def _goes_on(self, name: str, order: InterruptTurn) -> bool:
        """Whether a child goes on by its agent's declaration when the turn that waits for it stops.

        Not when its files are to come back, and not when all below somebody above is stopped.
        """
        if self._is_revert_wanted or order.cause == Cause.PARENT:
            return False
        return self.record.children[name].agent in self._environment.delegation.detached

    def _end_turn(self, order: InterruptTurn) -> None:
        """Give the turn the order; if it has just ended, the news of that is on its way."""
        if self._cancel is not None:
            self._crossed = (*self._crossed, self._cancel)
        self._cancel = order
        tell(self._turn, order)

    def _leave(self, event: str, cause: str) -> None:
        moved = step(SESSION, self.record.state, event)
        if isinstance(moved, Refusal) or moved.ignored:
            return
        is_final = event == "finalize"
        self._end_children(is_final, cause)
        self._end_goal(is_final)
        self._say(e.SessionFinalizing(cause) if is_final else e.SessionLeaving(cause))
        if "interrupt_turn" in moved.effects:
            why = "finalize" if is_final else "signal"
            self._end_turn(InterruptTurn(self._next_receipt(), why, self.record.turn))
        elif "settle" in moved.effects:
            self._settle()

    def _acknowledge(self, order: InterruptTurn, receipt: str) -> None:
        if order.text:
            self._pass_on(told_of(order, receipt))
