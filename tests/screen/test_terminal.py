"""The chat screen in a real terminal: what is shown while it works, at every size."""

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest
from stories.agent import call, says, uses
from stories.stage import Stage
from stories.terminal import Terminal
from support.model_server import Text
from support.notes_server import NOTES
from support.patience import seconds

from .conftest import Open

SAID = "what I type while it talks is mine, every letter of it"
TOKENS = 240


def tokens(count: int) -> str:
    """Words that are all different, in paragraphs that are longer than any row."""
    words = [f"t{n}x" for n in range(count)]
    return "".join(f"{word}\n" if at % 60 == 59 else f"{word} " for at, word in enumerate(words))


def shown_tokens(terminal: Terminal) -> list[str]:
    """Return the tokens that are on the screen or above it, in order."""
    return re.findall(r"t\d+x", "\n".join(terminal.rows))


@pytest.mark.nightly
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_typing_while_it_streams(stage: Stage, opened: Open, columns: int) -> None:
    """Every token is there once and in order, and every key, though both came at the same time."""
    end = stage.agent.door("end")
    stage.agent.when("talk", Text(tokens(TOKENS), pause=0.004, door=end))
    terminal = opened(size=(columns, 24))
    terminal.says("talk", "t5x")
    for sign in SAID:
        terminal.presses(sign)
        before = len(terminal.sent)
        terminal.waits(lambda before=before: len(terminal.sent) > before)
    terminal.shows(f"t{TOKENS - 1}x")
    assert shown_tokens(terminal) == [f"t{n}x" for n in range(TOKENS)]
    terminal.has_bar("working")
    end.open()
    terminal.has_bar("idle")
    assert "".join(SAID.split()) in "".join("".join(terminal.screen.display).split())
    assert shown_tokens(terminal) == [f"t{n}x" for n in range(TOKENS)]
    assert max(len(row) for row in terminal.rows) <= columns


def test_what_is_typed_after_an_unknown_command_replaces_it(stage: Stage, opened: Open) -> None:
    """It comes back to be corrected: a key that moves keeps it, any other begins a new line."""
    terminal = opened()
    terminal.says("/clear", "did you mean `/new`?")
    terminal.has_line("/clear")
    terminal.presses("/help")
    terminal.has_line("/help")
    terminal.presses("\r")
    terminal.shows("/queue")
    terminal.says("/stpo", "did you mean `/stop`?")
    terminal.has_line("/stpo")
    terminal.presses("\x1b[D\x7fo\x1b[C")
    terminal.has_line("/stoo")


def test_a_window_that_is_resized(stage: Stage, opened: Open) -> None:
    """In the middle of an answer: what comes fits the new size, the line and the bar are there once."""
    stage.agent.when("talk", Text(tokens(400), pause=0.004))
    terminal = opened(size=(100, 30))
    terminal.says("talk", "t20x")
    terminal.presses("my words")
    terminal.has_line("my words")
    for at, size in enumerate([(50, 30), (38, 30), (120, 30)]):
        terminal.resizes(*size)
        terminal.shows(f"t{60 + 90 * at}x")
        terminal.has_line("my words")
        terminal.waits(lambda: sum(row.startswith("> my") for row in terminal.screen.display) == 1)
    terminal.has_bar("idle")
    found = shown_tokens(terminal)
    assert found[-1] == "t399x"
    assert len(found) == len(set(found))


def test_a_paste_of_five_thousand_lines(stage: Stage, opened: Open) -> None:
    """It is shown as one word, sent whole and as one message, and typing goes on behind it."""
    stage.agent.when("pasted", says("Read."))
    terminal = opened()
    terminal.presses("look: ")
    terminal.pastes("\r".join(f"pasted {n}" for n in range(5_000)))
    terminal.shows("> look: [Pasted #1: 5,000 lines]")
    terminal.says(" thanks", "Read.")
    (request,) = stage.server.requests
    text = "\n".join(f"pasted {n}" for n in range(5_000))
    assert request.prompt == f"look: {text} thanks"
    assert len(terminal.rows) < 40
    terminal.presses("\x1b[A")
    terminal.has_line("look: [Pasted #1: 5,000 lines] thanks")


@pytest.mark.nightly
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_question_that_is_answered_late(stage: Stage, opened: Open, columns: int) -> None:
    """The card waits while commands are answered and messages queue; then one key answers it.

    A second is denied with a reason, which the model reads; a third is withdrawn by Esc.
    """
    runs = call("shell", command="echo made it; true")
    stage.agent.when("work", uses(runs), uses(runs), uses(runs), says("Done."))
    terminal = opened(size=(columns, 24))
    terminal.types("work")
    terminal.has("May `shell` run?")
    terminal.has("y yes, once")
    terminal.says("/queue", "#1 [RUNNING]: work")
    terminal.says("and then this", "📥 Queued #2")
    terminal.has_bar("1 question")
    answers(terminal, "y")
    terminal.shows("You allowed `shell` once.")
    terminal.shows("✓ shell echo made it")
    terminal.has("May `shell` run?")
    answers(terminal, "r")
    terminal.has_line("n")
    terminal.presses("it is\x1b")
    terminal.has_line("")  # the question stays, and the turn goes on
    terminal.has("May `shell` run?")
    answers(terminal, "r")
    terminal.has_line("n")
    terminal.says("use make instead", "You denied `shell`: use make instead", "✗ shell")
    terminal.has("May `shell` run?")
    terminal.presses("\x1b")
    terminal.shows("✗ shell")
    terminal.shows("Stopping current task.")
    terminal.has_bar("idle")
    assert "y yes" not in "".join(terminal.screen.display)
    assert "▌ y" not in terminal.rows
    told = [message["content"] for message in stage.server.requests[-1].body["messages"]]
    assert any("use make instead" in str(one) for one in told)


def is_lit(terminal: Terminal) -> bool:
    """Whether the keys of a card act: they are bold then."""
    for at, row in enumerate(terminal.screen.display):
        if (
            place := max(
                map(row.find, ("y yes, once", "y let it run", "e answer", "Enter answers"))
            )
        ) >= 0:
            return bool(terminal.screen.buffer[at][place].bold)
    return False


def answers(terminal: Terminal, key: str) -> None:
    """Press a key that answers the card that is shown."""
    terminal.waits(lambda: is_lit(terminal))
    terminal.presses(key)


@pytest.mark.nightly
def test_several_questions_at_once(stage: Stage, opened: Open) -> None:
    """Two calls of one answer ask one after the other; each is counted and answered separately.

    A letter with others behind it is the beginning of a message, and answers nothing.
    """
    both = uses(call("shell", command="echo first"), call("shell", command="echo second"))
    stage.agent.when("work", both, says("Done."))
    terminal = opened()
    terminal.types("work")
    terminal.has("echo first")
    terminal.has_bar("working 2 s")
    terminal.says("actually, hurry", "📥 Queued #2")
    terminal.says("yes", "✓ shell echo first")
    terminal.has("echo second")
    terminal.says("/answer q-t1.s1.c2 deny", "✗ shell echo second", "Done.")
    assert "always" not in "".join(terminal.screen.display[-4:])


def test_a_key_that_was_typed_ahead_answers_nothing(stage: Stage, opened: Open) -> None:
    """It stays in the line, with all that follows; the card waits on."""
    door = stage.agent.door("ask")
    stage.agent.when("work", uses(call("shell", command="echo no"), saying="So", door=door))
    terminal = opened()
    terminal.says("work", "So")
    terminal.presses("y")
    terminal.has_line("y")
    door.open()
    terminal.has("May `shell` run?")
    terminal.waits(lambda: is_lit(terminal))
    terminal.presses("n")
    terminal.has_line("yn")
    terminal.types(" and more", end="\t")
    terminal.shows('📥 Queued #2: "yn and more"')
    terminal.has("May `shell` run?")
    terminal.has_bar("1 question")


def test_enter_answers_only_what_was_asked_when_the_line_was_begun(
    stage: Stage, opened: Open
) -> None:
    """Words that were begun before the card are a message; those below it answer, and are shown."""
    doors = [stage.agent.door(name) for name in ("first", "second")]
    stage.agent.when(
        "work",
        uses(call("shell", command="touch early"), saying="So", door=doors[0]),
        uses(call("shell", command="touch late"), saying="Then", door=doors[1]),
        says("Done."),
    )
    terminal = opened()
    terminal.says("work", "So")
    terminal.types("yes please", end="")
    terminal.has_line("yes please")
    doors[0].open()
    terminal.has("May `shell` run?")
    terminal.waits(lambda: is_lit(terminal))
    terminal.presses("\r")
    terminal.shows('#2: "yes please"')
    terminal.has_bar("1 question")
    terminal.says("no thanks", "You denied `shell`. (You wrote: no thanks)")
    assert not (stage.place.folder / "early").exists()
    doors[1].open()


def test_an_answer_under_a_card_that_is_gone_is_no_message(stage: Stage, opened: Open) -> None:
    """Somebody else has answered: Enter says so, and a second one sends what was typed."""
    stage.agent.when("work", uses(call("shell", command="touch there")), says("Done."))
    terminal = opened()
    terminal.types("work")
    terminal.has("May `shell` run?")
    terminal.waits(lambda: is_lit(terminal))
    terminal.types("no thanks", end="")
    terminal.has_line("no thanks")
    assert stage.place.run("sessions", "answer", "last", "q1", "allow").returncode == 0
    terminal.shows("Done.")
    terminal.presses("\r")
    terminal.shows("That question is closed. Enter again sends this as a message.")
    terminal.has_line("no thanks")
    terminal.presses("\r")
    terminal.shows("▌ no thanks")


@pytest.mark.nightly
def test_three_widths_of_always(stage: Stage, opened: Open) -> None:
    """`a` allows a program with its subcommand, `e` every edit in the folder; each says so, and holds."""
    (stage.place.folder / "notes.txt").write_text("one\n")
    shell = (uses(call("shell", command=f"git status --short {n}")) for n in range(2))
    edits = (
        uses(call("edit", path="notes.txt", old="one", new="two")),
        uses(call("write", path="src/new.txt", content="x\n")),
    )
    stage.agent.when("work", *shell, *edits, uses(call("shell", command="git push")), says("Done."))
    terminal = opened()
    terminal.types("work")
    terminal.has("a always shell git status*")
    answers(terminal, "a")
    terminal.shows("You allowed `shell git status*` for this session.")
    terminal.has("May `edit` run?")
    answers(terminal, "e")
    terminal.shows("You allowed every edit in this folder for this session.")
    terminal.shows("✓ edit notes.txt")
    terminal.shows("✓ write src/new.txt")
    terminal.has("git push")
    answers(terminal, "n")
    terminal.shows("You denied `shell`.")
    terminal.shows("Done.")


@pytest.mark.nightly
def test_a_held_call_is_changed_in_the_line(stage: Stage, opened: Open) -> None:
    """`e` puts the answer with the call's arguments into the line, to be edited; `y` lets it run."""
    push = uses(call("shell", command="echo main"))
    stage.agent.when("work", push, push, says("Done."))
    terminal = opened()
    terminal.says("/hold shell echo*", "Held for the rest of this session: shell 'echo*'.")
    terminal.types("work")
    terminal.has("Held: may `shell` run?")
    answers(terminal, "e")
    terminal.has_line('/answer q-t1.s1.c1 change {"command": "echo main"}')
    terminal.presses("\x7f" * len('main"}'))
    terminal.says('draft"}', "✓ shell echo draft")
    terminal.has("Held: may `shell` run?")
    answers(terminal, "y")
    terminal.shows("You let `shell` run.")
    terminal.shows("✓ shell echo main")
    terminal.shows("Done.")


def test_a_form_of_a_server_is_answered_in_the_line(stage: Stage, opened: Open) -> None:
    """The card says what each field takes; `e` begins the line that fills it in."""
    pytest.importorskip("mcp", reason="the extra is not installed")
    with (stage.place.home / "config.toml").open("a") as config:
        config.write(f"[mcp.notes]\ncommand = {json.dumps([sys.executable, str(NOTES)])}\n")
        config.write(f"wait = {seconds(30)}\n")
        config.write('[permissions]\nrules = [{ tool = "mcp__*", do = "allow" }]\n')
    stage.agent.when("work", uses(call("mcp__notes__file_note", name="milk")), says("Done."))
    terminal = opened()
    terminal.types("work")
    terminal.has("`notes` asks: Where does milk go?")
    terminal.has("folder: one of home, work (Where to put it)")
    terminal.has("copies: a whole number, may be left out, usually 1")
    answers(terminal, "e")
    terminal.has_line('/answer q-t1.s1.c1.q1 answer {"folder": "", "copies": 1}')
    terminal.presses("\x17" * 4)
    terminal.says('{"folder": "home"}', "`notes` got an answer.", "Done.")
    assert "filed milk in home, 1 times" in str(stage.requests("work")[-1].body)


def test_tools_are_folded_and_unfold(stage: Stage, opened: Open) -> None:
    """A call is a row with its result; an edit has its diff; Ctrl-O and `/show` unfold the rest."""
    (stage.place.folder / "notes.txt").write_text("one\ntwo\nthree\n")
    stage.agent.when(
        "work",
        uses(call("shell", command="seq 1 2000; cat go")),
        uses(call("edit", path="notes.txt", old="two", new="2")),
        says("Done."),
    )
    terminal = opened("--yes")
    os.mkfifo(stage.place.folder / "go")
    terminal.types("work")
    terminal.has("  1997")
    terminal.has("  2000")
    (stage.place.folder / "go").write_text("the last line\n")
    terminal.shows("✓ shell seq 1 2000; cat go → the last line")
    assert "  1999" not in terminal.rows
    terminal.shows("✓ edit notes.txt")
    terminal.shows("  -two")
    terminal.shows("  +2")
    terminal.shows("Done.")
    terminal.has_bar("idle")  # what is unfolded amid an answer stands above it
    assert "  1200" not in terminal.rows
    terminal.presses("\x0f")
    terminal.shows("edit t1.s2.c1")
    terminal.presses("\x0f")
    terminal.shows("lines left out")
    terminal.says("/show t1.s2.c1", "old: two")
    terminal.has_bar("idle")


def test_nothing_raw_reaches_the_terminal(stage: Stage, opened: Open) -> None:
    """What the model, a tool or a message says in control codes is shown without them."""
    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[5n"
    tool = uses(call("shell", command="printf '\\033]0;owned\\007\\033[31mred'"), saying=evil)
    stage.agent.when("work", tool, says(evil))
    terminal = opened("--yes", NO_COLOR="1")
    terminal.pastes("work \x1b]0;owned\x07")
    terminal.presses("\r")
    terminal.shows("✓ shell")
    terminal.has_bar("idle")
    terminal.says("/queue list", "The queue is empty.")
    assert b"\x1b]" not in re.sub(rb"\x1b\]2;project - \w+\x07", b"", terminal.sent)
    assert b"\x1b[31m" not in terminal.sent
    colours = re.findall(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d)(?:;\d+)*m", terminal.sent)
    assert colours == []


def test_a_terminal_without_utf8(stage: Stage, opened: Open) -> None:
    """Plain letters stand for every sign of ours."""
    stage.agent.when("work", uses(call("shell", command="seq 3")), says("- *done*"))
    terminal = opened("--yes", PYTHONIOENCODING="ascii")
    terminal.says("work", "ok shell seq 3 -> 3 -", "* done")
    terminal.has_bar("assistant - ")
    terminal.types("?", "")
    terminal.shows("Ctrl-X Ctrl-E")
    assert all(byte < 128 for byte in terminal.sent)


def test_a_terminal_that_can_only_print_asks(stage: Stage, opened: Open) -> None:
    """With TERM=dumb a question is printed, and a line answers it; nothing moves the cursor."""
    made = call("shell", command="echo made it", timeout=60)
    stage.agent.when("work", uses(made), says("Done."))
    terminal = opened(TERM="dumb")
    terminal.says("work", "May it run? [y]es, [a]lways this exact call, [n]o")
    asked = [row.rstrip() for row in terminal.rows]
    assert asked[asked.index("shell: echo made it") + 1] == "  timeout: 60"
    terminal.says("y", "Done.")
    terminal.presses("\x04")
    assert terminal.ended() == 0
    assert b"\x1b" not in terminal.sent
    assert terminal.rows[-1:] != []


def test_the_files_of_the_screen_are_private(stage: Stage, opened: Open) -> None:
    """The history is kept for the next start, private to the user, and the terminal's mark is deleted."""
    stage.agent.when("hello", says("Good day."))
    terminal = opened()
    terminal.says("hello there", "Good day.")
    state = stage.place.home / "state"
    marks = list((state / "terminals").iterdir())
    assert [stat.S_IMODE(mark.stat().st_mode) for mark in marks] == [0o600]
    terminal.presses("\x04")
    assert terminal.ended() == 0
    assert list(Path(state / "terminals").iterdir()) == []
    assert stat.S_IMODE((state / "history.jsonl").stat().st_mode) == 0o600
    later = opened()
    later.presses("\x1b[A")
    later.has_line("hello there")


def test_the_bar_shows_how_full_the_window_is(stage: Stage, opened: Open) -> None:
    """Of a model whose window is known; `/usage` says it too, beside the tokens of the session."""
    stage.place.configure(stage.server.base_url, model="context_window = 10000")
    stage.agent.when("hello", says("Good day."))
    terminal = opened()
    terminal.types("hello")
    terminal.has_bar("1 % of 10k")
    terminal.says("/usage", "100 tokens in (60 % cached), 20 out", "of 10,000 tokens (")
