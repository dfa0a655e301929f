"""Runs that nobody has seen before, and what fixed ones come upon."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from simulation.coverage import ASKED, MOVED, Coverage, counted
from simulation.lanes import WATCH
from simulation.seeds import play, play_fresh

RecordProperty = Callable[[str, Any], None]

SESSIONS, GOALS = 150, 80
CHUNKS, CHUNK = 20, 100
FIXED_SESSIONS, FIXED_GOALS = 1_200, 400
OVERTAKING = {("SYSTEM", "CONTROL"), ("SYSTEM", "DATA"), ("CONTROL", "DATA")}


def test_fresh_sessions_keep_their_promises(record_property: RecordProperty) -> None:
    """No promise is broken in sessions that are drawn anew each time."""
    play_fresh("session", SESSIONS, record_property)


def test_fresh_goals_keep_their_promises(record_property: RecordProperty) -> None:
    """No promise is broken with goals that are drawn anew each time."""
    play_fresh("goal", GOALS, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", ["session", "goal"])
def test_many_fresh_runs_keep_their_promises(
    kind: str, chunk: int, record_property: RecordProperty
) -> None:
    """No promise is broken in 2,000 runs that are drawn anew each time."""
    play_fresh(kind, CHUNK, record_property, offset=chunk * CHUNK)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_no_run_comes_upon_has_a_reason() -> None:
    """Fixed seeds reach each cell and transition but those of which we know why they are not."""
    coverage = Coverage()
    ASKED.clear()
    MOVED.clear()
    WATCH.overtook.clear()
    with counted():
        for kind, count in (("session", FIXED_SESSIONS), ("goal", FIXED_GOALS)):
            for seed in range(count):
                with suppress(AssertionError):  # the other tests are about the promises
                    play(kind, seed)
    coverage.add((*ASKED, *MOVED), WATCH.overtook)
    unexplained = [" ".join(point) for point in coverage.unexplained()]
    assert not unexplained, "; ".join(unexplained)
    assert coverage.lanes == OVERTAKING
