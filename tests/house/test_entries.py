"""What every kind of journal entry must keep to."""

import importlib
from dataclasses import fields
from pathlib import Path

from steersman.journal.entry import Entry


def test_no_entry_has_a_field_that_the_journal_needs(root: Path) -> None:
    """A field called `kind` would take the place of the entry's own kind, and no session would load."""
    for path in (root / "journal").glob("*entr*.py"):
        importlib.import_module(f"steersman.journal.{path.stem}")
    kinds, found = [Entry], []
    while kinds:
        one = kinds.pop()
        kinds += one.__subclasses__()
        found += [f"{one.__name__}.{field.name}" for field in fields(one)]
    assert len(found) > 50
    assert not [name for name in found if name.endswith(".kind")]
