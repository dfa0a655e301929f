"""No wake is missing: at rest nobody has anything to do; and each kind of entry is known to be needed."""

from contextlib import ExitStack

import pytest
from simulation.wakes import first_missed, missed, nobody_sleeps, without

from steersman.actors import wakes
from steersman.simulator.goals import GoalScenario
from steersman.simulator.scenario import Scenario

FEW = 25
WITNESSES = {
    "ChildInterrupted": (Scenario, 9),
    "GoalJudged": (GoalScenario, 123),
    "InterruptPlanned": (Scenario, 67),
    "InterruptRequested": (GoalScenario, 0),
    "Interrupted": (GoalScenario, 976),
    "RevertRefused": (Scenario, 17),
    "Reverted": (Scenario, 10),
    "SteerArrived": (Scenario, 121),
    "Stopped": (Scenario, 31),
    "TurnEnded": (GoalScenario, 2),
    "TurnStarted": (GoalScenario, 3),
    "Withdrawn": (Scenario, 314),
}
"""A run of each kind of entry that goes wrong when these entries wake nobody."""
BESIDE_OTHERS = {
    *("Answered", "ChildCancelled", "ChildDetached", "ChildEnded", "ChildStarted", "GoalBegun"),
    *(
        "GoalCleared",
        "GoalPaused",
        "GoalResumed",
        "GoalSet",
        "InterruptCalledOff",
        "JudgingStopped",
    ),
    *("Queued", "QueueReleased", "Requeued", "SessionFinalizing", "SessionLeaving", "StopNoted"),
}
"""Kinds that stand in for each other: a run goes wrong without all of them, none without a single one.

Nothing says that another one is always beside, and a wake too many costs nothing.
"""
TOGETHER = (GoalScenario, 0)


@pytest.mark.nightly
def test_nothing_is_due_while_no_message_waits() -> None:
    """Whoever is woken then finds nothing to do: each actor was woken for all that concerns it."""
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


@pytest.mark.parametrize("name", WITNESSES)
def test_a_missing_wake_is_found(name: str) -> None:
    """A run goes well, and not if entries of this kind wake nobody."""
    [kind] = [kind for kind in wakes.CONCERNS if kind.__name__ == name]
    scenario, seed = WITNESSES[name]
    assert missed(scenario, seed) == ""
    with without(kind):
        assert "had not been woken" in missed(scenario, seed)


def test_missing_wakes_that_stand_in_for_each_other_are_found() -> None:
    """A run goes well, and not without all of them."""
    kinds = [kind for kind in wakes.CONCERNS if kind.__name__ in BESIDE_OTHERS]
    assert missed(*TOGETHER) == ""
    with ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(without(kind))
        assert "had not been woken" in missed(*TOGETHER)


def test_each_kind_is_known() -> None:
    """An entry that wakes others has its run, or the reason why there is none."""
    names = {kind.__name__ for kind in wakes.CONCERNS}
    assert names == WITNESSES.keys() | BESIDE_OTHERS
    assert not WITNESSES.keys() & BESIDE_OTHERS
