"""The planted faults that are found fast, one by one; `make prove` looks for all of them."""

import pytest
from simulation.planted import find

FAST = (
    "delivers a result twice",
    "tells before durable",
    "skips the gate",
    "resumes after recovery",
    "starts two turns",
    "takes a repeated message twice",
    "drops a message that interrupts",
    "starts a tool twice",
    "overspends the budget",
    "goes on after a stop",
    "never stops",
    "a model goes round for ever",
    "each step of a turn is a repetition",
)
SOON = 50
"""Seeds of each kind within which these are found, in whatever order actors take their turns."""


@pytest.mark.parametrize("name", FAST)
def test_a_planted_fault_is_found(name: str) -> None:
    """A promise breaks soon, and the report says which."""
    found = find(name, most=SOON)
    assert found is not None
    assert found.broken.promise
