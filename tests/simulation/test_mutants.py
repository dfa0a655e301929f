"""The kept list of mutants: each is noticed by the test that it names."""

import pytest
from simulation.mutants import GONE, MUTANTS
from simulation.planting import planted_all


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str) -> None:
    """The test that a mutant names passes without the mutant, and fails with it."""
    mutant = MUTANTS[name]
    mutant.noticed_by()
    with planted_all(*mutant.plants), pytest.raises(AssertionError):
        mutant.noticed_by()
    mutant.noticed_by()


def test_no_mutant_is_forgotten() -> None:
    """Every id of the first list is planted, or it is said why it cannot be."""
    ids = (
        "R01 R02 R03 R04 T01 T02 T03 T05 T07 J01 J02 J03 J04 E01 E02 E03 H01 H02 H04 H05 "
        "A3 A4 F3 F6 F8 F12 G3 G4 G6 G7 G8 L05 S7 L01 L02 L03 L04 S01 S02 S04 S05 X03 X04 X05 X07 X08 "
        "W1 W2 W3"
    )
    assert {name.split()[0] for name in MUTANTS} | set(GONE) == set(ids.split())
    assert not set(MUTANTS) & set(GONE)
