"""Mutants by rule: what is changed, what is left alone, and that one is noticed in a copy."""

import pytest
from simulation import mutation
from simulation.mutation import EQUIVALENT, FILES, catalogue, mutants_of
from simulation.rules import copy_of_checkout

CODE = '''\
"""A module with `if` and ("a", "b") in its text."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
__all__ = ["f"]
KEPT = ("a", "b")
def f(x: tuple[int, int], is_on: bool = False) -> str:
    if x[0] < 3 and is_on:
        g(x)
    match x:
        case (1, 2):
            y = Kind.ONE
            return y
    return Kind.TWO
'''


def test_each_way_to_change_code_is_found() -> None:
    """Comparisons, conditions, entries, constants, calls, arms; no annotation, name or text."""
    found = [(one.line, one.before, one.after) for one in mutants_of("x.py", CODE)]
    assert found == [
        (6, '"a",', ""),
        (6, '"b"', ""),
        (7, "False", "True"),
        (8, "x[0] < 3 and is_on", "not (x[0] < 3 and is_on)"),
        (8, "x[0] < 3 and ", ""),
        (8, " and is_on", ""),
        (8, " < ", " <= "),
        (8, "0", "1"),
        (8, "3", "4"),
        (9, "g(x)", "pass"),
        (12, "y = Kind.ONE\n            return y", "pass"),
        (12, "Kind.ONE", "Kind.TWO"),
        (14, "Kind.TWO", "Kind.ONE"),
    ]


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
