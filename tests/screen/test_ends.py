"""How a turn and the chat are ended by keys, and that the terminal is in order after any end."""

import os
import shlex
import signal

import pytest
from stories.agent import call, says, uses
from stories.stage import Stage
from support.driver import COMMAND, Gate, wait_gone
from support.model_server import Text

from .conftest import Open


@pytest.fixture
def talking(stage: Stage) -> Stage:
    """A model whose answer ends only by a stop."""
    stage.agent.when("talk", Text("It goes on and on.", door=stage.agent.door("never")))
    stage.agent.when("hello", says("Good day."))
    return stage


@pytest.mark.nightly
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("key", ["\x1b", "\x03"], ids=["Esc", "Ctrl-C"])
def test_a_turn_is_stopped_by_a_key(talking: Stage, opened: Open, key: str, columns: int) -> None:
    """The turn ends, what is in the line stays, and the chat goes on; Ctrl-C clears the line first."""
    terminal = opened(size=(columns, 24))
    terminal.says("talk", "It goes on and on.")
    terminal.presses("draft")
    terminal.has_line("draft")
    terminal.presses(key)
    if key == "\x03":
        terminal.waits(lambda: not any("draft" in row for row in terminal.screen.display))
        terminal.has_bar("working")
        terminal.presses(key)
        terminal.shows("Ctrl-C again leaves.")
    terminal.shows("Stopping current task.")
    terminal.has_bar("idle")
    if key == "\x1b":
        terminal.has_line("draft")
        terminal.presses("\x15")
    terminal.says("hello", "Good day.")


def test_two_of_them_leave(talking: Stage, opened: Open) -> None:
    """Ctrl-C during a turn stops it, a second one leaves, and one line says how to go on."""
    terminal = opened()
    terminal.says("talk", "It goes on and on.")
    terminal.presses("\x03")
    terminal.shows("Ctrl-C again leaves.")
    terminal.presses("\x03")
    terminal.shows("Saved, with 1 interrupted. Continue with: steersman chat --resume")
    assert terminal.ended() == 0
    assert talking.place.left() == []


def test_a_line_that_is_begun_in_between_is_cleared(talking: Stage, opened: Open) -> None:
    """However soon a second Ctrl-C comes, it leaves on an empty line only."""
    terminal = opened()
    for draft in ("one", "two"):
        terminal.presses(draft)
        terminal.has_line(draft)
        terminal.presses("\x03")
        terminal.has_line("")
    terminal.says("talk", "It goes on and on.")
    terminal.presses("\x03")
    terminal.shows("Stopping current task.")
    terminal.presses("three")
    terminal.has_line("three")
    terminal.presses("\x03")
    terminal.has_line("")
    terminal.says("hello", "Good day.")


def test_leaving_at_the_prompt(stage: Stage, opened: Open) -> None:
    """Ctrl-C first clears a line that is begun, then leaves; Ctrl-D leaves on an empty line only."""
    first = opened()
    first.presses("draft")
    first.has_line("draft")
    first.presses("\x04")
    first.presses("\x03")
    first.waits(lambda: not any("draft" in row for row in first.screen.display))
    first.presses("\x03")
    first.shows("Saved.")
    assert first.ended() == 0
    second = opened()
    second.presses("\x04")
    second.shows("Saved.")
    assert second.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_the_terminal_is_in_order_after_any_end(stage: Stage, number: int) -> None:
    """After TERM it is as before at once; after a kill the next start puts it back, also its pastes."""
    chat = shlex.join([*COMMAND, "chat"])
    asks = "echo now: $(stty -a | grep -o -- '-\\?icanon\\|-\\?isig\\|[^a-z]echo ')"
    script = f"stty sane; while read word; do {chat}; {asks}; done"
    place = stage.place
    terminal = stage.starts("-c", script, program=["sh"], size=(100, 24))
    terminal.presses("go\n")
    terminal.has_bar("idle")
    (pid,) = [pid for pid, one in place.processes().items() if one.endswith("steersman chat")]
    os.kill(pid, number)
    killed = number == signal.SIGKILL
    terminal.shows("now: -isig -icanon -echo" if killed else "now: isig icanon echo")
    terminal.presses("go\n")
    terminal.has_bar("idle")
    terminal.presses("\x04")
    terminal.shows("now: isig icanon echo")
    assert terminal.sent.rstrip().rfind(b"\x1b[?2004l") > terminal.sent.rfind(b"\x1b[?2004h")


@pytest.mark.parametrize("key", ["\x1b", "\x03"], ids=["Esc", "Ctrl-C"])
def test_a_helper_in_the_background_is_stopped_by_a_key(
    stage: Stage, opened: Open, key: str
) -> None:
    """The turn has ended, and its subagent works: a key stops that, and leaves nothing behind."""
    gate = Gate(stage.place.folder)
    asked = call("delegate", task="count the stars", name="kid", background=True)
    stage.agent.when("go", uses(asked), says("Off it goes."))
    stage.agent.when("count the stars", uses(call("shell", command=gate.command)), says("Many."))
    terminal = opened("--yes")
    terminal.says("go", "Off it goes.")
    pid = gate.wait()
    terminal.has_bar("kid at work")
    terminal.presses(key)
    terminal.shows("kid stopped")
    assert wait_gone([pid]) == []
    terminal.has_bar("idle")
    gate.close()


def test_a_judged_goal_is_stopped_by_a_key(stage: Stage, opened: Open) -> None:
    """Between two turns, while the judge takes its time: no further turn begins."""
    verdict = Text('{"verdict": "continue", "reason": "no"}', door=stage.agent.door("judged"))
    stage.agent.when("## The goal", verdict)
    stage.agent.when("make it", says("Made."), says("Once more."))
    terminal = opened("--yes")
    terminal.says("/goal make it", "Made.")
    terminal.has_bar("judging")
    terminal.presses("\x1b")
    terminal.shows("Goal paused")
    stage.agent.door("judged").open()
    terminal.has_bar("idle")
    assert not [row for row in terminal.rows if "Once more." in row]


def test_a_chat_in_memory_promises_nothing(stage: Stage, opened: Open) -> None:
    """Where sessions are not kept, the line about leaving says so."""
    file = stage.place.home / "config.toml"
    file.write_text(f"{file.read_text()}\n[auto_queue.persistence]\nenabled = false\n")
    terminal = stage.starts("chat")
    terminal.shows("Ctrl-D leaves; nothing is saved.")
