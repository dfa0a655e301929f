"""A session's household: the actors beneath it, and what follows from what they decided.

Queue, nursery and turn are started here, and watched. Each fact that was folded may call for the next
step: a turn for what waits, a result for whoever waits for it, the last word when all have spoken.
"""

from __future__ import annotations

from typing import Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal.child_record import at_work, names_for
from ..journal.codec import decode, encode
from ..journal.queue import QueueRecord
from ..journal.recovery import closing_messages
from ..machines.delegation import (
    CancelChildren,
    ChildReturned,
    CloseChild,
    EndChild,
    PassSteer,
    ResumeChildren,
    StartTalk,
)
from ..machines.delivery import Cause, Relation
from ..machines.facts import Noticed
from ..machines.messages import Compact, Finalize, QueueChange, Suspend
from ..machines.orders import (
    CutAnswer,
    Decided,
    Down,
    Enqueue,
    InterruptTurn,
    Journalled,
    Settle,
    Settled,
    StartNext,
    StoreBroke,
)
from .children.homecoming import Homecoming, seed
from .children.nursery import Nursery
from .mailbox import tell
from .pursuing import Pursuing
from .queue import Queue
from .supervisor import ChildSpec
from .turns.compacting import NOTHING, has_news
from .turns.purpose import compaction_order, purpose_of
from .turns.turn import Turn

__all__ = ["Household"]

CALL_ENDED = "a fault in the program ended it"


class Household(Pursuing):
    """A session's actors; the three types are what it starts, in the order in which they depend."""

    strategy = "rest_for_one"
    nursery_type: type[Nursery] = Nursery
    queue_type: type[Queue] = Queue
    turn_type: type[Turn] = Turn
    _newest: tuple[InterruptTurn, int] | None = None
    """The newest cancel that reaches children, and the epoch in which it was given."""
    _given: dict[str, str]
    """Receipts that are still to be journalled, and the keys of those who asked."""
    _crossed: tuple[InterruptTurn, ...] = ()
    """Orders to the running turn that another one followed before the turn had answered."""
    _unsettled: frozenset[str] = frozenset()
    """Who has still to say that nothing is left to decide."""

    def _start_household(self) -> None:
        self._given = {}
        self.start_child(ChildSpec("nursery", self._start_nursery))
        self.start_child(ChildSpec("queue", self._start_queue))

    def _stop_late_child(self, entry: e.ChildStarted) -> None:
        """Stop a child that was asked for before a cancel that reaches it, and came after."""
        raise NotImplementedError

    def _acknowledge(self, order: InterruptTurn, receipt: str) -> None:
        """Tell whoever gave an order what it got."""
        raise NotImplementedError

    # What follows ---------------------------------------------------------------------------------

    def _react(self, entry: e.Entry) -> None:
        if isinstance(entry, e.InterruptRequested | e.InterruptPlanned):
            self._given.pop(entry.receipt, None)
        self._follow_goal(entry)
        match entry:
            case e.TurnStarted():
                self._start_turn(entry)
                self.unstash()
            case e.Recovered():
                self._give_back_all()
                if self.record.state == "finalizing":
                    self._end_children(True, self.record.finalize_cause)
                    self._settle()
            case e.Interrupted() | e.InterruptPlanned():
                if isinstance(entry, e.InterruptPlanned):
                    self._newest = None  # who is asked for from now on is none of its business
                self._cancel, self._crossed = None, ()
                self.unstash()
            case e.InterruptRequested(turn=""):
                self._newest = None  # whoever was asked for before it has begun by now
            case e.Stopped(turn=""):
                self._start_next_if_idle()
            case e.TurnEnded() | e.Stopped() if not self._reverts_of(entry):
                self._go_on()
            case e.Queued(for_turn=turn) | e.SteerAddressed(turn=turn) if turn:
                if not getattr(entry, "child", ""):  # a result can wait for the end of an answer
                    self._offer_cut(entry.item)
                self._start_next_if_idle()
            case (
                e.QueueReleased()
                | e.QueueHeld()
                | e.Requeued()
                | e.Queued()
                | e.Kept()
                | e.Deferred()
            ):
                self._start_next_if_idle()
            case e.Offered(is_answered=False):
                self._start_talk(entry)
            case e.ChildStarted():
                self._stop_late_child(entry)
            case e.Withdrawn(item=item):
                self._end_talk(item)
            case e.ChildAdmitted() | e.ChildResumed() | e.ChildInterrupted() | e.ChildEnded():
                self._follow_child(entry)
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
            self._settle()
        self.unstash()
        if late is None:
            self._start_next_if_idle()
        else:
            self._too_late(late)

    def _too_late(self, order: InterruptTurn) -> None:
        """The turn ended by itself before the cancel reached it: what waits may be held, even so."""
        for one in (*self._crossed, order):
            self._given.pop(one.receipt, None)
            self._acknowledge(one, one.receipt)
        self._crossed = ()
        self._pass_on(Noticed("The turn had just ended by itself."))
        if self.record.state == "idle":
            self._shift("start")
            is_hold = self._environment.policy.after_interrupt == "hold"
            self._start_next(must_hold=is_hold or order.cause in (Cause.PARENT, Cause.BUDGET))

    # The end --------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Ask everybody for their last word."""
        self._unsettled = frozenset({"queue", "nursery"})
        self._last_settled.tell(Settle())
        self._nursery.tell(Settle())

    def _settled(self, message: Settled) -> None:
        """Write the last entry, once nobody has anything left to decide."""
        self._unsettled -= {message.sender}
        record = self.record
        if self._unsettled:
            return
        if record.state == "leaving":
            self._say(e.SessionSuspended())
        elif record.state == "finalizing":
            name = self._environment.finalize_id(record.id)
            self._say(e.SessionFinalized(name, record.finalize_cause or "crashed"))

    def _end_children(self, is_final: bool, cause: str) -> None:
        """The children go the way of their parent."""
        self._nursery.tell(Finalize(cause) if is_final else Suspend(cause))

    # Queue and turn -------------------------------------------------------------------------------

    def _start_queue(self) -> ActorRef[Any]:
        copy = decode(QueueRecord, encode(self.record.queue))
        old = self.children.get("queue")
        if old is not None:
            old.mailbox.purge(Journalled)  # the copy has them
        return self.queue_type.start(self.system, copy, self.actor_ref, self._environment)

    def _start_next_if_idle(self) -> None:
        if self._is_free and self.record.queue.next_item() is not None:
            self._shift("start")
            self._start_next()

    def _start_next(self, must_hold: bool = False) -> None:
        turn = f"t{self.record.turns_made + 1}"
        self._queue.tell(StartNext(turn, self.record.epoch + 1, must_hold))

    def _sum_up(self, message: Compact) -> dict[str, Any]:
        """Have the conversation summed up by a turn of its own, now or right after the one that runs."""
        if len(self.record.conversation) < 2:
            return {"ok": False, "reason": "there is nothing to sum up yet"}
        is_free = self._is_free
        if is_free and not has_news(self.record.conversation):
            return {"ok": False, "reason": NOTHING}
        if is_free:
            self._shift("start")
        self._queue.tell(compaction_order(message))
        if is_free:
            self._start_next()
        return {"ok": True, "runs": is_free}

    def _start_turn(self, entry: e.TurnStarted) -> None:
        record = self.record
        conversation = tuple(record.conversation)
        awaited = self._resumable(entry.resumes)

        account = self._environment.account
        account.seconds, account.since = record.seconds, self.system.now()
        purpose = purpose_of(entry.item, record)

        def start() -> ActorRef[Any]:
            return self.turn_type.start(
                self.system,
                entry.turn,
                entry.epoch,
                conversation,
                self.actor_ref,
                self._queue,
                self._environment,
                awaited,
                purpose=purpose,
            )

        self.start_child(ChildSpec("turn", start, "temporary"))
        if entry.resumes:
            self._nursery.tell(ResumeChildren(self._resumed(entry.resumes), entry.turn))

    # Children -------------------------------------------------------------------------------------

    def _start_nursery(self) -> ActorRef[Any]:
        old = self.children.get("nursery")
        if old is not None:
            old.mailbox.purge(Journalled)
        return self.nursery_type.start(self.system, self.record, self.actor_ref, self._environment)

    def _resumable(self, turn: str) -> tuple[str, ...]:
        """Name the children that go on with a turn which waited for them.

        One may be of a turn before it still: a crash came between two of them.
        """
        turns = self._resumed(turn)
        return tuple(
            one.name
            for one in self.record.children.values()
            if one.turn in turns
            and one.state == "interrupted"
            and one.relation == Relation.FOREGROUND_CHILD
        )

    def _resume_children(self) -> tuple[str, ...]:
        """Let those go on for which no turn waits; the others go on with theirs."""
        names = tuple(
            one.name
            for one in self.record.children.values()
            if one.state == "interrupted" and one.relation != Relation.FOREGROUND_CHILD
        )
        if names:
            self._nursery.tell(ResumeChildren((), ""))
        return names

    def _start_talk(self, entry: e.Offered) -> None:
        record = self.record
        said = seed(record.conversation)
        talk = StartTalk(entry.child, entry.item, entry.text, entry.user, record.epoch, said)
        self._nursery.tell(talk)

    def _end_talk(self, item: str) -> None:
        """Nobody wants the answer any more."""
        for child in at_work(self.record.children, Relation.SIDE_TALK):
            if child.item == item:
                self._nursery.tell(EndChild(child.name))

    def _follow_child(
        self, entry: e.ChildAdmitted | e.ChildResumed | e.ChildInterrupted | e.ChildEnded
    ) -> None:
        """Hand on what waits for a child, or give its result to whoever is there for it."""
        waiting = self.record.queue.handed_on(entry.child)
        if isinstance(entry, e.ChildAdmitted | e.ChildResumed):
            for item in waiting:
                steer = PassSteer(item.id, (entry.child,), item.text, item.user, item.attached)
                self._nursery.tell(steer)
            return
        if isinstance(entry, e.ChildEnded):
            for item in waiting:
                self._say(e.SteerArrived(item.id, entry.child))
        self._give_back(entry.child, entry.killed, entry.survivors)
        tell(self._turn, ChildReturned(entry.child, entry.killed, entry.survivors))
        if self.record.state not in ("leaving", "finalizing"):  # then it begins at the next start
            self._begin_reverts()
        if not self._must_wait():
            self.unstash()
        self._start_next_if_idle()

    def _give_back(
        self, name: str, killed: tuple[int, ...] = (), survivors: tuple[int, ...] = ()
    ) -> None:
        """Give a child's result to its call, its parent's next boundary, or whoever may want it."""
        coming = Homecoming(self.record, self._environment, self.record.children[name])
        answer = coming.answer(killed, survivors)
        if answer is not None:
            tell(self._turn, answer)
        order = coming.order()
        if order is not None:
            self._queue.tell(order)
        if isinstance(order, Enqueue) and not order.for_turn and coming.was_stopped:
            self._queue.tell(QueueChange("hold"))  # who was stopped with it does not go on by it

    def _give_back_all(self) -> None:
        """After a crash: results that had not reached anybody."""
        for child in self.record.children.values():
            if not child.is_at_work and child.state != "interrupted" and not child.is_returned:
                self._give_back(child.name)

    def _lose_children(self) -> None:
        """The nursery failed, and nobody hears its children any more: let go, they can be resumed."""
        for child in list(self.record.children.values()):
            lost = e.ChildInterrupted(child.name, CALL_ENDED, child.text)
            entries = (lost,) if child.is_at_work else ()
            self._journal(Decided(self.name, entries, (CloseChild(child.session),)))

    def _break(self, message: StoreBroke) -> None:
        """Let nobody work for a session that can't remember what they find."""
        super()._break(message)
        names = tuple(one.name for one in at_work(self.record.children))
        self._nursery.tell(CancelChildren(names, "parent", ""))

    # Failures -------------------------------------------------------------------------------------

    def _down(self, down: Down) -> None:
        if down.name == "nursery":
            self._lose_children()
        if down.name == "queue":
            self.children["queue"].mailbox.purge(StartNext)
            self._shift("nothing_to_start")
        self.handle_down(down)
        if down.name in ("goal", "queue"):
            self._goal_may_not_have_heard()
        if down.name in ("goal", "queue") and "queue" in self._unsettled:
            self._last_settled.tell(Settle())
        elif down.name in self._unsettled:
            self.children[down.name].ref.tell(Settle())
        self.unstash()
        self._start_next_if_idle()

    def child_ended(self, down: Down) -> None:
        """Journal the end of a turn whose actor failed; the session goes on."""
        if self._broken or self.record.unfinished is None:
            return
        reason = f"a fault in the program ended the turn ({down.reason or 'its queue failed'})"
        messages = closing_messages(self.record)
        for effect in self._stopping():
            self._perform(effect)
        turn, hint = self.record.turn, "say it again, or ask what was done"
        self._say(e.TurnEnded(turn, "failed", reason, hint, messages))

    def _waited_for(self) -> list[str]:
        """Name the children for which the running turn waits."""
        return names_for(self.record.children, self.record.turn)
