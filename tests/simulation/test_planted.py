"""The planted faults that are found fast, one by one; `make prove` looks for all of them."""

import pytest
from simulation.planted import PLANTED, find

FAST = {
    "delivers a result twice": 3,
    "tells before durable": 1,
    "skips the gate": 7,
    "resumes after recovery": 4,
    "starts two turns": 2,
    "takes a repeated message twice": 1,
    "drops a message that interrupts": 5,
    "starts a tool twice": 2,
    "overspends the budget": 3,
    "goes on after a stop": 13,
    "never stops": 3,
    "a model goes round for ever": 2,
    "each step of a turn is a repetition": 2,
}
"""Faults, and after how many seeds a promise breaks."""


@pytest.mark.parametrize("name", FAST)
def test_a_planted_fault_is_found(name: str) -> None:
    """A promise breaks within as many seeds as ever, and the report says which."""
    found = find(name, most=FAST[name])
    assert found is not None
    assert found.broken.promise
    assert found.seeds == FAST[name]


def test_forty_faults_are_planted() -> None:
    """There are at least forty, in every part that can be at fault."""
    assert len(PLANTED) >= 40
    parts = {"decision", "goal", "run", "table", "machine", "journal", "ledger", "store"}
    assert parts <= {fault.where for fault in PLANTED.values()}
