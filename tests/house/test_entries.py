"""What every kind of journal entry must keep to."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from steersman.journal import entries
from steersman.journal.entries import Entry


def kinds_below(base: type) -> set[type]:
    """Return the entry types that derive from a base and that nothing else derives from."""
    below = base.__subclasses__()
    return set().union(*map(kinds_below, below)) if below else {base}


def test_every_kind_of_entry_can_be_read() -> None:
    """The union `Entry` names each type, so the journal knows its kind and folds can forget none."""
    families = (vars(entries)[family] for family in FOLDS)
    assert set(get_args(Entry)) == set().union(*map(kinds_below, families))


def test_no_entry_has_a_field_that_the_journal_needs() -> None:
    """A field called `kind` would take the place of the entry's own kind, and no session would load."""
    assert not [kind for kind in get_args(Entry) if "kind" in kind.__struct_fields__]


FOLDS = {
    "SessionEntry": "record",
    "QueueEntry": "queue_record",
    "TurnEntry": "turn_record",
    "ChildEntry": "child_record",
    "GoalEntry": "goal_record",
    "RevertEntry": "revert_record",
    "RunEntry": "run_record",
}


@pytest.mark.nightly
def test_a_forgotten_entry_fails_the_type_check(root: Path, tmp_path: Path) -> None:
    """A new entry of each family is an error in the module that folds this family, and nowhere else."""
    package = tmp_path / "steersman"
    for room in ("machines", "journal", "workflows"):
        shutil.copytree(root / room, package / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "__init__.py", package)
    file = package / "journal" / "entries.py"
    text = file.read_text(encoding="utf-8")
    for family in FOLDS:
        union = f"\nAny{family} = "
        before, found, members = text.partition(union)
        assert found, family
        added = f"\nclass New{family}({family}):\n    pass\n\n{union}New{family} | "
        text = before + added + members
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml")]
    command += ["--cache-dir", str(tmp_path / "cache"), "steersman/journal"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    found = re.findall(r'^steersman/journal/(\w+)\.py:\d+: error: .*"New(\w+)"', told, re.MULTILINE)
    assert sorted(found) == sorted((module, family) for family, module in FOLDS.items()), told
