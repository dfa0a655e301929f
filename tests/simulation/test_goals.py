"""Random goals, judges, people and crashes: every goal ends, within its budget."""

import pytest
from simulation.goal_faults import GOAL_FAULTS
from simulation.goals import GoalScenario

from steersman.actors.session import Session

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
