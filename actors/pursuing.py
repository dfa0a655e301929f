"""A session as far as it works for a goal: when it is at rest, whom a cancel reaches, and mid-turn rules.

The goal's actor decides; it is started when a goal is first spoken of. The session tells it what its
turns did, and, whenever nothing runs and nothing will, that this is a boundary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal import goal_entries as g
from ..journal.codec import decode, encode
from ..journal.goal_record import GoalsRecord
from ..journal.queue import ItemRecord
from ..machines.conversation import ChatMessage
from ..machines.delivery import Cause, Delivery, Relation, deliver
from ..machines.messages import Interrupt
from ..machines.orders import Decided, InterruptTurn, Journalled
from ..machines.pursuit import (
    AskJudge,
    AwaitCondition,
    Catch,
    Caught,
    ChangeGoal,
    CountChanges,
    GoalEffect,
    GoalTimer,
    Rested,
    RunGate,
    SetGoal,
    StopGoal,
    StopJudging,
    Wanted,
)
from .actor import Forward
from .goals.goal import Goal
from .reverting import Reverting
from .supervisor import ChildSpec
from .turns.entry import requested

__all__ = ["Pursuing"]

CONCERNS = (
    e.Queued,
    e.Withdrawn,
    e.TurnStarted,
    e.Answered,
    e.TurnEnded,
    e.Interrupted,
)
"""What a goal has to hear of: what it costs, and that somebody said something."""
ENDS = (Delivery.CANCEL, Delivery.FINALIZE)
HAVE_RUN = ("running", "stopping", "done", "failed", "timed_out", "killed", "unknown")
NEWEST = 60
"""Messages, newest last, of which a judge is told what fits."""


class Pursuing(Reverting):
    """A session's goals; `goal_type` is what it starts for them.

    `_told` numbers what the goal was told that may begin or end its turns, of which `_last_stop` ends
    them; `_heard` is up to where it has decided.
    """

    goal_type: type[Goal] = Goal
    _told = 0
    _last_stop = 0
    _heard = 0

    def on_receive(self, message: Any) -> Any:
        """Take in what people want of goals."""
        match message:
            case SetGoal() | ChangeGoal() if self.record.state in ("finalizing", "finalized"):
                return {"ok": False, "reason": "the session has ended for good"}
            case SetGoal(is_next=False) | ChangeGoal(op="resume") if self.record.running:
                return {"ok": False, "reason": "a turn runs: `/stop` ends it", "is_busy": True}
            case SetGoal() | ChangeGoal():
                self._told += 1
                return Forward(self._goal, Wanted(message, self._told))
            case _:
                return super().on_receive(message)

    def _journal(self, decided: Decided) -> None:
        super()._journal(decided)
        self._pursue()

    # The actor ------------------------------------------------------------------------------------

    def _start_next_if_idle(self) -> None:
        """Run what is next, if nothing runs."""
        raise NotImplementedError

    def _goal_has_heard(self, number: int) -> None:
        """Go on with what had to wait: all that the goal decided until now is in the record."""
        self._heard = max(self._heard, number)
        self.unstash()
        self._start_next_if_idle()
        self._pursue()

    def _goal_may_not_have_heard(self) -> None:
        """Goal or queue has failed, and what it was told may be lost with it: wait for nothing."""
        self._heard = self._told

    @property
    def _is_goal_deciding(self) -> bool:
        return self._heard < self._told

    def _must_wait(self) -> bool:
        """Whether what is said must wait, so that it finds what was wanted of a goal before it."""
        return super()._must_wait() or self._is_goal_deciding

    @property
    def _is_free(self) -> bool:
        """Whether a turn may begin; none while a stop, or another word, is on its way to the goal."""
        return super()._is_free and not self._is_goal_deciding

    @property
    def _goal(self) -> ActorRef[Any]:
        """The goal's actor; it is started when it is first needed."""
        if "goal" not in self.children:
            self.start_child(ChildSpec("goal", self._start_goal))
        return self.children["goal"].ref

    def _start_goal(self) -> ActorRef[Any]:
        return self.goal_type.start(self.system, self.actor_ref, self._queue, self._environment)

    def _catch_up(self, message: Catch) -> None:
        """Give a goal that begins a copy of what the journal says."""
        copy = decode(GoalsRecord, encode(self.record.goals))
        if "goal" in self.children:
            self.children["goal"].ref.tell(Caught(copy, message.key))
            self._pursue()

    # What it hears --------------------------------------------------------------------------------

    def _follow_goal(self, entry: e.Entry) -> None:
        """Tell the goal what concerns it; stop a turn that has spent its tokens or minutes."""
        goal = self.record.goals.goal
        if isinstance(entry, g.GoalJudged):  # what a judge took counts like any other call
            self._environment.account.settle("judge", entry.usage)
        if goal is None or "goal" not in self.children:
            return
        if isinstance(entry, CONCERNS):
            self._goal.tell(Journalled(entry))
        match entry:
            case e.Answered(turn=turn) if turn == goal.turn and goal.is_pursued and goal.overdraft:
                if any(one.tool_calls for one in entry.messages):
                    self._goal.tell(StopGoal("budget", goal.overdraft))
                    self._interrupt(Interrupt("budget", goal.turn))
            case g.GoalPaused(reason="budget") if goal.turn:
                self._interrupt(Interrupt("budget", goal.turn))
            case _:
                pass

    def _pursue(self) -> None:
        """When the session is at rest and a goal is pursued, it is the goal's move."""
        if self.record.goals.is_pursued and self._is_at_rest:
            self._goal.tell(self._boundary())

    @property
    def _is_at_rest(self) -> bool:
        """Whether nothing runs, here or beneath, and nothing waits, held or not."""
        record = self.record
        queue = record.queue
        is_still = self._is_free and not self._broken and not self._must_wait()
        is_over = record.unfinished is None and not self._workers
        return is_still and is_over and not queue.pending() and queue.next_item() is None

    def _boundary(self) -> Rested:
        """Say what the newest turn did that said something; one that sums up is no boundary."""
        record, book = self.record, self._environment.toolbook
        items = record.queue.items
        turns = [one for one in record.turns.values() if not _is_purposeful(items.get(one.item))]
        if not turns:
            return Rested(record.goals.current, "", "interrupted")
        turn = turns[-1]
        ran = [one.tool for one in turn.calls.values() if one.state in HAVE_RUN]
        is_unsure = turn.id != record.turn  # its calls are forgotten
        item = items.get(turn.item)
        return Rested(
            record.goals.current,
            turn.id,
            turn.state,
            turn.ended,
            turn.reason,
            _last_word(record.conversation),
            bool(ran) or is_unsure,
            is_unsure or any(book.is_mutating(one) or one == "delegate" for one in ran),
            item is None or item.goal != record.goals.current,
        )

    # Effects --------------------------------------------------------------------------------------

    def _perform_for_goal(self, effect: GoalEffect) -> None:
        if isinstance(effect, StopJudging) or self._is_wanted(effect):
            self._environment.perform(self._completed(effect), self._goal)

    def _is_wanted(
        self, effect: RunGate | AskJudge | CountChanges | AwaitCondition | GoalTimer
    ) -> bool:
        """Whether nothing has come in between; what has would have stopped it."""
        goal = self.record.goals.goal
        is_stopping = self._heard < self._last_stop
        if goal is None or goal.id != effect.goal or not goal.is_pursued or is_stopping:
            return False
        match effect:
            case AwaitCondition():
                return goal.state == "waiting"
            case GoalTimer():
                return True
            case RunGate() | AskJudge() | CountChanges():
                return goal.judging == effect.turn

    def _completed(self, effect: GoalEffect) -> GoalEffect:
        """Let the judge see what was said."""
        if isinstance(effect, AskJudge):
            return replace(effect, said=tuple(self.record.conversation[-NEWEST:]))
        return effect

    # Cancels --------------------------------------------------------------------------------------

    def _reaches_goal(self, cause: str) -> bool:
        """Whether a cause stops a goal that goes on, by the table."""
        row = deliver(self._environment.deliveries, cause, Relation.GOAL)
        return row.action in ENDS and self.record.goals.is_pursued

    def _stop_goal(self, order: InterruptTurn) -> None:
        """Let a cancel reach the goal, if the table says so."""
        if self._reaches_goal(order.cause):
            self._tell_to_stop(order)

    def _stop_goal_alone(self, order: InterruptTurn) -> None:
        """Stop a goal between two turns: the receipt comes with its pause."""
        self._tell_to_stop(order, requested("", order))

    def _tell_to_stop(
        self, order: InterruptTurn, receipt: e.InterruptRequested | None = None
    ) -> None:
        self._told += 1
        self._last_stop = self._told
        is_spent = order.cause == Cause.BUDGET
        why = ("budget", "a limit of the session is reached") if is_spent else ("interrupt", "")
        self._goal.tell(StopGoal(*why, receipt=receipt, number=self._told))

    def _pause_alone(self, message: Interrupt, receipt: str) -> dict[str, Any]:
        """Nothing runs but a goal, between two of its turns."""
        goal = self.record.goals.current
        self._stop_goal_alone(
            InterruptTurn(receipt, message.cause, "", message.user, message.client_id)
        )
        return {"ok": True, "interrupted": None, "children": [], "receipt": receipt, "goal": goal}

    def _end_goal(self, is_final: bool) -> None:
        """The session is being left, or ends for good."""
        if "goal" in self.children:
            detail = "" if is_final else "the program was left"
            self._goal.tell(StopGoal(detail=detail, is_final=is_final))

    @property
    def _last_settled(self) -> ActorRef[Any]:
        """Who is asked for the queue's last word: it comes behind all that a goal decided."""
        return self._goal if "goal" in self.children else self._queue


def _is_purposeful(item: ItemRecord | None) -> bool:
    """Whether a turn's message says nothing to the model."""
    return item is not None and bool(item.purpose)


def _last_word(conversation: list[ChatMessage]) -> str:
    for message in reversed(conversation):
        if message.role == "assistant":
            return message.text
    return ""
