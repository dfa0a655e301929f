"""Mutants by rule: each is one change, and those that are known to be equivalent fit one."""

import pytest
from simulation.mutation import EQUIVALENT, FILES, catalogue


@pytest.mark.nightly
def test_every_mutant_is_one_change_that_can_be_compiled() -> None:
    """Each file has some; no two are the same, and each entry of the list of equivalents fits one."""
    mutants = list(catalogue())
    assert {mutant.file for mutant in mutants} == set(FILES)
    keys = [
        (mutant.file, mutant.place, mutant.before, mutant.after, mutant.number, mutant.begin)
        for mutant in mutants
    ]
    assert len(set(keys)) == len(keys)
    for known in EQUIVALENT:
        assert known.why
        assert any(known.is_of(mutant) for mutant in mutants), known
