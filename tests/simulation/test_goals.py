"""Random goals, judges, people and crashes: every goal ends, within its budget."""

from typing import Any

import pytest
from simulation.faults import WITHIN, run_with
from simulation.goal_faults import GOAL_FAULTS
from simulation.goal_moves import Move, goal_moves, rows, watched
from simulation.planting import planted
from simulation.single import entries, has, program, run, say

from steersman.actors.goal import Goal
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.lifecycles import GOAL, JUDGE
from steersman.simulator.goals import GoalScenario

SEEDS = 2_000
WIDE = 5_000
"""Seeds that reach every transition, the rare ones too."""
FOUND = {
    1386: "a stop comes between a goal and the message that it queues",
    1603673779: "the supervisors fail while a judge that was told to stop still has a gate's result",
}
CHUNK = 500
FEW = 100


def test_goals_keep_their_promises_in_some_runs() -> None:
    """No promise is broken in the first runs."""
    for seed in range(FEW):
        GoalScenario(seed).run()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(FEW, SEEDS, CHUNK))
def test_goals_keep_their_promises_in_many_runs(first: int) -> None:
    """No promise is broken in any of these runs."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        GoalScenario(seed).run()


@pytest.mark.parametrize("seed", FOUND)
def test_goals_keep_their_promises_in_runs_that_once_broke_them(seed: int) -> None:
    """Each of these runs has found a fault in the product: see what it comes upon."""
    GoalScenario(seed).run()


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_every_transition_of_goal_and_judge_is_gone_through() -> None:
    """There is none in either machine that these runs do not reach, and they make no other move."""
    of_goal, of_judge = set[Move](), set[Move]()
    session_type = watched(of_judge)
    for seed in range(WIDE):
        of_goal |= goal_moves(GoalScenario(seed, session_type=session_type).run().history)
        if (of_judge, of_goal) == (rows(JUDGE), rows(GOAL)):
            break
    assert of_judge == rows(JUDGE)
    assert of_goal == rows(GOAL)


def test_no_message_waits_for_a_failed_goal() -> None:
    """An order about a goal is carried out, and what is said behind it runs, though its actor fails."""
    made, take, failed = program(), Goal._take, list[Any]()

    def stumble(actor: Goal, message: Any) -> Any:
        """Fail once."""
        if not failed:
            failed.append(message)
            raise RuntimeError("planted")
        return take(actor, message)

    with planted(Goal, "_take", stumble):
        run(made, has(made, e.SessionOpened))
        made.say(m.SetGoal(text="all tests pass"))
        say(made, "hello")
        run(made, lambda: len(entries(made, e.TurnEnded)) == 2)
    assert len(made.system.dead_letters) == len(failed) == 1
    assert [item.goal for item in entries(made, e.Queued)][:2] == ["g1", ""]
    assert [ended.status for ended in entries(made, e.TurnEnded)] == ["completed"] * 2
    made.close()


@pytest.mark.nightly
@pytest.mark.parametrize("name", GOAL_FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    """Each planted fault is noticed within few runs, by the check of the promise that it breaks."""
    assert any(run_with(GOAL_FAULTS[name], seed, GoalScenario) for seed in range(WITHIN))
