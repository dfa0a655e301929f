"""What of the events is printed: whose turn begins, what a stopped call was, what is not said."""

import re
from io import StringIO
from typing import Any

import pytest
from prompt_toolkit.data_structures import Size

from steersman.cli.screen.appearance import Appearance
from steersman.cli.screen.screen import Screen
from steersman.cli.screen.terminal import Canvas, SteadyOutput
from steersman.cli.screen.transcript import Transcript, running_row
from steersman.cli.talk import StartedTurns, is_of_another


def accepted(name: str, number: int, how: str, text: str) -> dict[str, Any]:
    """A message that was taken in."""
    told = {"id": name, "number": number, "as": how, "text": text, "ack": None, "ack_text": None}
    return {"type": "accepted", "matched": None, "rule": "", **told}


def queue(*items: tuple[str, str, str], state: str = "open") -> dict[str, Any]:
    """A queue as its event shows it: id, state and text of each."""
    shown = [{"id": name, "state": how, "text": text, "user": ""} for name, how, text in items]
    return {"type": "queue", "state": state, "items": shown}


def started(item: str, number: int) -> dict[str, Any]:
    """A turn that begins."""
    return {"type": "turn_started", "turn": "t1", "item": item, "number": number}


HANDED_BACK = {"type": "requeued", "id": "m0", "item": "m1", "number": 1, "why": "it is done"}
"""A steer that waits again, as another message."""
JOINED = {"type": "session_started", "resumed": True}
"""What a terminal is told that joins a session."""


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([accepted("m1", 1, "turn", "now"), queue(("m1", "pending", "now"))], ""),
        ([accepted("m1", 1, "interrupt", "no"), queue(("m1", "pending", "no"))], ""),
        ([accepted("m1", 1, "queue", "then"), queue(("m1", "pending", "then"))], "then  (#1)"),
        ([accepted("m1", 1, "queue", "a"), queue(("m1", "pending", "edited"))], "edited  (#1)"),
        ([accepted("m1", 1, "queue", "a"), queue()], ""),
        ([queue(("m1", "interrupted", "cut off"), state="held")], "cut off  (#1)"),
        ([JOINED, queue(("m1", "pending", "asked before"))], "asked before  (#1)"),
        ([JOINED, accepted("m1", 1, "turn", "now"), queue(("m1", "pending", "now"))], ""),
        ([{"type": "recovered", "items": [{"id": "m1", "text": "b", "user": ""}]}], "b  (#1)"),
        ([accepted("m1", 1, "queue", "then") | {"user": "ann"}], "then  (#1 from ann)"),
        ([HANDED_BACK, queue(("m1", "pending", "a steer"))], "a steer  (#1)"),
        ([queue(("m1", "pending", "a goal's next turn"))], ""),
    ],
)
def test_whose_turn_begins(events: list[dict[str, Any]], told: str) -> None:
    """It is said of what waited or was interrupted, in its newest words; of nothing else, and once."""
    begun = StartedTurns()
    assert [begun.hear(event) for event in events] == [""] * len(events)
    assert begun.hear(started("m1", 1)) == told
    assert begun.hear(started("m1", 1)) == ""


def test_a_stopped_call_is_named() -> None:
    """A call that dies after its turn's end is shown with what it was; a report that never ran isn't."""
    rows = list[str]()
    transcript = Transcript(Appearance(), lambda: 80, rows.extend)
    call = {"turn": "t1", "call": "t1.s1.c1", "tool": "shell"}
    transcript.hear(started("m1", 1))
    transcript.hear({"type": "tool_started", **call, "arguments": {"command": "sleep 60"}})
    skipped = {"call": "t1.s1.c2", "tool": "progress", "status": "skipped", "exit_code": None}
    silent = {"bytes": 0, "lines": 0, "output": ""}
    transcript.hear({"type": "tool_ended", **skipped, **silent})
    transcript.hear({"type": "turn_ended", "turn": "t1", "status": "interrupted"})
    assert transcript.live(80, 5) == []
    killed = {"status": "killed", "exit_code": -15}
    transcript.hear({"type": "tool_ended", **call, **killed, **silent})
    (row,) = (re.sub("\x1b\\[[0-9;]*m", "", row) for row in rows)
    assert row.startswith("✗ shell sleep 60 → killed: SIGTERM")


def test_a_call_that_ran_before_is_no_new_one() -> None:
    """A terminal that joins counts from when the call began."""
    transcript = Transcript(Appearance(), lambda: 80, list[str]().extend)
    call = {"turn": "t1", "call": "t1.s1.c1", "tool": "shell", "arguments": {"command": "make"}}
    transcript.hear({"type": "tool_started", **call, "elapsed": 65.0})
    (row,) = transcript.live(80, 5)
    assert "".join(text for _, text in row).endswith("1 min 5 s")


@pytest.mark.parametrize(
    ("own", "key", "is_hidden"),
    [("", None, False), ("", "a-1-2", True), ("a-1", "a-1-2", False), ("a-1", "a-2-1", True)],
)
def test_what_another_terminal_asked_is_not_shown(own: str, key: str, is_hidden: bool) -> None:
    """A result belongs to who typed its command; what a command does comes as events of its own."""
    result: Any = {"type": "result", "client_id": key}
    assert is_of_another(result, own) == is_hidden
    assert not is_of_another(JOINED, own)  # type: ignore[arg-type]


def test_a_call_runs_for_whole_seconds() -> None:
    """A running call counts seconds, from the first."""
    call = {"tool": "shell", "arguments": {"command": "make"}}
    for seconds, told in ((0, "0 s"), (7, "7 s"), (65, "1 min 5 s")):
        row = "".join(text for _, text in running_row(call, seconds, 80, Appearance()))
        assert row == f"… shell make {told}"


class Paper(Canvas):
    """A canvas that keeps its rows, without their styles."""

    columns, lines = 80, 30

    def __init__(self) -> None:
        self.rows: list[str] = []

    def print(self, rows: list[str]) -> None:
        """Keep the rows."""
        self.rows += [re.sub("\x1b\\[[0-9;]*m", "", row) for row in rows]

    def changed(self) -> None:
        """Draw nothing."""


def text(delta: str) -> dict[str, Any]:
    """A piece of the answer."""
    return {"type": "text", "turn": "t1", "delta": delta}


def test_an_answer_that_is_cut_off_is_finished_above_what_cuts_it() -> None:
    """The message stands below the answer that it cuts off, and above its own."""
    screen = Screen(paper := Paper(), Appearance())
    screen.hear(started("m1", 1))
    screen.hear(text("First of all, w0 w1"))
    screen.echo("ok, use yup")
    assert paper.rows == []
    screen.hear(text(" w2"))
    taken = accepted("m2", 2, "interrupt", "ok, use yup") | {"ack": "interrupting"}
    screen.hear(taken)
    screen.hear({"type": "interrupted", "turn": "t1", "cause": "message", "checkpoint": None})
    usage = {"input": 1, "output": 1, "cache_read": 0, "cost": 0.0}
    screen.hear({"type": "turn_ended", "turn": "t1", "status": "interrupted", "usage": usage})
    screen.hear(started("m2", 2))
    screen.hear(text("With yup.\n"))
    assert paper.rows == [
        "First of all, w0 w1 w2",
        "",
        "▌ ok, use yup",
        '  Interrupting for #2: "ok, use yup"',
        "  Stopping current task.",
        "",
        "With yup.",
    ]


def test_a_queued_message_waits_for_the_end_of_a_line() -> None:
    """It splits no line of an answer: it stands below, at once in the rows that still change."""
    screen = Screen(paper := Paper(), Appearance())
    screen.hear(started("m1", 1))
    screen.hear(text("First of all"))
    screen.echo("then this")
    screen.hear(accepted("m2", 2, "queue", "then this") | {"ack": "queued"})
    assert paper.rows == []
    below = ["", "▌ then this", '  📥 Queued #2: "then this"']
    assert "".join(piece[1] for piece in screen.above()).split("\n") == ["First of all", *below]
    screen.hear(text(", w0\nAnd"))
    assert paper.rows == ["First of all, w0", *below]
    screen.hear(text(" more\n"))
    assert paper.rows[4:] == ["", "And more"]


def test_a_notice_about_the_whole_answer_stands_below_it() -> None:
    """A notice stands below the line that it comes into; one about an answer below all of it."""
    screen = Screen(paper := Paper(), Appearance())
    screen.hear(text("half\nan"))
    screen.hear({"type": "notice", "text": "ann: hello"})
    screen.hear(text(" answer"))
    screen.hear({"type": "notice", "text": "It was cut short.", "ends_answer": True})
    assert paper.rows == ["half", "an answer", "", "  ann: hello", "  It was cut short."]


def test_blocks_are_apart() -> None:
    """A blank row comes between blocks, none within them or before a notice about a block."""
    screen = Screen(paper := Paper(), Appearance())
    screen.write("welcome")
    screen.echo("work")
    screen.hear(accepted("m1", 1, "turn", "work"))
    screen.hear(started("m1", 1))
    screen.hear(text("\n\nI look.\n\nOnce more.\n\n\n"))
    for number in (1, 2):
        call = {"turn": "t1", "session": "s", "call": f"t1.s1.c{number}", "tool": "list"}
        screen.hear({"type": "tool_started", **call, "arguments": {"path": "."}})
        end = {"status": "ok", "exit_code": None, "output": "a\nb", "bytes": 3, "lines": 2}
        screen.hear({"type": "tool_ended", **call, **end})
    screen.hear({"type": "notice", "text": "noted"})
    screen.hear(text("Done.\n"))
    rows = [re.sub(r"\d+ ms", "1 ms", row) for row in paper.rows]
    assert rows == [
        "  welcome",
        "",
        "▌ work",
        "",
        "I look.",
        "",
        "Once more.",
        "",
        "✓ list . · 1 ms · 2 lines",
        "✓ list . · 1 ms · 2 lines",
        "  noted",
        "",
        "Done.",
    ]


@pytest.mark.parametrize(("width", "most"), [(40, 11), (80, 5), (120, 3), (600, 1)])
def test_what_still_changes_stays_on_a_small_screen(width: int, most: int) -> None:
    """Broken by a window of 40 by 20, a table that grows takes no more rows than can be erased there."""
    transcript = Transcript(Appearance(), lambda: width, lambda rows: None)
    row = f"| {'x' * 30} | {'y' * 30} |\n"
    table = f"{row}|---|---|\n{row * 9}"
    transcript.hear({"type": "text", "turn": "t1", "delta": table})
    assert len([row for row in transcript.live(width, 20) if row]) == most


def test_erasing_keeps_nothing_in_the_history_of_tmux() -> None:
    """At the first column of the first row, it would take what is erased for what scrolled away."""
    output = SteadyOutput(stream := StringIO(), lambda: Size(24, 80), "xterm")
    output.erase_down()
    output.flush()
    assert stream.getvalue() == "\x1b[K\x1b[C\x1b[J\x1b[D"
