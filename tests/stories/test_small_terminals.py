"""Ordinary use where there is little room: forty columns, and a terminal that can only print."""

from collections.abc import Generator
from pathlib import Path

import pytest
from support.model_server import Text

from .agent import says
from .stage import Stage
from .terminal import Terminal

WISH = "explain ownership to me, please, and without a book"
BEGIN = "Every value has one owner."


@pytest.fixture
def stage(tmp_path: Path) -> Generator[Stage]:
    """A stage with one turn that ends only by a stop, and one that ends normally."""
    here = Stage(tmp_path, "screen")
    here.agent.when("ownership", Text(BEGIN, door=here.agent.door("explaining")))
    here.agent.when("hello", says("Good day."))
    yield here
    here.close()


def opened(stage: Stage, size: tuple[int, int], **environ: str) -> Terminal:
    """Open a chat in a terminal of this size."""
    terminal = stage.starts("chat", "--yes", size=size, **environ)
    terminal.shows("everything")
    return terminal


def said(terminal: Terminal, start: str) -> list[str]:
    """Return the rows from the one that begins so, without empty ones and without their indent."""
    rows = [row.strip() for row in terminal.rows if row]
    first = next(at for at, row in enumerate(rows) if row.startswith(start))
    return rows[first:]


def test_forty_columns(stage: Stage) -> None:
    """Words stay whole, nothing is said twice, and the bar is one row."""
    terminal = opened(stage, (40, 15))
    terminal.has_bar("idle")
    terminal.says(WISH, "Every value")
    terminal.types("hello", "\t")
    terminal.shows('📥 Queued #2: "hello"')
    terminal.says("please stop", "Held: 1 waiting. /queue resume runs", "them.")
    terminal.has_bar("1 held")
    terminal.presses("\x04")
    assert terminal.ended() == 0
    assert said(terminal, "/help lists") == [
        "/help lists the commands, ? the keys.",
        "Ctrl-D leaves; everything is saved.",
        "▌ explain ownership to me, please, and",
        "▌ without a book",
        BEGIN,
        "▌ hello",
        '📥 Queued #2: "hello"',
        "▌ please stop",
        '⚠️ Interrupt detected: "stop"',
        "Stopping current task.",
        "Held: 1 waiting. /queue resume runs",
        "them.",
        "Saved, with 1 interrupted and 1",
        "waiting. Continue with: steersman",
        f"chat --resume {stage.stored()['id']}",
    ]


def test_a_terminal_that_can_only_print(stage: Stage) -> None:
    """Each line is there once; Ctrl-C stops the turn, and leaves when nothing runs."""
    terminal = opened(stage, (80, 24), TERM="dumb")
    terminal.says(WISH, BEGIN)
    terminal.presses("\x03")
    terminal.shows("Ctrl-C again leaves.")
    terminal.shows("Stopping current task.")
    terminal.says("hello", "Good day.")
    terminal.presses("\x04")
    assert terminal.ended() == 0
    assert said(terminal, WISH) == [
        WISH,
        f"{BEGIN}^C",
        "Ctrl-C again leaves.",
        "Stopping current task.",
        "hello",
        "Good day.",
        f"Saved, with 1 interrupted. Continue with: steersman chat --resume {stage.stored()['id']}",
    ]
