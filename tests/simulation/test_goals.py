"""Random goals, judges, people and crashes: every goal ends, within its budget."""

from typing import Any

import pytest
from simulation.goal_faults import GOAL_FAULTS
from simulation.goal_moves import Move, goal_moves, rows, watched
from simulation.goals import GoalScenario
from simulation.single import entries, has, program, run, say

from steersman.actors.goals.goal import Goal
from steersman.actors.session import Session
from steersman.journal import entries as e
from steersman.machines.goal import GOAL
from steersman.machines.judge import JUDGE
from steersman.machines.pursuit import SetGoal, Wanted

SEEDS = 5_000
CHUNK = 500
FEW = 100


def test_goals_keep_their_promises_in_some_runs() -> None:
    """No promise is broken in the first runs."""
    for seed in range(FEW):
        GoalScenario(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, SEEDS, CHUNK))
def test_goals_keep_their_promises_in_many_runs(first: int) -> None:
    """No promise is broken in any of these runs."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        GoalScenario(seed).run()


@pytest.mark.slow
def test_every_transition_of_goal_and_judge_is_gone_through() -> None:
    """There is none in either machine that these runs do not reach, and they make no other move."""
    of_goal, of_judge = set[Move](), set[Move]()
    session_type = watched(of_judge)
    for seed in range(SEEDS):
        of_goal |= goal_moves(GoalScenario(seed, session_type).run().history)
        if (of_judge, of_goal) == (rows(JUDGE), rows(GOAL)):
            break
    assert of_judge == rows(JUDGE)
    assert of_goal == rows(GOAL)


class Stumbles(Goal):
    """Fails at whatever a person wants of it."""

    def _wanted(self, message: Wanted) -> dict[str, Any]:
        raise RuntimeError("planted")


class HasSuchAGoal(Session):
    """Waits for what its goal decides."""

    goal_type = Stumbles


def test_nobody_waits_for_a_goal_that_failed() -> None:
    """What is said behind an order that its actor could not take in runs as ever."""
    made = program(session_type=HasSuchAGoal)
    run(made, has(made, e.SessionOpened))
    made.say(SetGoal("all tests pass"))
    say(made, "hello")
    run(made)
    assert [one.status for one in entries(made, e.TurnEnded)] == ["completed"]
    made.close()


@pytest.mark.parametrize("name", GOAL_FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    """Each planted fault is noticed within the runs of the full suite."""
    assert any(_breaks(seed, GOAL_FAULTS[name]) for seed in range(SEEDS))


def _breaks(seed: int, kind: type[Session]) -> bool:
    try:
        GoalScenario(seed, kind).run()
    except AssertionError:
        return True
    return False
