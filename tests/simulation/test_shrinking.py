"""Failing runs are shrunk: to few choices, the same ones each time, and a line plays them again."""

from collections.abc import Callable
from typing import Any

import pytest
from simulation.faults import FAULTS, Fault
from simulation.goal_faults import GOAL_FAULTS, RUN_FAULTS
from simulation.planting import planted_all
from simulation.test_workflow import of_a_run

from steersman.machines.errors import UsageError
from steersman.simulator.choices import Choices, read_choices, write_choices
from steersman.simulator.goals import GoalScenario
from steersman.simulator.play import play
from steersman.simulator.scenario import Scenario
from steersman.simulator.shrinking import Shrunk, replay, shrink

SMALL = {
    "never stops": (GOAL_FAULTS["never stops"], GoalScenario, 2, 4),
    "overspends the budget": (GOAL_FAULTS["overspends the budget"], GoalScenario, 0, 4),
    "a steer overtakes a goal": (RUN_FAULTS["lets a steer overtake a goal"], of_a_run, 598, 12),
    "talk cancels a child": (FAULTS["lets talk cancel a child"], Scenario, 1061, 24),
}
"""Planted faults: who plays them, from which seed, and to how many choices they shrink at most."""


def shrunk_with(fault: Fault, scenario: Callable[[Any], Any], first: int) -> Shrunk:
    """Shrink the first run that breaks with a fault, and play what came out again."""
    with planted_all(*fault.plants):
        broken = next(
            played.broken
            for played in (play(seed, scenario) for seed in range(first, first + 50))
            if played.broken is not None
        )
        shrunk = shrink(broken, (scenario,))
        assert shrunk is not None
        again, messages = replay(shrunk.choices, (scenario,))
    assert again is not None
    assert (again.promise, again.found) == (shrunk.broken.promise, shrunk.broken.found)
    assert again.promise == broken.promise
    assert messages == shrunk.messages
    return shrunk


@pytest.mark.nightly
@pytest.mark.parametrize("name", SMALL)
def test_a_planted_fault_is_shrunk_to_few_choices(name: str) -> None:
    """Few choices are left, and the run that they make breaks the same promise, again and again."""
    fault, scenario, first, most = SMALL[name]
    shrunk = shrunk_with(fault, scenario, first)
    assert shrunk.count <= most
    assert shrunk.before > 10 * shrunk.count
    assert replay(shrunk.choices, (scenario,))[0] is None, "it breaks without the fault"


def test_shrinking_is_deterministic() -> None:
    """The same run shrinks to the same choices."""
    fault, scenario, first, _ = SMALL["never stops"]
    assert shrunk_with(fault, scenario, first) == shrunk_with(fault, scenario, first)


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("scenario", [Scenario, GoalScenario, of_a_run])
def test_noted_choices_are_those_of_the_seed(scenario: Callable[[Any], Any], seed: int) -> None:
    """A run whose choices are noted is that of its seed, and these choices make the same run."""
    noted = Choices(seed)
    expected = scenario(seed).run().chronicle.all
    assert scenario(noted).run().chronicle.all == expected
    made = read_choices(write_choices(0, seed, noted.used))
    assert made == (0, seed % 2, noted.used)
    assert scenario(Choices(seed, made[2])).run().chronicle.all == expected


@pytest.mark.parametrize("text", ["", "x", "0/1 said", "0/1 said#0=x", "0 said#0=1", "1"])
def test_what_names_no_run_is_refused(text: str) -> None:
    """A text that is no list of choices is a mistake of whoever wrote it."""
    with pytest.raises(UsageError, match="no choices of a run"):
        read_choices(text)
