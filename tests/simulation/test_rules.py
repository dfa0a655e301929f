"""The rules that nothing may break can be broken as the list says, and one of them is."""

import ast
from pathlib import Path

import pytest
from simulation.rules import RULES, Break, broken, copy_of_checkout, failure

ROOT = Path(__file__).resolve().parents[2]
BREAKS = [at for rule in RULES for at in rule.breaks]


def test_there_are_ten_rules() -> None:
    """Each is a sentence of its own, and can be broken."""
    assert len({rule.text for rule in RULES}) == len(RULES) == 10
    assert all(rule.breaks for rule in RULES)


@pytest.mark.parametrize("at", BREAKS, ids=lambda at: f"{at.file}: {at.test.rpartition('::')[2]}")
def test_a_break_fits_the_code(at: Break) -> None:
    """What is replaced occurs once, the file can be compiled afterwards, and the test exists."""
    text = (ROOT / at.file).read_text(encoding="utf-8")
    assert text.count(at.find) == 1
    compile(text.replace(at.find, at.put), at.file, "exec")
    file, _, name = at.test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.nightly
def test_a_broken_rule_is_noticed() -> None:
    """In a copy of the checkout the named test passes, fails with the rule broken, and passes again."""
    [at] = [at for at in BREAKS if at.file == "journal/tables.py"]
    with copy_of_checkout() as copy:
        assert failure(copy, at.test) == ""
        with broken(copy, at):
            assert failure(copy, at.test).startswith("assert [True, True] == [False, True]")
        assert failure(copy, at.test) == ""
    assert not copy.exists()
