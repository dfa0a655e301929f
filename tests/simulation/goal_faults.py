"""Faults to plant in goals: each breaks one promise, and some check must see it."""

from typing import Any

from simulation.faults import Fault
from simulation.planting import none, nothing, unsaid

from steersman.actors import children
from steersman.actors.decisions import goals, queueing, running
from steersman.actors.decisions.goals import GoalBoundary
from steersman.actors.goal import Goal
from steersman.actors.kernel.mailbox import tell
from steersman.actors.session import Session
from steersman.journal.goal_record import GoalRecord
from steersman.journal.record import SessionRecord

__all__ = ["GOAL_FAULTS", "RUN_FAULTS"]

_RESTED, _PAUSED, _PURSUE = Goal._rested, goals.paused_by_stop, Session._pursue


def _paused_at_the_end_only(record: SessionRecord, environment: Any) -> tuple[Any, ...]:
    return _PAUSED(record, environment) if record.state == "finalizing" else ()


def _judge_again(actor: Goal, goal: GoalRecord, at: GoalBoundary) -> None:
    if goal.state == "active" and at.status == "completed":
        actor._begin_judging(goal, at)
    else:
        _RESTED(actor, goal, at)


def _as_it_was(_: SessionRecord, found: Any) -> Any:
    return found


def _pursue_later(session: Session, message: Any) -> Any:
    delayed: list[Any] = session.__dict__.setdefault("delayed", [])
    if message in delayed:
        delayed.remove(message)
        return _PURSUE(session, message)
    delayed.append(message)
    tell(session.actor_ref, message)
    return {"ok": True}


GOAL_FAULTS: dict[str, Fault] = {
    "overspends the budget": Fault("is overdrawn", ((goals, "what_is_spent", unsaid),)),
    "goes on after a stop": Fault(
        "outlives a stop", ((goals, "paused_by_stop", _paused_at_the_end_only),)
    ),
    "judges a boundary twice": Fault("is judged twice", ((Goal, "_rested", _judge_again),)),
    "never stops": Fault("never stops", ((Goal, "_go_on", none),)),
}

RUN_FAULTS: dict[str, Fault] = {
    "lets a steer overtake a goal": Fault(
        "completes without its goal", ((Session, "_pursue", _pursue_later),)
    ),
    "leaves a child whose step goes on without it": Fault(
        "no step waits for it", ((children, "given_up", nothing),)
    ),
    "lets a person take the run itself back": Fault(
        "the run never ends", ((queueing, "_but_the_run", _as_it_was),)
    ),
    "passes over work of unknown outcome": Fault(
        "of its items are not", ((running, "obstacle", unsaid),)
    ),
}
"""Faults that runs of a workflow find."""
