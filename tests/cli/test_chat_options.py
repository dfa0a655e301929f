"""What is typed after `chat` means the same whether or not Typer reads it."""

import os
from pathlib import Path
from typing import Any

import pytest

from steersman.cli import chat
from steersman.cli.app import command_named, dispatch
from steersman.cli.chat_options import FLAGS, VALUES, ChatOptions, usual_options

USUAL = (
    (),
    ("hi",),
    ("hi", "--yes"),
    ("--agent", "critic", "hi"),
    ("--model", "tiny", "--json"),
    ("--continue", "--plain"),
    ("--resume", "ab12", "--cwd", "there", "--debug", "two words"),
    ("--model", "one", "--model", "two"),
)
LEFT = (
    ("--help",),
    ("hi", "there"),
    ("--nonsense",),
    ("--model",),
    ("--model=tiny",),
    ("--cwd", "--yes"),
    ("--", "--yes"),
    ("-y",),
    ("",),
    ("--agent", ""),
)


@pytest.mark.parametrize("arguments", USUAL)
def test_the_same_as_typer(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read at once is what Typer makes of it."""
    typed: list[ChatOptions] = []

    def note(options: ChatOptions, environ: Any) -> int:
        assert environ is os.environ
        typed.append(options)
        return 0

    monkeypatch.setattr(chat, "chat", note)
    assert dispatch(["chat", *arguments]) == 0
    assert [usual_options(arguments)] == typed


def test_a_sentence_that_begins_with_a_dash_is_a_message() -> None:
    """No option has spaces in its name."""
    found = usual_options(("--yes", "--silent should be called --quiet"))
    assert found is not None
    assert (found.is_yes, found.message) == (True, "--silent should be called --quiet")
    assert usual_options(("--agent=a b",)) is None


@pytest.mark.parametrize("arguments", LEFT)
def test_what_is_left_to_typer(arguments: tuple[str, ...]) -> None:
    """Mistakes, help and unusual ways to write it are not read."""
    assert usual_options(arguments) is None


def test_every_option_is_known() -> None:
    """The options are those that are declared, with and without a value."""
    command: Any = command_named("chat")
    options = [param for param in command.params if param.param_type_name == "option"]
    assert {option.opts[0] for option in options if option.is_flag} == set(FLAGS)
    assert {option.opts[0] for option in options if not option.is_flag} == set(VALUES)


def test_the_folder_is_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--cwd` it is the folder in which the command was typed."""
    monkeypatch.chdir(tmp_path)
    options = usual_options(["hi"])
    assert options is not None
    assert options.folder == tmp_path
