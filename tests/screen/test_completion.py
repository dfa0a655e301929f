"""What is offered while a line is typed."""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from steersman.cli.screen.completion import ChatCompleter
from steersman.cli.screen.status import Status


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("@re", ["@reports/"]),
        ("look at @re", ["@reports/"]),
        ("/steer @re", ["@reader ", "@reports/"]),
        ("/queue steer 2 @re", ["@reader ", "@reports/"]),
    ],
)
def test_a_subagent_is_offered_where_it_is_addressed(
    tmp_path: Path, typed: str, offered: list[str]
) -> None:
    """In a command that hands it something; in a message `@` is a file."""
    (tmp_path / "reports").mkdir()
    completer = ChatCompleter(Status(children={"reader"}), tmp_path, list)
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [completion.text for completion in found] == offered


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("see @des", ['@"design final.txt"']),
        ('see @"design f', ['@"design final.txt"']),
        ("@my", ['@"my docs/', '@"my docs/plan.txt"']),
        ('@"my docs/p', ['@"my docs/plan.txt"']),
        ("@plan", ['@"my docs/plan.txt"']),
    ],
)
def test_a_path_with_a_blank_is_offered_in_quotes(
    tmp_path: Path, typed: str, offered: list[str]
) -> None:
    """As a message names it."""
    (tmp_path / "design final.txt").touch()
    (tmp_path / "my docs").mkdir()
    (tmp_path / "my docs" / "plan.txt").touch()
    completer = ChatCompleter(Status(), tmp_path, list)
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [completion.text for completion in found] == offered


@pytest.mark.parametrize(
    ("typed", "missing"),
    [
        ("see @desi", "@desi"),
        ('see @"design f', '@"design f'),
        ("see @design.txt", ""),
        ("see @design.txt.", ""),
        ('see @"design final.txt"', ""),
        ("@reader", ""),
        ("@design.txt and", ""),
        ("@notes:uri", ""),
    ],
)
def test_an_unfinished_path_is_known(tmp_path: Path, typed: str, missing: str) -> None:
    """Tab does not send it: it was to be completed."""
    for name in ("design final.txt", "design.txt"):
        (tmp_path / name).touch()
    assert ChatCompleter(Status(children={"reader"}), tmp_path, list).missing(typed) == missing
