"""The kept list of mutants: each is noticed by the test that it names."""

import pytest
from simulation.mutants import MUTANTS
from simulation.planting import planted_all


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str) -> None:
    """The test that a mutant names passes without the mutant, and fails with it."""
    mutant = MUTANTS[name]
    mutant.noticed_by()
    with planted_all(*mutant.plants), pytest.raises(AssertionError):
        mutant.noticed_by()
    mutant.noticed_by()
