"""What every kind of journal entry must keep to."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from steersman.journal import entries
from steersman.journal.entries import Entry
from steersman.machines import protocol as m

WHOLE = {m.Said: 3, m.CallEnd: 4}
"""Values that are carried whole, and how many of their fields in another class are no accident."""


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
EVENTS = {
    **dict.fromkeys(("SessionEntry", "QueueEntry", "TurnEntry"), "translation"),
    **{"ChildEntry": "child", "GoalEntry": "goal", "RevertEntry": "compaction", "RunEntry": "run"},
}
MOST = 5
"""Modules that a new entry, or a new command of a person that changes a session for good, touches."""


@pytest.mark.nightly
def test_a_forgotten_entry_fails_the_type_check(root: Path, tmp_path: Path) -> None:
    """A new entry is an error where its family is folded and where its event is made, and nowhere else.

    With the module of its own and the decision that makes it, that is all that it touches.
    """
    package = tmp_path / "steersman"
    ignored = shutil.ignore_patterns("__pycache__", "tests", ".*", "docs", "benchmarks", "examples")
    shutil.copytree(root, package, ignore=ignored)
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
    command += ["--cache-dir", str(tmp_path / "cache")]
    command += [f"steersman/{room}" for room in ("journal", "actors", "gateway", "extensions")]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    found = re.findall(r'^steersman/([\w/]+)\.py:\d+: error: .*"New(\w+)"', told, re.MULTILINE)
    folds = {(f"journal/{module}", family) for family, module in FOLDS.items()}
    events = {(f"gateway/events/{module}", family) for family, module in EVENTS.items()}
    assert set(found) == folds | events, told
    for family in FOLDS:
        named = {module for module, about in found if about == family}
        assert len({*named, "journal/entries", "its decision"}) <= MOST, named


def test_a_command_that_changes_a_session_touches_few_modules(modules: list[Any]) -> None:
    """Renaming: its message, its entry, its fold, its row among the decisions, its slash command.

    Others that use it: an export writes the name as an entry, an edit of the last message names a fork,
    a replay and a session that is taken over are named, and a replay's table has it as only noted.
    """
    users = {
        "gateway/views/session_file.py",
        "gateway/views/takeover.py",
        "gateway/replay/at_home.py",
        "simulator/replay/script.py",
        "gateway/commands/edit_last.py",
        "cli/commands/session_changes.py",
    }
    names = {"Rename", "SessionRenamed"}
    found = {
        module.name
        for module in modules
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ClassDef) and node.name in names)
    }
    assert len(found - users) <= MOST, found


def test_what_is_said_and_how_a_call_ends_are_declared_once(modules: list[Any]) -> None:
    """No message, entry or record repeats the fields of `Said` or `CallEnd`: it has the value itself."""
    found = {kind: set[str]() for kind in WHOLE}
    for module in modules:
        if module.room in ("machines", "journal", "actors"):
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    fields = {
                        part.target.id
                        for part in node.body
                        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
                    }
                    for kind, most in WHOLE.items():
                        if len(fields & set(kind.__struct_fields__)) >= most:
                            found[kind].add(node.name)
    assert found == {kind: {kind.__name__} for kind in WHOLE}


def test_each_field_of_a_record_says_what_it_is(modules: list[Any]) -> None:
    """A state dump is read field by field."""
    for module in modules:
        if module.room == "journal" and module.path.stem.endswith("record"):
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and node.name.endswith("Record"):
                    parts = zip(node.body, [*node.body[1:], None], strict=True)
                    for part, following in parts:
                        if isinstance(part, ast.AnnAssign):
                            where = f"{module.name}, {node.name}: {ast.unparse(part.target)}"
                            assert isinstance(following, ast.Expr), where
