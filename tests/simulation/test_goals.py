"""Random goals, judges, people and crashes: every goal ends, within its budget."""

import pytest
from simulation.goal_faults import GOAL_FAULTS
from simulation.goal_moves import Move, goal_moves, rows, watched
from simulation.goals import GoalScenario

from steersman.actors.session import Session
from steersman.machines.goal import GOAL
from steersman.machines.judge import JUDGE

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
