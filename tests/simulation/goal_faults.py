"""Faults to plant in goals: each breaks one promise, and some check must see it."""

from typing import Any

from simulation.faults import Fault

from steersman.actors.decisions import goals
from steersman.actors.decisions.decision import Decision
from steersman.actors.decisions.goals import GoalBoundary
from steersman.actors.goal import Goal
from steersman.journal.goal_record import GoalRecord
from steersman.journal.record import SessionRecord
from steersman.machines.goal_messages import ChangeGoal, SetGoal
from steersman.machines.policy import GoalPolicy

__all__ = ["GOAL_FAULTS"]

_ORDER, _RESTED, _PAUSED = goals.order, Goal._rested, goals.paused_by_stop


def _nothing_is_spent(goal: GoalRecord) -> str:
    return ""


def _paused_at_the_end_only(record: SessionRecord, environment: Any) -> tuple[Any, ...]:
    return _PAUSED(record, environment) if record.state == "finalizing" else ()


def _judge_again(actor: Goal, goal: GoalRecord, at: GoalBoundary) -> None:
    if goal.state == "active" and at.status == "completed":
        actor._begin_judging(goal, at)
    else:
        _RESTED(actor, goal, at)


def _wait_for_ever(*_: Any) -> None:
    return None


def _keep_messages(*_: Any) -> tuple[Any, ...]:
    return ()


def _order_as_of_now(
    record: SessionRecord, wish: SetGoal | ChangeGoal, epoch: int, policy: GoalPolicy
) -> Decision:
    return _ORDER(record, wish, record.epoch, policy)


GOAL_FAULTS: dict[str, Fault] = {
    "overspends the budget": Fault("is overdrawn", ((goals, "what_is_spent", _nothing_is_spent),)),
    "goes on after a stop": Fault(
        "outlives a stop", ((goals, "paused_by_stop", _paused_at_the_end_only),)
    ),
    "judges a boundary twice": Fault("is judged twice", ((Goal, "_rested", _judge_again),)),
    "never stops": Fault("never stops", ((Goal, "_go_on", _wait_for_ever),)),
    "leaves a message that waits": Fault(
        "waits for GoalRecord", ((goals, "withdrawn", _keep_messages),)
    ),
    "sets a goal past a stop": Fault("outlives a stop", ((goals, "order", _order_as_of_now),)),
}
