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
