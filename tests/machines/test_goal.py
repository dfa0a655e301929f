"""The goal's machine, every state with every event."""

from pathlib import Path

import pytest
from blackbox.goal_table import REACHED
from simulation.goal_moves import rows

from steersman.machines.lifecycles import GOAL
from steersman.machines.machine import Refusal, step

MOVES = {
    ("lined_up", "begin"): "active",
    ("lined_up", "pause"): "lined_up",
    ("lined_up", "clear"): "cleared",
    ("active", "continue"): "active",
    ("active", "wait"): "waiting",
    ("active", "achieve"): "achieved",
    ("active", "give_up"): "impossible",
    ("active", "pause"): "paused",
    ("active", "resume"): "active",
    ("active", "clear"): "cleared",
    ("waiting", "wake"): "active",
    ("waiting", "pause"): "paused",
    ("waiting", "resume"): "active",
    ("waiting", "clear"): "cleared",
    ("paused", "pause"): "paused",
    ("paused", "resume"): "active",
    ("paused", "clear"): "cleared",
}


@pytest.mark.parametrize("state", [state.name for state in GOAL.states])
@pytest.mark.parametrize("event", GOAL.events)
def test_each_event_in_each_state(state: str, event: str) -> None:
    """What is in the table moves, all else is refused and changes nothing."""
    found = step(GOAL, state, event)
    expected = MOVES.get((state, event))
    assert (None if isinstance(found, Refusal) else found.state) == expected


def test_each_transition_is_gone_through_by_the_installed_command() -> None:
    """The table of black-box tests has every transition, and names tests that there are."""
    tests = Path(__file__).parents[1] / "blackbox"
    text = "".join(path.read_text("utf-8") for path in tests.glob("test_goal*.py"))
    assert REACHED.keys() == rows(GOAL)
    assert all(f"def {name}(" in text for name in REACHED.values())
