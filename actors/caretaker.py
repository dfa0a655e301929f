"""A session of which only the queue is there: for changes from outside while nobody has it open.

It journals what changes the queue and nothing else: that a session was cut off, and how, stays as it
is for whoever takes the session up next. Nothing ever starts here.
"""

from __future__ import annotations

from typing import Any

from ..journal import entries as e
from ..journal import goal_entries as g
from ..journal.queue import ItemRecord
from ..journal.recovery import closing_messages
from ..machines.delegation import EndChild, SideTalk
from ..machines.disposition import Intent, Situation, dispose
from ..machines.messages import (
    Answer,
    Compact,
    Finalize,
    Interrupt,
    QueueChange,
    ResumeQueue,
    Suspend,
    TakeBack,
    UserMessage,
)
from ..machines.pursuit import ChangeGoal, GoalDecided, SetGoal
from .actor import Forward
from .goals.wishes import Wish, decided
from .reception import enqueue_order, known
from .session import Session
from .supervisor import ChildSpec

__all__ = ["Caretaker"]


class Caretaker(Session):
    """Keeps a session's queue; everything that was said waits, whatever it says."""

    def on_start(self) -> None:
        """Start the queue alone: what a dead owner left stays as it was left."""
        self.start_child(ChildSpec("queue", self._start_queue))

    def _is_gone(self, message: Any) -> bool:
        return False

    def _obey(self, message: Any) -> Any:
        if self.record.state in ("finalizing", "finalized"):
            return self._turn_away(message, "session_finalized")
        match message:
            case UserMessage():
                return self._keep(message)
            case Interrupt():
                return {"ok": True, "interrupted": None, "reason": "nothing runs"}
            case QueueChange("withdraw" | "clear"):
                return self._withdraw(message)
            case (
                QueueChange("steer")
                | ResumeQueue()
                | TakeBack()
                | Answer()
                | EndChild()
                | Compact()
                | Suspend()
                | Finalize()
            ):
                return {"ok": False, "reason": self._not_open}
            case ChangeGoal(op="resume") if self.record.goals.is_pursued:
                return {"ok": False, "reason": self._not_open}
            case SetGoal() | ChangeGoal():
                policy = self._environment.goals
                return self._note_wish(decided(self.record.goals, message, policy))
            case _:
                return super()._obey(message)

    @property
    def _not_open(self) -> str:
        return f"the session is not open: `steersman chat --resume {self.record.id}` takes it up"

    def _side_talk(self, message: SideTalk) -> None:
        """Nobody is here who could answer."""
        self._reject(self._not_open, message.text, message.client_id)

    def _note_wish(self, wish: Wish) -> dict[str, Any]:
        """Note what is wanted of a goal; it begins when somebody is there who says so."""
        if wish.goes_on is not None and not any(isinstance(one, g.GoalSet) for one in wish.entries):
            return {"ok": False, "reason": self._not_open}
        if wish.is_done:
            paused = (g.GoalPaused(wish.goal, "user", "nobody has the session open"),)
            entries = (*wish.entries, *(paused if wish.goes_on is not None else ()))
            self._queue.tell(GoalDecided(wish.goal, entries, drops=wish.drops))
        return wish.reply

    def _keep(self, message: UserMessage) -> dict[str, Any]:
        before = known(self.record, message.client_id)
        if before is not None:
            self._pass_on_when_durable(before)
            return {"ok": True}
        policy = self._environment.policy
        row = dispose(
            self._environment.dispositions,
            Intent.EXPLICIT_QUEUE,
            Situation.BUSY,
            policy.busy_mode,
            policy.strategy,
            "on" if policy.is_auto_queue else "off",
        )
        self._queue.tell(enqueue_order(message, row, "queue"))
        return {"ok": True}

    def _withdraw(self, message: QueueChange) -> Any:
        """Let the queue take back; what ran when its owner died is ended first, here."""
        cut_off = self._cut_off()
        if cut_off is None:
            return Forward(self._queue)
        live = self.record.queue.live()
        number = message.number or live[-1].number
        if message.op == "withdraw" and number != cut_off.number:
            return Forward(self._queue)
        reason, messages = "its program died, then it was taken back", closing_messages(self.record)
        self._say(e.TurnEnded(cut_off.turn, "failed", reason, "say it again", messages))
        if message.op == "clear":
            return Forward(self._queue)
        return {"ok": True, "withdrawn": [cut_off.number], "text": cut_off.text}

    def _cut_off(self) -> ItemRecord | None:
        return next((one for one in self.record.queue.live() if one.state == "running"), None)

    def _pursue(self) -> None:
        """Nobody is here who could work for a goal."""

    def _react(self, entry: e.Entry) -> None:
        """Nothing follows from a change of this queue."""

    def _start_next_if_idle(self) -> None:
        """Nothing starts."""

    @property
    def _last_turn(self) -> None:
        """Nothing runs: whoever died has taken its turn along."""

    def _farewell(self) -> None:
        """Nobody was here who could leave."""
