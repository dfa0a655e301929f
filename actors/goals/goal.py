"""The goal actor: the one authority on what a session works for, and on when that ends.

A goal's turns are ordinary messages in the session's queue, one at a time, and never before somebody's
own. Their budget is reserved when the message is queued, in the same commit, and spent when its turn
has ended. When the session is at rest after a turn a judge looks, and the goal goes on, waits, pauses
or ends. All of that is decided here, and goes to the journal by way of the queue (`GoalDecided`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...journal import entries as e
from ...journal import goal_entries as g
from ...journal.goal_record import GoalRecord, GoalsRecord, apply_to_goals
from ...machines.orders import Down, Inspect, Journalled, Settle, TimerFired
from ...machines.pursuit import (
    AwaitCondition,
    Catch,
    Caught,
    ChangesCounted,
    ConditionMet,
    Continuation,
    GateEnded,
    GoalDecided,
    GoalTimer,
    Heard,
    JudgeAnswered,
    Judged,
    JudgeDead,
    Rested,
    StopGoal,
    StopJudging,
    Wanted,
)
from ...machines.verdict import Verdict
from ..mailbox import tell
from ..supervisor import ChildSpec, Supervisor
from .boundary import boundary_of, judged_entry
from .judge import Judge
from .pace import pause_before, what_is_spent
from .wishes import decided
from .wording import continuation

if TYPE_CHECKING:
    from ..environment import Environment
    from ..system import ActorSystem

__all__ = ["Goal"]


class Goal(Supervisor):
    """One session's goals. `goals` is what was decided until now, here and elsewhere.

    It begins by asking for a copy, and takes nothing else before that. `_timer` names what it waits
    for, empty for nothing. `_is_dirty`: files may have changed since the boundary before the last;
    `_are_gates_known`: nothing can have changed since the gates ran.
    """

    judge_type: type[Judge] = Judge

    def __init__(
        self,
        system: ActorSystem,
        session: ActorRef[Any],
        queue: ActorRef[Any],
        environment: Environment,
    ) -> None:
        super().__init__(system)
        self.goals: GoalsRecord | None = None
        self._session, self._queue, self._environment = session, queue, environment
        self._timer = ""
        self._timers = 0
        self._is_dirty = False
        self._are_gates_known = False
        self._at: Rested | None = None
        self._owes_stopped = False
        self._key = object()

    def on_start(self) -> None:
        """Catch up with what was decided before."""
        self._queue.tell(Catch(self._key))

    def on_receive(self, message: Any) -> Any:
        """Decide."""
        match message:
            case Caught(key=key) if key is not self._key:
                pass
            case Caught(goals):
                self.goals = goals
                self._pick_up()
                self.unstash()
            case Journalled() if self.goals is None:
                pass  # the copy will have it
            case Inspect():
                return {"judging": "judge" in self.children, "timer": self._timer}
            case _ if self.goals is None:
                return self.stash()
            case Wanted():
                return self._wanted(message)
            case Rested():
                self._rested(message)
            case StopGoal():
                self._stop_goal(message)
            case Journalled(entry):
                self._journalled(entry)
            case Judged():
                self._judged(message)
            case GateEnded() | JudgeAnswered() | ChangesCounted():
                judge = self.children.get("judge")
                if judge is not None:
                    tell(judge.ref, message)
            case JudgeDead():
                self._judge_dead(message)
            case ConditionMet() | TimerFired():
                self._time_has_come(message)
            case Settle():
                self._queue.tell(message)  # behind all that was decided here
            case Down():
                self.handle_down(message)
            case _:
                return super().on_receive(message)
        return None

    def _pick_up(self) -> None:
        """Put in order what an incarnation that failed has left."""
        goal = self._goal
        if goal is not None and goal.judging:
            stopped = g.JudgingStopped(goal.id, goal.judging, "a fault in the program")
            self._decide(goal.id, stopped, urgent=(StopJudging(goal.id),))
        elif goal is not None and goal.state == "waiting":
            self._decide(goal.id, g.GoalWoken(goal.id, "a fault in the program"))

    @property
    def _known(self) -> GoalsRecord:
        assert self.goals is not None
        return self.goals

    @property
    def _goal(self) -> GoalRecord | None:
        """The goal that is pursued, if one is."""
        goal = self._known.goal
        return goal if goal is not None and goal.is_pursued else None

    def _decide(self, goal: str, *entries: e.Entry, **more: Any) -> None:
        """Fold it here, and send it on its way to the journal; `more` as in `GoalDecided`."""
        now = self.system.now()
        for entry in entries:
            apply_to_goals(self._known, entry, now)
        self._queue.tell(GoalDecided(goal, entries, **more))

    # What people want -----------------------------------------------------------------------------

    def _wanted(self, message: Wanted) -> dict[str, Any]:
        """Carry out what somebody wants of a goal; whatever was going on for it ends first."""
        wish = decided(self._known, message.order, self._environment.goals)
        if wish.is_done:
            is_now = wish.goes_on is not None or wish.drops
            urgent = self._leave_off() if is_now else ()
            self._are_gates_known = self._is_dirty = False
            self._decide(
                wish.goal, *wish.entries, urgent=urgent, drops=wish.drops, goes_on=wish.goes_on
            )
        self._queue.tell(Heard(message.number))
        return wish.reply

    def _stop_goal(self, message: StopGoal) -> None:
        """A cancel has reached it."""
        goal = self._known.goal
        if message.is_final:
            live = [one.id for one in self._known.goals.values() if not one.is_over]
            entries: list[e.Entry] = [g.GoalCleared(one, "finalize") for one in live]
        elif goal is not None and goal.is_pursued:
            entries = [g.GoalPaused(goal.id, message.reason, message.detail)]
        else:
            entries = []
        if message.receipt is not None:
            entries.insert(0, message.receipt)
            self._owes_stopped = True
        urgent = self._leave_off()
        if entries or urgent:
            name = goal.id if goal is not None else ""
            drops = "all" if message.is_final else "waiting"
            self._decide(name, *entries, urgent=urgent, drops=drops)
        if self._owes_stopped and not urgent:
            self._judge_dead(JudgeDead())
        self._queue.tell(Heard(message.number))

    def _leave_off(self) -> tuple[StopJudging, ...]:
        """Stop judging and waiting."""
        is_waiting, self._timer = self._timer.startswith("wait"), ""
        judge = self.children.pop("judge", None)
        stop = StopJudging(self._known.current)
        if judge is not None:
            tell(judge.ref, stop)
        return (stop,) if judge is not None or is_waiting else ()

    def _judge_dead(self, message: JudgeDead) -> None:
        """Say that everything is dead, to whoever stopped the goal while nothing else ran."""
        if self._owes_stopped:
            self._owes_stopped = False
            self._decide("", e.Stopped("", message.killed, message.survivors))

    # Boundaries -----------------------------------------------------------------------------------

    def _journalled(self, entry: e.Entry) -> None:
        """Take in what the session did; a message of somebody's own ends what goes on meanwhile."""
        apply_to_goals(self._known, entry, self.system.now())
        goal = self._goal
        if goal is None or not isinstance(entry, e.TurnStarted):
            return
        if goal.turn != entry.turn and goal.state == "active":
            judging, urgent = goal.judging, self._leave_off()
            if judging:
                why = "a message came first"
                self._decide(goal.id, g.JudgingStopped(goal.id, judging, why), urgent=urgent)
        elif goal.turn == entry.turn and goal.max_seconds is not None:
            left = goal.max_seconds - (goal.seconds_total - goal.base_seconds)
            self._set_timer("limit", max(0.0, left))

    def _rested(self, message: Rested) -> None:
        """Nothing runs and nothing will: deal with the turn that has ended, or go on."""
        goal = self._goal
        if goal is None or goal.id != message.goal or "judge" in self.children:
            return
        is_new = message.turn != goal.boundary
        if goal.state == "waiting":
            if not (is_new and message.is_persons):
                return
            urgent = self._leave_off()
            self._are_gates_known = False
            self._decide(goal.id, g.GoalWoken(goal.id, "a message came"), urgent=urgent)
        if self._timer.startswith("pause") and not is_new:
            return
        self._timer = ""
        if not is_new:
            self._go_on(goal)
        elif goal.overdraft:
            self._decide(goal.id, g.GoalPaused(goal.id, "budget", goal.overdraft))
        elif message.status == "completed":
            self._begin_judging(goal, message)
        else:
            self._turn_failed(goal, message)

    def _turn_failed(self, goal: GoalRecord, message: Rested) -> None:
        self._is_dirty = self._is_dirty or message.may_have_changed
        self._are_gates_known = self._are_gates_known and not message.may_have_changed
        failed = g.GoalTurnFailed(goal.id, message.turn, message.status, message.reason)
        self._decide(goal.id, failed)
        most = self._environment.goals.max_failed_turns
        if most and goal.failing >= most:
            times = f"{goal.failing} turns in a row failed" if goal.failing > 1 else "a turn failed"
            detail = f"{times}: {message.reason}"
            self._decide(goal.id, g.GoalPaused(goal.id, "failing", detail))
        else:
            self._go_on(goal)

    def _begin_judging(self, goal: GoalRecord, message: Rested) -> None:
        self._at = message
        has_news = message.may_have_changed or message.is_persons or self._is_dirty
        are_known = self._are_gates_known and not has_news
        self._decide(goal.id, g.JudgingBegun(goal.id, message.turn))
        boundary = boundary_of(goal, message, are_gates_known=are_known, is_dirty=self._is_dirty)
        self._is_dirty = False
        policy, me, queue = self._environment.goals, self.actor_ref, self._queue

        def start() -> ActorRef[Any]:
            return self.judge_type.start(self.system, boundary, policy, me, queue)

        self.start_child(ChildSpec("judge", start, "temporary"))

    def child_ended(self, down: Down) -> None:
        """A judge whose actor failed is one that is unusable."""
        goal = self._goal
        if goal is not None and goal.judging and down.reason:
            fault = f"a fault in the program: {down.reason}"
            urgent = (StopJudging(goal.id),)
            self.mailbox.purge(Judged)
            self._queue.tell(GoalDecided(goal.id, urgent=urgent))
            self._judged(Judged(goal.judging, Verdict("continue"), fault=fault))

    def _judged(self, message: Judged) -> None:
        goal, at = self._goal, self._at
        if goal is None or at is None or goal.judging != message.turn:
            return
        self.children.pop("judge", None)
        verdict = message.verdict
        self._are_gates_known = True
        judged = judged_entry(goal.id, message, at)
        match verdict.kind:
            case "done":
                self._achieved(goal, judged)
            case "impossible":
                self._decide(goal.id, judged)
            case "wait":
                self._wait(goal, judged, verdict)
            case "continue":
                self._decide(goal.id, judged)
                self._not_yet(goal, message)

    def _not_yet(self, goal: GoalRecord, message: Judged) -> None:
        most = self._environment.goals.max_judge_failures
        if message.fault and most and goal.judge_failures >= most:
            detail = f"{goal.judge_failures} times in a row: {message.fault}"
            self._decide(goal.id, g.GoalPaused(goal.id, "judge_unusable", detail))
        elif message.is_stuck and not (message.fault and most):
            detail = "the same answer twice, and no file changed in between"
            self._decide(goal.id, g.GoalPaused(goal.id, "no_progress", detail))
        else:
            self._go_on(goal)

    def _achieved(self, goal: GoalRecord, judged: g.GoalJudged) -> None:
        """It is done: the next one in line begins, in the same commit."""
        line = self._known.line
        self._are_gates_known = False
        if not line:
            self._decide(goal.id, judged)
            return
        after = self._known.goals[line[0]]
        opening = Continuation(after.text, after.user, is_first=True)
        self._decide(after.id, judged, g.GoalBegun(after.id), goes_on=opening)

    # Going on -------------------------------------------------------------------------------------

    def _go_on(self, goal: GoalRecord) -> None:
        """Let the next turn begin, unless the budget is spent; the less was done, the later."""
        spent = what_is_spent(goal)
        if spent and not goal.reserved:
            self._decide(goal.id, g.GoalPaused(goal.id, "budget", spent))
            return
        pause = pause_before(goal, self._environment.goals)
        if pause:
            self._set_timer("pause", pause)
        else:
            self._continue(goal)

    def _continue(self, goal: GoalRecord) -> None:
        said = Continuation(continuation(goal), goal.user, after=goal.boundary)
        self._decide(goal.id, drops="interrupted", goes_on=said)

    def _wait(self, goal: GoalRecord, judged: g.GoalJudged, verdict: Verdict) -> None:
        assert verdict.condition is not None
        self._are_gates_known = False
        limit = self._environment.goals.max_wait
        name = self._name("wait")
        since = self._at.ended if self._at is not None else 0.0
        waiting = AwaitCondition(goal.id, name, verdict.condition, limit, since)
        self._decide(goal.id, judged, effects=(waiting,))

    def _set_timer(self, what: str, seconds: float) -> None:
        goal = self._known.current
        self._decide(goal, effects=(GoalTimer(goal, self._name(what), seconds),))

    def _name(self, what: str) -> str:
        self._timers += 1
        self._timer = f"{what} {self._timers}"
        return self._timer

    def _time_has_come(self, message: ConditionMet | TimerFired) -> None:
        goal = self._goal
        if goal is None or message.name != self._timer:
            return
        what, self._timer = self._timer.partition(" ")[0], ""
        match what:
            case "wait" if goal.state == "waiting" and isinstance(message, ConditionMet):
                why = "it did not happen in time" if message.is_late else "it has happened"
                self._decide(goal.id, g.GoalWoken(goal.id, why))
                self._go_on(goal)
            case "pause" if goal.state == "active":
                self._continue(goal)
            case "limit" if goal.turn:
                minutes = (goal.max_seconds or 0.0) / 60
                detail = f"the {minutes:g} minutes are spent"
                self._decide(goal.id, g.GoalPaused(goal.id, "budget", detail))
            case _:
                pass
