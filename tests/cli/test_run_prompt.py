"""The rows above the prompt of a run."""

from collections.abc import Callable
from typing import Any

import pytest
from prompt_toolkit.output import DummyOutput

from steersman.cli.screen.terminal import Canvas


class Kept(DummyOutput):
    """Keeps what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def write_raw(self, data: str) -> None:
        """Keep it."""
        self.text += data


class EndedPrompt:
    """A prompt whose event loop ends before it carries out what it is given, or `has_ended`."""

    def __init__(self, *, has_ended: bool) -> None:
        self.loop: Any = self
        self._has_ended = has_ended

    def is_closed(self) -> bool:
        """It is not known yet."""
        return False

    def call_soon_threadsafe(self, work: Callable[[], Any]) -> None:
        """Forget it."""
        if self._has_ended:
            raise RuntimeError("Event loop is closed")


@pytest.mark.parametrize("has_ended", [False, True])
def test_rows_outlive_the_prompt_that_was_to_print_them(has_ended: bool) -> None:
    """What the prompt did not print is printed before later rows, or at the end."""
    output: Any = Kept()
    prompt: Any = EndedPrompt(has_ended=has_ended)
    canvas = Canvas(output, lambda: False)
    canvas.app = prompt
    canvas.print(["while the prompt ended"])
    prompt.loop = None
    canvas.print(["after the prompt"])
    prompt.loop = prompt
    canvas.print(["the last row"])
    canvas.drain()
    assert output.text == "while the prompt ended\r\nafter the prompt\r\nthe last row\r\n"
