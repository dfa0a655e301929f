"""Menus of sessions and models: arrow keys, words that filter, Enter."""

from functools import partial

import pytest
from stories.agent import call, says, uses
from stories.stage import Stage
from stories.terminal import Terminal

from .conftest import Open


def chatted(stage: Stage, text: str) -> str:
    """Have a message answered in a session of its own, and return its id."""
    chat = stage.place.chat()
    chat.completes(text)
    chat.close()
    return chat.session


def test_sessions_and_models_are_chosen_in_the_chat(stage: Stage) -> None:
    """The bare command opens the chat; a command without its argument opens the menu."""
    stage.agent.when("", says("Well."))
    zod, colours = chatted(stage, "move to zod"), chatted(stage, "which colour?")
    terminal = stage.starts()
    terminal.has_bar("idle")
    terminal.types("/resume")
    terminal.has("which colour?")
    terminal.has("move to zod")
    terminal.says("zod", f"Session {zod};", "Last said here (/history shows more):")
    terminal.shows("you: move to zod")
    terminal.shows("agent: Well.")
    terminal.types("/resume")
    terminal.has("which colour?")
    terminal.presses("colour")
    terminal.has_line("/resume colour")
    terminal.has("which colour?")
    terminal.presses("\x1b[B")
    terminal.has_line(f"/resume {colours}")
    terminal.presses("\r")
    terminal.shows(f"Session {colours};")
    terminal.types("/model")
    terminal.has("qwen2.5-coder-0.5b")
    terminal.has("in use now, test-model at http://127.0.0.1:")
    terminal.presses("mai")
    terminal.waits(lambda: not any("qwen2.5-coder-0.5b" in row for row in terminal.screen.display))
    terminal.presses("\r")
    terminal.shows("From the next call on: model main")


def _is_closed(terminal: Terminal, above: list[str]) -> bool:
    """Whether no menu is there, and the line stands below the same rows as before."""
    rows = [row.rstrip() for row in terminal.screen.display]
    is_same = rows[: len(above)] == above and rows[len(above)].startswith(">")
    return is_same and not any(" /stop" in row for row in rows)


@pytest.mark.parametrize("size", [(40, 16), (80, 24), (40, 10)])
def test_the_line_stays_where_a_menu_closes(
    stage: Stage, opened: Open, size: tuple[int, int]
) -> None:
    """A menu below a question hides none of its keys; one that closes moves no row above it."""
    command = "mkdir -p one two three four; echo 1 > one/1; echo 2 > two/2; ls three; ls four"
    stage.agent.when("", uses(call("shell", command=command)))
    reason = "r no, with a reason" if size[1] > 10 else "r reason"
    terminal = opened(size=size)
    terminal.types("begin")
    terminal.has(reason)
    terminal.has_line("")
    for keys in ("\x1b", "\x7f"):
        terminal.presses("/")
        terminal.has("/stop")
        terminal.has(reason)
        terminal.has_bar("1 question")  # the lowest row, which is drawn last
        shown = terminal.screen.display
        at = next(n for n, row in enumerate(shown) if row.startswith("> /"))
        terminal.presses(keys)
        above = [row.rstrip() for row in shown[:at]]
        terminal.waits(partial(_is_closed, terminal, above))
        terminal.presses("\x15")
        terminal.has_line("")


def test_a_session_is_chosen_at_the_start(stage: Stage) -> None:
    """`chat --resume` opens a menu; one that is left opens nothing."""
    stage.agent.when("", says("Well."))
    zod = chatted(stage, "move to zod")
    chatted(stage, "which colour?")
    terminal = stage.starts("chat", "--resume")
    terminal.has("which colour?")
    terminal.says("zod", "you: move to zod", "agent: Well.")
    terminal.has_bar("idle")
    terminal.presses("\x04")
    assert terminal.ended() == 0
    terminal.shows(f"--resume {zod}")
    left = stage.starts("chat", "--resume")
    left.has("which colour?")
    left.presses("\x1b")
    assert left.ended() == 130
    dumb = stage.starts("chat", "--resume", TERM="dumb")
    dumb.shows("Which one?")
    dumb.presses("colour\n")
    dumb.shows("everything is saved")
    dumb.presses("\x04")
    assert dumb.ended() == 0
