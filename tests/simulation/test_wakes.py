"""At rest nobody has anything to do: each decision wakes all other actors of its session."""

from typing import Any

import pytest
from simulation.planting import planted
from simulation.wakes import first_missed, missed, nobody_sleeps

from steersman.actors.ledger import Ledger
from steersman.simulator.goals import GoalScenario
from steersman.simulator.scenario import Scenario

FEW = 25


def test_nothing_is_due_while_no_message_waits() -> None:
    """Whoever is woken then finds nothing to do."""
    assert first_missed(range(FEW)) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(FEW, 1_025, 100))
def test_nothing_is_due_in_many_runs(first: int) -> None:
    """The same in more runs."""
    assert first_missed(range(first, first + 100), longest=300.0) == ""


@pytest.mark.parametrize("seed", [13, 78])
def test_an_empty_queue_is_not_held(seed: int) -> None:
    """Once what was held is gone, and only a summary ran, the queue is let go of at once."""
    with nobody_sleeps():
        Scenario(seed).run()


def test_a_goals_next_turn_has_its_time_limit() -> None:
    """Also one that begins in the same moment in which the last one failed."""
    with nobody_sleeps():
        GoalScenario(65).run()


@pytest.mark.parametrize("role", ["turn", "children", "queue", "session", "goal"])
def test_an_actor_that_is_not_woken_is_noticed(role: str) -> None:
    """A run goes well, and not if this actor is woken by nobody."""
    wake = Ledger.wake

    def wake_others(ledger: Ledger, name: Any) -> None:
        if name != role:
            wake(ledger, name)

    runs = ((Scenario, 2), (GoalScenario, 0))
    assert [missed(*run) for run in runs] == ["", ""]
    with planted(Ledger, "wake", wake_others):
        assert any("had not been woken" in missed(*run) for run in runs)
