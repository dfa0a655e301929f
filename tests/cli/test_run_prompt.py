"""The lines above the prompt of a run."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.output import DummyOutput
from support.patience import seconds

from steersman.cli.runs.prompt import LinesAbove, RunScreen


class Kept(DummyOutput):
    """Keeps what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def write_raw(self, data: str) -> None:
        """Keep it."""
        self.text += data


class EndedPrompt:
    """A prompt whose event loop ends before it carries out what it is given, or `is_closed`."""

    def __init__(self, *, is_closed: bool) -> None:
        self.loop = self
        self.was_asked = threading.Event()
        self._is_closed = is_closed

    def call_soon_threadsafe(self, work: Callable[[], Any]) -> None:
        """Forget it."""
        self.was_asked.set()
        if self._is_closed:
            raise RuntimeError("Event loop is closed")


@pytest.mark.parametrize("is_closed", [False, True])
def test_lines_outlive_the_prompt_that_was_to_print_them(is_closed: bool) -> None:
    """What the prompt did not print is printed before later lines, or at the end."""
    output, prompt = Kept(), EndedPrompt(is_closed=is_closed)
    with create_app_session(output=output) as session:
        asked: Any = session
        with LinesAbove() as lines:
            asked.app = prompt
            lines.write("while the prompt ended\n")
            assert prompt.was_asked.wait(seconds(10))
            asked.app = None
            lines.write("after the prompt\n")
        assert output.text == "while the prompt ended\nafter the prompt\n"

        output.text = ""
        prompt.was_asked.clear()
        with LinesAbove() as lines:
            asked.app = prompt
            lines.write("the last line\n")
        assert output.text == "the last line\n"


def test_a_question_says_whose_it_is() -> None:
    """Several agents of a run may ask: the oldest question is shown, with the name of who asks."""
    screen = RunScreen(lambda text: None, can_utf8=True)
    events: list[Any] = [
        {"type": "child_started", "session": "r", "name": "a-2", "task": "x", "id": "r-2"},
        {
            **{
                "type": "question",
                "session": "r-2",
                "parent": "r",
                "id": "q-t1.s1.c1",
                "turn": "t1",
            },
            **{"kind": "permission", "tool": "shell", "arguments": {"command": "true"}},
            **{"options": ["allow", "always", "deny"], "step": None, "default": None},
        },
    ]
    assert screen.ask_text() == ""
    for event in events:
        screen.hear(event)
    assert screen.ask_text().startswith("a-2 asks for\nshell: true\nMay it run? [y]es")
