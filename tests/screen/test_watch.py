"""`inspect --watch` in a real terminal: drawn over, never wiped, at any size, until Ctrl-C."""

import pytest
from stories.agent import call, says, uses
from stories.stage import Stage
from support.driver import Gate

WIPES = (b"\x1b[2J", b"\x1b[3J", b"\x1bc")
BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"


@pytest.mark.parametrize("form", ["tree", "json"])
def test_watch_follows_without_flicker(stage: Stage, form: str) -> None:
    """Each picture is one write over the last, the new size counts, and Ctrl-C gives the screen back."""
    gate = Gate(stage.place.folder)
    stage.agent.when("count", uses(call("shell", command=gate.command)), says("There are four."))
    chat = stage.place.at_work(gate, "count the stars")
    terminal = stage.starts("inspect", "--watch", "--format", form)
    terminal.has("acting" if form == "tree" else '"id": "')
    terminal.has("more lines" if form == "json" else "shell  running")
    chat.send({"text": "and the planets", "as": "queue"})
    if form == "tree":
        terminal.has("#2  [PENDING]  and the planets")
        terminal.resizes(44, 12)
        chat.send({"text": "and the moons", "as": "queue"})
        terminal.has("more lines")
        assert all(len(row) <= 44 for row in terminal.screen.display)
        terminal.resizes(100, 60)
        gate.open()
        terminal.has("actor session  idle  waits for a message")
    frames = bytes(terminal.sent).split(BEGIN)[1:]
    assert frames
    assert all(frame.startswith(b"\x1b[H") for frame in frames)
    assert not [wipe for wipe in WIPES if wipe in terminal.sent]
    terminal.presses("\x03")
    assert terminal.ended() == 130
    assert bytes(terminal.sent).endswith(b"\x1b[?25h\x1b[?1049l")
    assert chat.process.poll() is None
