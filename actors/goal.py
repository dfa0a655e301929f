"""The goal actor: the one authority on what a session works for, and on when that ends.

A goal's turns are ordinary messages in the session's queue, one at a time, and never before those of
people. Their budget is reserved when the message is queued, and spent when its turn has ended. When the
session is at rest after a turn a judge looks, and the goal goes on, waits, pauses or ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from pykka import ActorRef

from ..journal import entries as e
from ..journal.goal_record import GoalRecord
from ..journal.record import SessionRecord
from ..machines import protocol as m
from ..machines.verdict import Verdict
from .decisions import goals, queueing
from .decisions.decision import Decision
from .decisions.goals import GoalBoundary
from .judge import Judge, JudgeRequest
from .kernel.mailbox import tell
from .kernel.supervisor import Child, ChildSpec, Supervisor, mark_stopping
from .ledger import Ledger, Member

if TYPE_CHECKING:
    from .kernel.system import ActorSystem


class _Waiting:
    """The wait of a goal: the `name` of a timer or condition, empty for nothing.

    `made` counts them, so that one that was given up and comes all the same is recognised. `orders`
    counts the orders that began or resumed a goal, up to the one for which it waits.
    """

    __slots__ = ("made", "name", "orders")

    def __init__(self, orders: int) -> None:
        self.name, self.made, self.orders = "", 0, orders

    @property
    def kind(self) -> str:
        """Its kind: a pause, a wait or a limit; empty for nothing."""
        return self.name.partition(" ")[0]

    def begin(self, kind: str) -> str:
        """Wait for something from now on; return its name."""
        self.made += 1
        self.name = f"{kind} {self.made}"
        return self.name

    def end(self) -> str:
        """Wait for nothing any more; return what kind it was."""
        kind, self.name = self.kind, ""
        return kind


def carry_out(member: Member, decision: Decision) -> Any:
    """Fold a decision about a goal, and queue the message that the goal goes on with in the same step.

    Its turn begins if one may. Return the decision's reply, or what a machine refused.
    """
    reply = member.decide(replace(decision, orders=()))
    for _, message in decision.orders:
        member.decide(queueing.enqueue_goal(member.record, message, member.environment))
    member.settle(queueing.due)
    return reply


class Goal(Member, Supervisor):
    """One session's goals; `judge_type` is what it starts to look at a boundary.

    `is_dirty`: files may have changed since the boundary before the last; `are_gates_known`: nothing
    can have changed since the gates ran.
    """

    role = "goal"

    judge_type: type[Judge] = Judge

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system, ledger)
        self.awaited = _Waiting(ledger.record.goals.orders)
        self.is_dirty = False
        self.are_gates_known = False

    @property
    def _goal(self) -> GoalRecord | None:
        """The goal that is pursued, if one is."""
        goal = self.record.goals.goal
        return goal if goal is not None and goal.is_pursued else None

    @property
    def _judge(self) -> Child | None:
        """The judge that is at work, if one is; not one that is being stopped."""
        judge = self.children.get("judge")
        return judge if judge is not None and judge.state == "running" else None

    def on_start(self) -> None:
        """Put in order what an incarnation that failed has left."""
        self.enlist()
        goal = self._goal
        if self.birth.incarnation and goal is not None and goal.state == "waiting":
            self.decide(
                Decision(entries=(e.GoalWoken(goal=goal.id, why="a fault in the program"),))
            )
        if goals.is_judging(self.record):
            self._leave_off()
        self._attend()

    def on_receive(self, message: Any) -> Any:
        """Decide; then do what is due."""
        self._obey_order()
        reply = self._take(message)
        self._attend()
        return reply

    def _take(self, message: Any) -> Any:
        match message:
            case m.Wake():
                self.awake()
            case m.Judged():
                self._judged(message)
            case m.GateEnded() | m.JudgeAnswered() | m.ChangesCounted():
                if self._judge is not None:
                    tell(self._judge.ref, message)
            case m.JudgeDead():
                if self._judge is None:
                    self.decide(goals.judging_stopped(self.record, message))
            case m.ConditionMet() | m.TimerFired():
                self._time_has_come(message)
            case m.Down():
                self.handle_down(message)
            case _:
                return super().on_receive(message)
        return None

    def _obey_order(self) -> None:
        """End what went on for an order that a newer one has replaced."""
        orders = self.record.goals.orders
        if orders != self.awaited.orders:
            self.awaited.orders = orders
            self._leave_off()
            self.are_gates_known = self.is_dirty = False

    # Due work -------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Do what the record says is due: obey a stop, keep the budget, or look at a boundary."""
        record = self.record
        stopped = goals.paused_by_stop(record, self.environment)
        if stopped:
            self._leave_off()
            self.decide(Decision(entries=stopped))
            return
        goal = self._goal
        if goal is None:
            if self.awaited.name or goals.is_judging(record):
                self._leave_off()
            return
        if record.running is None and goals.is_at_rest(record) and not goals.is_judging(record):
            self._rested(goal, goals.rest(record, goal, self.environment))
            record, goal = self.record, self._goal  # its next turn may have begun
        if record.running is not None and goal is not None:
            self._watch_turn(record, goal)

    def _watch_turn(self, record: SessionRecord, goal: GoalRecord) -> None:
        """A turn runs: if it is not the goal's, what went on for that ends; else mind its budget."""
        if goal.judging or (goal.turn != record.turn and self.awaited.kind == "pause"):
            self._leave_off()
        turn = record.running
        if goal.turn != record.turn or turn is None:
            return
        if goal.overdraft and turn.state == "acting":
            self._pause(goal, "budget", goal.overdraft)
        elif goal.max_seconds is not None and self.awaited.kind != "limit":
            left = goal.max_seconds - (goal.seconds_total - goal.base_seconds)
            self._set_timer(goal, "limit", max(0.0, left))

    def _pause(self, goal: GoalRecord, reason: str, detail: str) -> None:
        """Pause the goal; a turn of its own that runs is stopped."""
        paused = e.GoalPaused(goal=goal.id, reason=reason, detail=detail)
        running = self.record.running
        is_in_turn = running is not None and running.id == goal.turn
        decision = Decision(entries=(paused,))
        if is_in_turn:
            order = m.Interrupt(order=m.StopOrder(cause="budget"), turn=goal.turn)
            decision = replace(decision, orders=(("session", order),))
        self.decide(decision)

    def _leave_off(self) -> None:
        """Stop judging and waiting; `JudgeDead` comes when nothing of that is left."""
        is_waiting = self.awaited.end() == "wait"
        judge = self._judge
        if judge is not None:
            mark_stopping(judge)
            tell(judge.ref, m.StopJudging(goal=self.record.goals.current))
        if judge is not None or is_waiting or goals.is_judging(self.record):
            stop = m.StopJudging(goal=self.record.goals.current)
            self.decide(Decision(urgent=(stop,)))

    # Boundaries -----------------------------------------------------------------------------------

    def _rested(self, goal: GoalRecord, at: GoalBoundary) -> None:
        """Nothing runs and nothing will: deal with the turn that has ended, or go on."""
        is_new = at.turn != goal.boundary
        if goal.state == "waiting":
            if is_new and at.is_persons:
                self._leave_off()
                self.are_gates_known = False
                self.decide(Decision(entries=(e.GoalWoken(goal=goal.id, why="a message came"),)))
                self._attend()
            return
        if self.awaited.kind == "pause" and not is_new:
            return
        self.awaited.end()
        if not is_new:
            self._go_on(goal)
        elif goal.overdraft:
            self._pause(goal, "budget", goal.overdraft)
        elif at.status == "completed":
            self._begin_judging(goal, at)
        else:
            self._turn_failed(goal, at)

    def _turn_failed(self, goal: GoalRecord, at: GoalBoundary) -> None:
        self.is_dirty = self.is_dirty or at.may_have_changed
        self.are_gates_known = self.are_gates_known and not at.may_have_changed
        failed = e.GoalTurnFailed(goal=goal.id, turn=at.turn, status=at.status, reason=at.reason)
        self.decide(Decision(entries=(failed,)))
        goal = self.record.goals.goals[goal.id]
        most = self.environment.goals.max_failed_turns
        if most and goal.failing >= most:
            times = f"{goal.failing} turns in a row failed" if goal.failing > 1 else "a turn failed"
            self._pause(goal, "failing", f"{times}: {at.reason}")
        else:
            self._go_on(goal)

    def _begin_judging(self, goal: GoalRecord, at: GoalBoundary) -> None:
        has_news = at.may_have_changed or at.is_persons or self.is_dirty
        policy = self.environment.goals
        judging = JudgeRequest(
            goal=goal.id,
            turn=at.turn,
            text=goal.text,
            gates=goal.gates,
            known=goal.gate_results if self.are_gates_known and not has_news else (),
            earlier=goals.earlier_verdicts(goal),
            may_have_changed=at.may_have_changed,
            is_fresh=self.is_dirty or at.is_persons or not goal.answers,
            gates_decide=policy.gates_decide,
            timeouts=(policy.gate_timeout, policy.judge_timeout),
        )
        self.is_dirty = False
        begun = e.JudgingBegun(goal=goal.id, turn=at.turn, epoch=self.record.epoch)
        self.decide(Decision(entries=(begun,)))
        ledger, me = self.ledger, self.actor_ref

        def start() -> ActorRef[Any]:
            return self.judge_type.start(self.system, ledger, judging, me)

        self.start_child(ChildSpec(name="judge", start=start, restart="temporary"))

    def child_ended(self, child: Child, down: m.Down) -> None:
        """A judge whose actor failed is one that is unusable."""
        goal = self._goal
        if goal is not None and goal.judging and down.reason:
            fault = f"a fault in the program: {down.reason}"
            self.decide(Decision(urgent=(m.StopJudging(goal=goal.id),)))
            self._judged(m.Judged(turn=goal.judging, verdict=Verdict(kind="continue"), fault=fault))

    def _judged(self, message: m.Judged) -> None:
        goal = self._goal
        if goal is None or goal.judging != message.turn or self.record.running is not None:
            return
        self.children.pop("judge", None)
        at = goals.rest(self.record, goal, self.environment)
        verdict = message.verdict
        self.are_gates_known = verdict.kind == "continue"
        entry = goals.judged(goal, message, at)
        match verdict.kind:
            case "done" if goals.next_begins(self.record, goal):
                judged = Decision(entries=(entry,))
                carry_out(self, judged + goals.next_goal(self.record, goal.epoch))
            case "wait":
                assert verdict.condition is not None
                limit, name = self.environment.goals.max_wait, self.awaited.begin("wait")
                wait = m.AwaitCondition(
                    goal=goal.id,
                    name=name,
                    condition=verdict.condition,
                    limit=limit,
                    since=at.ended,
                )
                self.decide(Decision(entries=(entry,), effects=(wait,)))
            case "continue":
                self.decide(Decision(entries=(entry,)))
                self._not_yet(self.record.goals.goals[goal.id], message)
            case _:
                self.decide(Decision(entries=(entry,)))

    def _not_yet(self, goal: GoalRecord, message: m.Judged) -> None:
        most = self.environment.goals.max_judge_failures
        unstarted = next((gate for gate in message.gates if gate.status == "failed"), None)
        if unstarted is not None:
            detail = f"the gate `{unstarted.command}` could not be started: {unstarted.output}"
            self._pause(goal, "gate_unusable", detail)
        elif message.fault and most and goal.judge_failures >= most:
            detail = f"{goal.judge_failures} times in a row: {message.fault}"
            self._pause(goal, "judge_unusable", detail)
        elif (length := goals.cycle(goal.answers)) and not (message.fault and most):
            what = "answer" if length == 1 else f"{length} answers"
            detail = f"the same {what} twice, and no file changed in between"
            self._pause(goal, "no_progress", detail)
        elif goals.is_at_rest(self.record):
            self._go_on(goal)

    # Going on -------------------------------------------------------------------------------------

    def _go_on(self, goal: GoalRecord) -> None:
        """Let the next turn begin, unless the budget is spent; the less was done, the later."""
        spent = goals.what_is_spent(goal)
        if spent and not goal.reserved:
            self._pause(goal, "budget", spent)
            return
        pause = goals.pause_before(goal, self.environment.goals)
        if pause:
            self._set_timer(goal, "pause", pause)
        else:
            self._continue(goal)

    def _continue(self, goal: GoalRecord) -> None:
        said = goals.continuation(goal)
        message = m.GoalMessage(
            goal=goal.id, said=m.Said(text=said, user=goal.user), after=goal.boundary
        )
        carry_out(self, Decision(orders=(("queue", message),)))

    def _set_timer(self, goal: GoalRecord, what: str, seconds: float) -> None:
        self.decide(
            Decision(
                effects=(m.GoalTimer(goal=goal.id, name=self.awaited.begin(what), seconds=seconds),)
            )
        )

    def _time_has_come(self, message: m.ConditionMet | m.TimerFired) -> None:
        goal = self._goal
        name = message.name if isinstance(message, m.ConditionMet) else message.timer.kind
        if goal is None or name != self.awaited.name:
            return
        kind = self.awaited.end()
        if kind == "wait" and goal.state == "waiting" and isinstance(message, m.ConditionMet):
            why = "it did not happen in time" if message.is_late else "it has happened"
            self.decide(Decision(entries=(e.GoalWoken(goal=goal.id, why=why),)))
        elif kind == "pause" and goal.state == "active" and goals.is_at_rest(self.record):
            self._continue(goal)
        elif kind == "limit" and goal.turn:
            minutes = (goal.max_seconds or 0.0) / 60
            detail = f"the {minutes:g} minutes are spent"
            self._pause(goal, "budget", detail)
