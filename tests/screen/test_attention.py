"""How the terminal calls a person who is away, its title, its themes, and the keys of vi."""

import re
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.styles import Style
from stories.agent import call, says, uses
from stories.stage import Stage

from steersman.cli.screen.appearance import Appearance, drawable, message_rows
from steersman.cli.screen.status import FOCUSED, UNFOCUSED, Attention, Status
from steersman.workflows.settings import TerminalSettings

from .conftest import Open

ASKS: Any = {"type": "question", "id": "q1"}
BEGINS: Any = {"type": "turn_started"}
ENDS: Any = {"type": "turn_ended"}


def settings(**changes: Any) -> TerminalSettings:
    """The settings of a terminal."""
    known = {
        "theme": "auto",
        "keys": "emacs",
        "notify": "bell",
        "notify_after": 0.0,
        "title": False,
    }
    return TerminalSettings(**(known | changes))


def called(made: TerminalSettings, focus: str, *events: Any) -> str:
    """Return what the terminal is sent at events."""
    codes = list[str]()
    here = Attention(made, codes.append, "xterm")
    here.note_focus(focus)
    for event in events:
        here.hear(event, Status(folder=Path("/x/y")), 0)
    return "".join(codes)


@pytest.mark.parametrize(
    ("changes", "focus", "events", "sent"),
    [
        ({}, UNFOCUSED, (ASKS,), "\x07"),
        ({}, FOCUSED, (ASKS, BEGINS, ENDS), ""),
        ({}, UNFOCUSED, (BEGINS, ENDS), "\x07"),
        ({"notify_after": 60.0}, UNFOCUSED, (BEGINS, ENDS), ""),
        ({}, UNFOCUSED, (BEGINS, {**ENDS, "parent": "s"}), ""),
        ({"notify": "desktop"}, UNFOCUSED, (ASKS,), "\x1b]9;steersman: a question waits\x07"),
        ({"notify": "off"}, UNFOCUSED, (ASKS, BEGINS, ENDS), ""),
    ],
)
def test_calls(changes: dict[str, Any], focus: str, events: tuple[Any, ...], sent: str) -> None:
    """A question, and the end of a long turn, call a person whose terminal has no focus."""
    assert called(settings(**changes), focus, *events) == sent


@pytest.mark.parametrize(("away", "sent"), [(3600.0, []), (0.0, ["\x07"])])
def test_without_a_focus_keys_say_who_is_there(away: float, sent: list[str]) -> None:
    """Where a terminal does not report its focus, a person who typed just now is there."""
    codes = list[str]()
    here = Attention(settings(), codes.append, away=away)
    here.note_key()
    here.hear(ASKS, Status(), 1)
    assert codes == sent


def test_the_title_obeys_nothing() -> None:
    """It has the printable characters of the folder's name, and what the agent does."""
    codes = list[str]()
    here = Attention(settings(title=True), codes.append, "xterm")
    status = Status(folder=Path("/x/ev\x1b]0;i\x07\x9c\u202e" + "l" * 100))
    here.hear(ASKS, status, 1)
    here.hear(ASKS, status, 1)
    assert codes == [f"\x1b]2;ev]0;i{'l' * 34} - question\x07"]
    assert Attention(settings(title=True), codes.append, "linux").opening() == "\x1b[?1004h"
    assert Attention(settings(notify="off"), codes.append, "xterm").opening() == ""


def test_a_theme_fills_the_rows_of_a_message() -> None:
    """The dark and the light theme put a background behind messages; NO_COLOR and `plain` none."""
    for theme, shade in (("dark", "48;5;236"), ("light", "48;5;254")):
        look = Appearance.of({}, theme)
        for row in message_rows("hello\n\nworld", 20, look, "#2"):
            printed = look.printed(row)
            assert shade in printed
            for style, _ in row:
                drawn = Style([]).get_attrs_for_style_str(drawable(style))
                assert drawn.bgcolor in ("303030", "e4e4e4")
            assert len(re.sub("\x1b\\[[0-9;]*m", "", printed)) == 20
    for look in (Appearance.of({"NO_COLOR": "1"}, "dark"), Appearance.of({}, "plain")):
        (row,) = message_rows("hello", 20, look)
        assert not re.search("\x1b\\[(?!1m|0m)", look.printed(row))


def test_a_bell_without_the_focus(stage: Stage, opened: Open) -> None:
    """In a real terminal: the focus is asked for, its reports type nothing, and a question rings."""
    stage.agent.when("work", uses(call("shell", command="echo x")), says("Done."))
    terminal = opened()
    assert b"\x1b[?1004h" in terminal.sent
    assert b"\x1b]2;project - idle\x07" in terminal.sent
    terminal.presses(UNFOCUSED)
    terminal.types("work")
    terminal.has("May `shell` run?")
    terminal.waits(lambda: b"project - question\x07" in terminal.sent)
    assert re.sub(rb"\x1b\][^\x07]*\x07", b"", terminal.sent).count(b"\x07") == 1
    terminal.presses(FOCUSED + "\x1b")
    terminal.has_bar("idle")
    terminal.has_line("")
    terminal.presses("\x04")
    assert terminal.ended() == 0
    assert terminal.sent.rindex(b"\x1b[?1004l") > terminal.sent.rindex(b"\x1b[?1004h")


def test_the_keys_of_vi(stage: Stage, opened: Open) -> None:
    """By configuration: Esc goes to navigation, where the sign is another one, and then stops."""
    stage.place.configure(stage.server.base_url, rest='[terminal]\nkeys = "vi"\ntheme = "dark"')
    stage.agent.when("two", says("Good."))
    terminal = opened()
    terminal.presses("one two")
    terminal.has_line("one two")
    terminal.presses("\x1b")
    terminal.has(": one two")
    terminal.presses("0dw")
    terminal.has(": two")
    terminal.presses("A words")
    terminal.has_line("two words")
    terminal.presses("\r")
    terminal.shows("Good.")
    assert [request.prompt for request in stage.requests()] == ["two words"]
    assert b"\x1b[48;5;236m" in terminal.sent
