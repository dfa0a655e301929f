"""Each key of the chat, in a real terminal."""

import threading
from contextlib import closing

import pytest
from stories.agent import call, says, uses
from stories.stage import Stage
from stories.terminal import Terminal
from support.driver import Gate
from support.model_server import Text
from support.nightly import daily
from support.until import until

from steersman.cli.screen.bindings import KEYS

from .conftest import Open

UP, DOWN, RIGHT, ESC = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b"
ALT_ENTER, CTRL_J, CTRL_R, CTRL_U = "\x1b\r", "\n", "\x12", "\x15"


def asked_for(stage: Stage, *prompts: str) -> None:
    """Wait until the model was asked for just these: between two turns a chat is idle, too."""
    until(lambda: [request.prompt for request in stage.requests()] == [*prompts], f"only {prompts}")


def at_work(stage: Stage, opened: Open, **environ: str) -> Terminal:
    """Open a chat whose turn waits for a door called `go`, with three messages that wait for it."""
    door = stage.agent.door("go")
    stage.agent.when("work", Text("Thinking aloud.", door=door))
    stage.agent.when("", says("Done."))
    terminal = opened("--yes", **environ)
    terminal.types("work")
    terminal.has_bar("working")
    for number, text in enumerate(("first", "second"), 2):
        terminal.types(text, "\t")
        terminal.shows(f'📥 Queued #{number}: "{text}"')
        terminal.has(f"#{number} waits: {text}")
    return terminal


def test_editing_what_waits(stage: Stage, opened: Open) -> None:
    """Up takes the last waiting message back, and the one before; Down goes the other way; Esc leaves it.

    Enter rewords it; one that is emptied is taken back.
    """
    terminal = at_work(stage, opened)
    terminal.presses(UP)
    terminal.has_line("second")
    terminal.has("Editing #3")
    terminal.presses(UP)
    terminal.has_line("first")
    terminal.presses(DOWN)
    terminal.has_line("second")
    terminal.presses(DOWN)
    terminal.waits(lambda: not any("Editing" in row for row in terminal.screen.display))
    terminal.presses(UP + UP)
    terminal.has_line("first")
    terminal.presses(ESC)
    terminal.waits(lambda: not any("Editing" in row for row in terminal.screen.display))
    terminal.presses(UP)
    terminal.has_line("second")
    terminal.says(" and better", "#3 reads now: second and better")
    terminal.presses(UP + UP)
    terminal.has_line("first")
    terminal.presses(CTRL_U + "\r")
    terminal.shows("Removed: #2.")
    terminal.presses(UP)
    terminal.has_line("second and better")
    terminal.presses(ESC)
    stage.agent.door("go").open()
    terminal.shows("Done.")
    asked_for(stage, "work", "second and better")


def test_what_is_edited_does_not_start(stage: Stage, opened: Open) -> None:
    """The message behind it runs first, and the line says so; Enter lets it run, reworded.

    Alt-Enter also steers with it.
    """
    door = stage.agent.door("second")
    stage.agent.when("second", Text("On it.", door=door))
    terminal = at_work(stage, opened)
    terminal.presses(UP + UP)
    terminal.has_line("first")
    terminal.has("Editing #2, which does not start meanwhile: Enter saves it")
    stage.agent.door("go").open()
    terminal.has("Editing #2, which does not start meanwhile, #3 runs first: Enter saves it")
    terminal.types(" of all", end=ALT_ENTER)
    terminal.shows("#2 reads now: first of all")
    terminal.shows("#2 goes to the running turn at its next boundary.")
    door.open()
    terminal.shows("[Steered]")
    asked_for(stage, "work", "second", "[New message from user] first of all")


def test_what_had_started_is_said_again(stage: Stage, opened: Open) -> None:
    """A text that was taken up too late becomes a new message, and the line says so."""
    terminal = at_work(stage, opened)
    terminal.presses(UP)
    terminal.has("Editing #3")
    assert stage.place.run("queue", "pop", "3", "--session", "last").returncode == 0
    terminal.has("#3 is no longer waiting: Enter sends this as a new message.")
    terminal.types(", please", end="\t")
    terminal.shows('📥 Queued #4: "second, please"')
    stage.agent.door("go").open()
    asked_for(stage, "work", "first", "second, please")


def test_a_text_that_finds_no_room_comes_back(stage: Stage, opened: Open) -> None:
    """A full queue says its limit and what can be done, and the text is in the line again."""
    stage.place.configure(stage.server.base_url, rest="[auto_queue]\nmax_queue_size = 2")
    terminal = at_work(stage, opened)
    terminal.types("third", "\t")
    terminal.shows("The queue is full, so the message was not accepted. Your text: third")
    terminal.shows("at most 2 may wait (`auto_queue.max_queue_size`)")
    terminal.has_line("third")
    stage.agent.door("go").open()


def test_several_lines(stage: Stage, opened: Open) -> None:
    """Ctrl-J and a backslash begin a new line; Enter sends all; the history gives it back whole."""
    stage.agent.when("", says("Done."))
    terminal = opened()
    for text, key in (("line one", CTRL_J), ("line two\\", "\r"), ("line three", "\r")):
        terminal.types(text, key)
        threading.Event().wait(0.2)  # as a person does: keys that come together are pasted
    terminal.shows("Done.")
    assert [request.prompt for request in stage.requests()] == ["line one\nline two\nline three"]
    terminal.presses(UP)
    terminal.has("  line three")
    terminal.has_bar("idle")
    terminal.presses("\x03")
    terminal.has_line("")
    terminal.says("other", "Done.")
    terminal.has_bar("idle")
    terminal.presses(f"{CTRL_R}two")
    terminal.has("I-search backward: two")
    terminal.has_line("line one")
    terminal.presses("\r")
    terminal.waits(lambda: not any("I-search" in row for row in terminal.screen.display))
    terminal.presses("\r")
    terminal.waits(lambda: len(stage.requests()) == 3)
    assert stage.requests()[-1].prompt == "line one\nline two\nline three"


def test_the_menu(stage: Stage, opened: Open) -> None:
    """It opens while a command, a file or a number is typed; Tab and Right take, Esc shuts it."""
    (stage.place.folder / "source").mkdir()
    (stage.place.folder / "source" / "main.py").write_text("x")
    terminal = at_work(stage, opened)
    terminal.presses("/qu")
    terminal.has("Show the queue")
    terminal.presses("\t")
    terminal.has_line("/queue")
    terminal.has(" list")
    terminal.presses("po\t")
    terminal.has_line("/queue pop")
    terminal.presses(" #")
    terminal.has("pending: first")
    terminal.presses(DOWN + DOWN + RIGHT)
    terminal.has_line("/queue pop #3")
    terminal.presses("\r")
    terminal.shows("Removed: #3.")
    terminal.presses("look at @sou")
    terminal.has(" @source/")
    terminal.presses("\t")
    terminal.has(" @source/main.py")
    terminal.presses(ESC)
    terminal.waits(lambda: not any(" @source/main.py" in row for row in terminal.screen.display))
    terminal.has_bar("working")
    terminal.types("m", "\t\t")
    terminal.shows("📥 Queued")
    items = stage.place.run("queue", "list", "--session", "last").stdout
    assert "look at @source/main.py" in items
    stage.agent.door("go").open()


def test_an_editor(stage: Stage, opened: Open) -> None:
    """Ctrl-X Ctrl-E opens the person's own editor with the line, and takes what it wrote."""
    stage.agent.when("", says("Done."))
    terminal = opened(EDITOR="sed -i s/mouse/house/")
    terminal.presses("a mouse")
    terminal.has_line("a mouse")
    terminal.presses("\x18\x05")
    terminal.has_line("a house")
    terminal.says(" with a door", "Done.")
    assert [request.prompt for request in stage.requests()] == ["a house with a door"]


def test_a_steer_by_key(stage: Stage, opened: Open) -> None:
    """Alt-Enter hands it to the running turn, which takes it in."""
    with closing(Gate(stage.place.folder)) as gate:
        look = uses(call("shell", command=gate.command))
        stage.agent.when("work", look, says("Done."))
        stage.agent.when("New message", says("With tabs."))
        terminal = opened("--yes")
        terminal.types("work")
        gate.wait()
        terminal.has("… shell")
        terminal.types("use tabs", ALT_ENTER)
        terminal.shows("Steering with #2")
        gate.open()
        terminal.shows("[Steered]")
        terminal.shows("With tabs.")


def test_the_keys_are_shown(stage: Stage, opened: Open) -> None:
    """`?` on an empty line lists every key, and is a letter in any other."""
    terminal = opened(size=(100, 40))
    terminal.presses("?")
    for key in KEYS:
        terminal.shows(f"{key.name} ")
    stage.agent.when("what", says("This."))
    terminal.says("what?", "This.")


def test_clearing(stage: Stage, opened: Open) -> None:
    """Ctrl-L takes what was said off the screen; the line with its draft stays."""
    stage.agent.when("hello", Text("Here I am."))
    terminal = opened()
    terminal.says("hello", "Here I am.")
    terminal.has_bar("idle")
    terminal.presses("a draft")
    terminal.shows("a draft")
    terminal.presses("\x0c")
    terminal.waits(lambda: not any("Here I am." in row for row in terminal.screen.display))
    terminal.has_line("a draft")
    terminal.presses(" goes on")
    terminal.has_line("a draft goes on")


@pytest.mark.parametrize("line_break", daily("\n", of=("\r", "\n", "\r\n")))
def test_lines_that_come_together_wait_for_enter(
    stage: Stage, opened: Open, line_break: str
) -> None:
    """A paste without brackets is one message, also in several reads; a tab in it queues nothing.

    Its last line may have an end. One line with its Enter, as programs type it, is sent.
    """
    stage.agent.when("", says("Done."))
    terminal = opened()
    for lines in (["line one", "\tline two", "x" * 1500, "", "the end"], ["one", "two", ""]):
        terminal.presses(line_break.join(lines))
        terminal.has(lines[-1] or lines[-2])
        before = len(stage.requests())

        threading.Event().wait(0.5)  # as a person does before the next key
        assert len(stage.requests()) == before
        terminal.presses("\r")
        terminal.shows("Done.")
        assert stage.requests()[-1].prompt.rstrip() == "\n".join(lines).rstrip()
    terminal.presses(f"alone{line_break}")
    until(lambda: stage.requests()[-1].prompt == "alone", "one line is sent")


@pytest.mark.parametrize(("options", "kind"), [((), "dumb"), (("--plain",), "xterm")])
def test_lines_that_come_together_at_a_terminal_that_only_prints(
    stage: Stage, options: tuple[str, ...], kind: str
) -> None:
    """They are one message, once a line comes alone; `--plain` reads a keyboard, too."""
    stage.agent.when("", says("Done."))
    dumb = stage.starts("chat", *options, TERM=kind)
    dumb.shows("everything is saved")
    dumb.presses("line one\nline two\nline ")
    dumb.shows("[2 lines pasted: Enter sends them as one message]")
    dumb.presses("three\n")
    dumb.shows("Done.")
    asked_for(stage, "line one\nline two\nline three")
