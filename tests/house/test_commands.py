"""A slash command is declared once, documented, and typed or sent by a test."""

import re
from pathlib import Path
from typing import Any

import pytest

from steersman.gateway.commands.registry import COMMANDS, DECLARED
from steersman.workflows.settings import Settings


def uses(name: str, function: str, tests: str) -> bool:
    """Whether tests type a command, or send it as a call."""
    typed = rf"(?<![\w.])/{re.escape(name)}(?![\w-])"
    called = rf"(?<![\w.]){re.escape(function)}\("
    sent = rf"\bcall\(\"{re.escape(name)}\""
    return re.search(f"{typed}|{called}|{sent}", tests) is not None


@pytest.fixture(scope="module")
def tests() -> str:
    """The source of all tests but those of the house."""
    folder = Path(__file__).parents[1]
    files = [path for path in folder.rglob("*.py") if "house" not in path.parts]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("name", DECLARED)
def test_every_command_is_tested(name: str, tests: str) -> None:
    """Some test types `/NAME`, or sends its call."""
    function = getattr(DECLARED[name].function, "__name__", "")
    assert uses(name, function, tests), f"no test types `/{name}`"


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
    model: Any = Settings.model_fields["commands"].annotation
    assert not [name for name in model.model_fields if f'"{name}"' not in text]


def test_a_command_that_no_test_types_is_found() -> None:
    """Longer names, paths and other functions are not taken for it."""
    assert uses("queue", "queue", 'say("/queue list")')
    assert uses("stop", "stop", "run(stop())")
    assert not uses("ping", "ping", 'say("/pinging"); open("a/ping"); x.ping(); notping()')


def test_no_two_commands_have_the_same_name() -> None:
    """Nor has an alias the name of another command."""
    aliases = [alias for command in DECLARED.values() for alias in command.aliases]
    names = [*COMMANDS, *aliases]
    assert sorted(set(names)) == sorted(names)
