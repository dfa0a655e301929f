"""Mutants by rule: what is changed, what is left alone, and that one is noticed in a copy."""

import pytest
from simulation import mutation
from simulation.mutation import EQUIVALENT, FILES, catalogue
from simulation.rules import copy_of_checkout


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


@pytest.mark.nightly
def test_a_mutant_is_noticed_by_the_nearest_tests() -> None:
    """In a copy of the checkout, which is as before afterwards."""
    [mutant] = [
        one
        for one in catalogue()
        if (one.file, one.before) == ("actors/kernel/supervisor.py", "actor.stop_children()")
    ]
    with copy_of_checkout() as copy:
        before = (copy / mutant.file).read_text()
        assert "test_supervisor.py" in mutation.noticed_by(copy, mutant)
        assert (copy / mutant.file).read_text() == before
