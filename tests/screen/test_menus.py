"""Menus of sessions and models: arrow keys, words that filter, Enter."""

from stories.agent import says
from stories.stage import Stage
from stories.terminal import Terminal
from support.driver import COMMAND


def chatted(stage: Stage, text: str) -> str:
    """Have a message answered in a session of its own, and return its id."""
    chat = stage.place.chat()
    chat.send(text)
    chat.wait("turn_ended")
    chat.close()
    return chat.session


def opened(stage: Stage, *words: str) -> Terminal:
    """Start the program in a terminal."""
    terminal = Terminal((*COMMAND, *words), stage.place.folder, stage.place.environ, (80, 24))
    stage.terminals.append(terminal)
    return terminal


def test_sessions_and_models_are_chosen_in_the_chat(stage: Stage) -> None:
    """The bare command opens the chat; a command without its argument opens the menu."""
    stage.agent.when("", says("Well."))
    zod, colours = chatted(stage, "move to zod"), chatted(stage, "which colour?")
    terminal = opened(stage)
    terminal.has_bar("idle")
    terminal.types("/resume")
    terminal.has("which colour?")
    terminal.has("move to zod")
    terminal.types("zod")
    terminal.shows(f"Session {zod};")
    terminal.shows("Last said here (/history shows more):")
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


def test_a_session_is_chosen_at_the_start(stage: Stage) -> None:
    """`chat --resume` opens a menu; one that is left opens nothing."""
    stage.agent.when("", says("Well."))
    zod = chatted(stage, "move to zod")
    chatted(stage, "which colour?")
    terminal = opened(stage, "chat", "--resume")
    terminal.has("which colour?")
    terminal.types("zod")
    terminal.shows("you: move to zod")
    terminal.shows("agent: Well.")
    terminal.has_bar("idle")
    terminal.presses("\x04")
    assert terminal.ended() == 0
    terminal.shows(f"--resume {zod}")
    left = opened(stage, "chat", "--resume")
    left.has("which colour?")
    left.presses("\x1b")
    assert left.ended() == 130
    dumb = Terminal(
        (*COMMAND, "chat", "--resume"),
        stage.place.folder,
        stage.place.environ | {"TERM": "dumb"},
        (80, 24),
    )
    stage.terminals.append(dumb)
    dumb.shows("Which one?")
    dumb.presses("colour\n")
    dumb.shows("everything is saved")
    dumb.presses("\x04")
    assert dumb.ended() == 0
