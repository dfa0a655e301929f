"""The help of every command: it is there, and it has an example. docs/command-line.md has its words."""

from typing import Any

import pytest

from steersman import __version__
from steersman.cli.app import whole_program
from steersman.cli.exit_codes import EXIT_CODES, in_words
from steersman.machines.errors import SteersmanError


def commands(group: Any, names: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """List all commands with the names that lead to them."""
    found = [names]
    for name, inner in getattr(group, "commands", {}).items():
        found += commands(inner, (*names, name))
    return found


COMMANDS = commands(whole_program())


@pytest.mark.parametrize("names", COMMANDS, ids=lambda names: "-".join(names) or "steersman")
def test_help_of_every_command(names: tuple[str, ...], command: Any) -> None:
    """Each command explains itself with an example."""
    done = command(*names, "--help")
    assert (done.code, done.err) == (0, "")
    assert "..." not in done.out.partition("\n")[2]  # the first line is the usage
    assert f"Example: steersman {' '.join(names)}".rstrip() in done.out


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str, program: Any) -> None:
    """The version is one line on standard output."""
    done = program(option)
    assert (done.code, done.out, done.err) == (0, f"steersman {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nonsense",), "No such command 'nonsense'"),
        (("sessions", "list", "--nonsense"), "No such option"),
        (("sessions", "show"), "Missing argument"),
        (("nonsense",), 'try `steersman --help`; `steersman chat "MESSAGE"` talks to an agent'),
        (("revert", "last"), "perhaps `steersman sessions revert`"),
        (("export",), "perhaps `steersman queue export` or `steersman sessions export`"),
        (("sessions", "nonsense"), "try `steersman sessions --help`"),
        (("--nonsense",), "No such option: --nonsense"),
        (("inspect", "--diff", "3"), "try `steersman inspect --help`"),
        (("run", "/no/such.toml"), "/no/such.toml: the file can't be read"),
        (("inspect", "--format", "pdf"), "there is no format `pdf`"),
        (("inspect", "last"), "there is no session yet"),
        (("sessions", "show", "\x1b[31mnone"), r"no session `\x1b[31mnone`"),
        (("machines", "show", "tunr"), "did you mean `turn`?"),
        (("machines", "show", "turn", "--format", "x"), "formats: mermaid, svg, toml"),
        (("models", "fetch", "nothing"), "the catalogue has no model `nothing`"),
        (("models", "check", "nothing"), "steersman: no model is called `nothing`"),
        (("trust",), "there is nothing to trust in "),
    ],
)
def test_a_mistake_is_reported_as_a_sentence(
    arguments: tuple[str, ...], text: str, command: Any
) -> None:
    """A mistake ends with exit code 2 and a sentence on standard error, no trace and no escape."""
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("steersman: ")
    assert text in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


def test_options_of_the_chat_need_no_name_of_a_command(program: Any) -> None:
    """The bare command is the chat, also with options and a message."""
    done = program("--model", "nothing", "hi")
    assert done == program("chat", "--model=nothing", "hi")
    assert done.err.startswith("steersman: no model is called `nothing`")


def test_exit_codes_are_of_the_table(command: Any) -> None:
    """The help of the program lists them, and each error has one of them."""
    assert f"Exit codes: {in_words()}." in " ".join(command("--help").out.split())
    errors = [SteersmanError]
    for error in errors:
        errors += error.__subclasses__()
        assert error.exit_code in EXIT_CODES


STATUS = ("status", "list", "check", "path", "search")
"""Names of commands that print how something is."""


def test_what_prints_a_status_prints_it_as_json_too() -> None:
    """So that no program has to read tables that are for people."""
    root: Any = whole_program()
    missing = []
    for names in COMMANDS:
        found = root
        for name in names:
            found = found.commands[name]
        options = {option for parameter in found.params for option in parameter.opts}
        if names and names[-1] in STATUS and "--json" not in options:
            missing.append(" ".join(names))
    assert missing == []
