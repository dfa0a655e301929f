"""Random people, random schedules, random crashes: every promise holds in all of them."""

import logging
from collections.abc import Generator

import pytest
from simulation.directed import interrupt_while_steers_enter
from simulation.faults import FAULTS, CutsTooSoon, run_with
from simulation.scenario import Scenario

from steersman.actors.session import Session

SEEDS = 2_000
CHUNK = 100
FEW = 60


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """Poisoned actors die loudly; here that is no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_promises_hold_in_some_runs() -> None:
    """No promise is broken in the first runs, uniform and by priorities in turn."""
    for seed in range(FEW):
        Scenario(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, SEEDS, CHUNK))
def test_promises_hold_in_many_runs(first: int) -> None:
    """No promise is broken in any of these runs."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        Scenario(seed).run()


@pytest.mark.parametrize("seed", [3, 4])
def test_a_seed_is_a_run(seed: int) -> None:
    """The same seed gives the same history, happening by happening."""
    first, second = Scenario(seed).run().history, Scenario(seed).run().history
    assert first == second


def test_a_cut_while_steers_enter_is_found() -> None:
    """A stop that does not wait for the steers just entering breaks a promise; the real one doesn't."""
    interrupt_while_steers_enter(Session)
    with pytest.raises(AssertionError, match="in a row"):
        interrupt_while_steers_enter(CutsTooSoon)


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    """Each planted fault is noticed within the runs of the full suite."""
    found = next((seed for seed in range(SEEDS) if run_with(FAULTS[name], seed)), None)
    assert found is not None
