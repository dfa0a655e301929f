"""Seeds that no run has seen before, and the line that plays a failing one again.

`STEERSMAN_SEEDS` is the first of them: a run of the tests draws it and prints it.
"""

import os
from collections.abc import Callable
from typing import Any

from simulation.coverage import ASKED, MOVED, WATCH, count_tables, counted

from steersman.journal.child_record import at_work
from steersman.journal.queue_record import AT_REST
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator.choices import Seed
from steersman.simulator.elsewhere import ElsewhereScenario
from steersman.simulator.goals import GoalScenario
from steersman.simulator.loops import LoopScenario
from steersman.simulator.person import SimulatedPerson
from steersman.simulator.ports import Chances
from steersman.simulator.scenario import Scenario

__all__ = ["KINDS", "PROPERTY", "base", "play", "play_fresh"]

PROPERTY = "simulation"
"""The property of a test's report that the terminal summary reads."""


class _Steering(SimulatedPerson):
    """A person who steers children, stops them with their parents, and takes back what they have."""

    def _thing(self) -> Any:
        record, dice = self.program.record, self._dice
        handed = record.queue.apart()
        resting = [item.number for item in handed if AT_REST in item.for_children.values()]
        if resting and dice.random() < 0.6:
            taken = m.QueueChange(op="withdraw", number=dice.choice(resting))
            return dice.choice((taken, m.ResumeQueue()))
        if any(at_work(record.children)) and dice.random() < 0.5:
            said = m.Said(text="hurry", client_id=f"h{self.left}")
            steer = m.UserMessage(type="steer", said=said, intent=Intent.EXPLICIT_STEER)
            return dice.choice((steer, steer, self._stop()))
        return super()._thing()


class SteeringScenario(Scenario):
    """A session with many children, and a person who speaks to them."""

    def __init__(self, seed: Seed, **changes: Any) -> None:
        super().__init__(seed, **{"chances": Chances(calls=0.9, delegates=0.7), **changes})
        self.user.left = 0
        self.user = _Steering(self.program, self.dice, 25)


KINDS: dict[str, Callable[..., Any]] = {
    "session": Scenario,
    "goal": GoalScenario,
    "loop": LoopScenario,
    "elsewhere": ElsewhereScenario,
    "steering": SteeringScenario,
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
