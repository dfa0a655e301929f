"""`/edit-last` in the terminal: the last message comes back into the line."""

import pytest
from stories.agent import call, says, uses
from stories.stage import Stage
from support.driver import Gate

from .conftest import Open


@pytest.mark.parametrize("keys", ["/edit-last\r", "\x1b[1;3A"])
def test_the_last_message_is_edited_and_sent_again(stage: Stage, opened: Open, keys: str) -> None:
    """A command or a key puts it into the line; Enter sends what it was made, in its place."""
    stage.agent.when("sky", says("Blue."))
    stage.agent.when("rose", says("Red."))
    terminal = opened()
    terminal.says("which colour has the sky", "Blue.")
    terminal.has_bar("idle")
    terminal.presses(keys)
    terminal.has_line("/edit-last which colour has the sky")
    terminal.has("Enter sends this in place of your last message")
    terminal.presses("\x7f" * len("sky"))
    terminal.says("rose", "Red.")
    terminal.has("goes back to what came of #1.")
    terminal.has_bar("idle")
    terminal.says("/history", "user: which colour has the rose")
    assert not any(row.startswith("user: which colour has the sky") for row in terminal.rows)


def test_escape_takes_the_line_away_and_stops_nothing(stage: Stage, opened: Open) -> None:
    """While a turn runs; a second Esc stops the turn."""
    gate = Gate(stage.place.folder)
    stage.agent.when("build", uses(call("shell", command=gate.command)), says("Built."))
    terminal = opened("--yes")
    terminal.types("build")
    gate.wait()
    terminal.presses("\x1b[1;3A")
    terminal.has_line("/edit-last build")
    terminal.presses("\x1b")
    terminal.has_line("")
    terminal.has_bar("working")
    gate.open()
    terminal.shows("Built.")
