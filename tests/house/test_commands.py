"""A command is declared once, documented, and its data is checked by a test that fails without it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.echo import walk

from steersman.cli.app import ABOUT, command_named
from steersman.cli.commands.session_command import EXCEPTIONS
from steersman.gateway.commands.registry import COMMANDS, DECLARED
from steersman.workflows.settings import Settings

PROGRAM = {name: command.callback.__module__ for name, command in walk()}
"""The commands of the command line, as `queue add`, and where each is declared."""


def checked(folder: Path) -> Iterator[str]:
    """Give the commands that tests below a folder name in `checks_data`, which decorates a test."""
    for path in folder.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(
                        "checks_data"
                    ):
                        yield from (ast.literal_eval(name) for name in mark.args)


@pytest.fixture(scope="module")
def checks() -> frozenset[str]:
    """The commands whose data is checked. `tests/blackbox/conftest.py` proves each of these tests."""
    tests = Path(__file__).parents[1]
    return frozenset([*checked(tests / "blackbox"), *checked(tests / "extensions")])


@pytest.mark.parametrize("name", [*(f"/{name}" for name in DECLARED), *PROGRAM])
def test_the_data_of_every_command_is_checked(name: str, checks: frozenset[str]) -> None:
    """A black-box test is marked `checks_data` with it, and so fails if it is an echo."""
    assert name in checks, f'no black-box test is marked `@pytest.mark.checks_data("{name}")`'


def test_only_commands_are_checked(checks: frozenset[str]) -> None:
    """A mark does not name what is no command, or no longer one."""
    assert checks - {f"/{name}" for name in DECLARED} - {*PROGRAM} == set()


@pytest.mark.parametrize("name", DECLARED)
def test_every_command_is_on_the_command_line(name: str) -> None:
    """As a twin that is made from its declaration, or by hand or not at all, for a reason."""
    groups = {group for group, _, verb in (twin.partition(" ") for twin in PROGRAM) if verb}
    twin = name if name.partition(" ")[0] in groups else f"sessions {name}"
    assert (name in EXCEPTIONS) != (PROGRAM.get(twin) == DECLARED[name].function.__module__)


def test_every_exception_is_one() -> None:
    """What is made by hand is a command, and each has its reason."""
    assert EXCEPTIONS.keys() - DECLARED.keys() == set()
    assert {command for command, _ in EXCEPTIONS.values()} - {*PROGRAM, ""} == set()
    assert all(reason for _, reason in EXCEPTIONS.values())


@pytest.mark.parametrize("name", ABOUT)
def test_the_listing_says_what_the_help_says(name: str) -> None:
    """The first lines of helps stand twice, since `--help` imports no command."""
    assert " ".join((command_named(name).help or "").split("\n\n")[0].split()) == ABOUT[name]


@pytest.mark.parametrize("name", DECLARED)
def test_every_command_is_documented(name: str, root: Path) -> None:
    """`docs/commands.md` has a row for each, and the declaration a sentence."""
    command = DECLARED[name]
    assert command.doc.endswith("."), name
    page = (root / "docs" / "commands.md").read_text(encoding="utf-8")
    row = re.compile(rf"^\| `/{re.escape(name)}[ `]", re.MULTILINE)
    assert row.search(page), f"`/{name}` is not in docs/commands.md: run `make docs`"


def test_every_setting_of_a_command_is_read(root: Path) -> None:
    """A key of `[commands]` is read by a command, by its name."""
    paths = (root / "gateway" / "commands").glob("*.py")
    text = "\n".join(path.read_text() for path in paths if path.name != "command.py")
    settings: Any = Settings.__annotations__["commands"]
    assert not [name for name in settings.__struct_fields__ if f'"{name}"' not in text]


def test_no_two_commands_have_the_same_name() -> None:
    """Nor has an alias the name of another command."""
    aliases = [alias for command in DECLARED.values() for alias in command.aliases]
    names = [*COMMANDS, *aliases]
    assert sorted(set(names)) == sorted(names)
