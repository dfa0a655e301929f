"""Seeds that no run has seen before, and the line that plays a failing one again.

`STEERSMAN_SEEDS` is the first of them: a run of the tests draws it and prints it.
"""

import os
from collections.abc import Callable
from typing import Any

from simulation.coverage import ASKED, MOVED, WATCH, count_tables, counted

from steersman.simulator.elsewhere import ElsewhereScenario
from steersman.simulator.goals import GoalScenario
from steersman.simulator.loops import LoopScenario
from steersman.simulator.scenario import Scenario

__all__ = ["KINDS", "PROPERTY", "base", "play", "play_fresh"]

PROPERTY = "simulation"
"""The property of a test's report that the terminal summary reads."""

KINDS: dict[str, Callable[..., Any]] = {
    "session": Scenario,
    "goal": GoalScenario,
    "loop": LoopScenario,
    "elsewhere": ElsewhereScenario,
}


def base() -> int:
    """Return the first seed of this run."""
    return int(os.environ["STEERSMAN_SEEDS"])


def play(kind: str, seed: int) -> None:
    """Play one seed; say how to play it again if it breaks a promise."""
    try:
        KINDS[kind](seed, watch=WATCH, tables=count_tables).run()
    except Exception as error:
        again = f"steersman simulate --seed {seed}"
        raise AssertionError(f"{kind} seed {seed}: {error}\nplay it again: {again}") from error


def play_fresh(
    kind: str, count: int, record_property: Callable[[str, Any], None], offset: int = 0
) -> None:
    """Play so many fresh seeds, and note which they are and what they come upon.

    `offset` keeps several such tests apart: all of a run have the same base.
    """
    first = base() + offset
    noted: dict[str, Any] = {"kind": kind, "first": first, "count": count}
    record_property(PROPERTY, noted)
    ASKED.clear()
    MOVED.clear()
    WATCH.overtook.clear()
    with counted():
        for seed in range(first, first + count):
            play(kind, seed)
    noted["points"] = [list(map(str, point)) for point in (*ASKED, *MOVED)]
    noted["lanes"] = [list(pair) for pair in WATCH.overtook]
