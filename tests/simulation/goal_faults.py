"""Faults to plant in goals: each breaks one promise, and some check must see it."""

from typing import Any

from steersman.actors.goals.goal import Goal
from steersman.actors.session import Session
from steersman.journal.goal_record import GoalRecord
from steersman.machines.pursuit import Judged, Rested, StopGoal

__all__ = ["GOAL_FAULTS"]


class Spends(Goal):
    """Goes on whatever is spent."""

    def _go_on(self, goal: GoalRecord) -> None:
        self._continue(goal)


class OverspendsItsBudget(Session):
    """Has such a goal."""

    goal_type = Spends


class Forgets(Goal):
    """Does not hear of a stop."""

    def _stop_goal(self, message: StopGoal) -> None:
        if message.is_final:
            super()._stop_goal(message)


class GoesOnAfterAStop(Session):
    """Has such a goal."""

    goal_type = Forgets


class JudgesAgain(Goal):
    """Takes every rest for a new boundary."""

    def _rested(self, message: Rested) -> None:
        goal = self._goal
        if goal is not None and "judge" not in self.children and message.status == "completed":
            self._begin_judging(goal, message)


class JudgesTwice(Session):
    """Has such a goal."""

    goal_type = JudgesAgain


class Waits(Goal):
    """Does nothing when it is to go on, though it still could."""

    def _rested(self, message: Rested) -> None:
        goal = self._goal
        if goal is not None and message.turn != goal.boundary:
            super()._rested(message)

    def _not_yet(self, goal: GoalRecord, message: Judged) -> None:
        pass


class NeverStops(Session):
    """Has such a goal."""

    goal_type = Waits


class KeepsItsMessage(Goal):
    """Leaves its message in the queue when it pauses."""

    def _decide(self, goal: str, *entries: Any, **more: Any) -> None:
        super()._decide(goal, *entries, **{**more, "drops": ""})


class LeavesAMessage(Session):
    """Has such a goal."""

    goal_type = KeepsItsMessage


class StopsWhatItSees(Session):
    """Takes a stop for nothing while a goal that was set before it is on its way."""

    _is_goal_deciding = False  # type: ignore[assignment]


GOAL_FAULTS: dict[str, type[Session]] = {
    "overspends the budget": OverspendsItsBudget,
    "goes on after a stop": GoesOnAfterAStop,
    "judges a boundary twice": JudgesTwice,
    "never stops": NeverStops,
    "leaves a message that waits": LeavesAMessage,
    "stops what it sees": StopsWhatItSees,
}
