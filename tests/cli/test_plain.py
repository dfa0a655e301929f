"""Events as plain text: each thing once, in the order in which it happened."""

from typing import Any

import pytest

from steersman.cli import plain
from steersman.cli.plain import SILENT, PlainInterface, Silence

Event = dict[str, Any]


class TextSink:
    """Collects the printed text."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        """Add a text."""
        self.text += text


def printed(*events: Event, has_bar: bool = False) -> list[str]:
    """Return the lines that these events make."""
    sink = TextSink()
    interface = PlainInterface(sink.write, sink.write, has_bar=has_bar)
    for event in events:
        interface.hear(event)
    return sink.text.splitlines()


def accepted(name: str, said_as: str, number: int) -> Event:
    """A message that was taken."""
    fields = {"id": name, "as": said_as, "number": number, "text": name}
    ack = {"queue": "queued", "steer": "steered"}.get(said_as)
    return {"type": "accepted", **fields, "matched": None, "ack": ack}


def queue(state: str, *names: str) -> Event:
    """A queue in which these wait."""
    fields: Event = {"state": "pending", **({"held": True} if state == "held" else {})}
    return {"type": "queue", "state": state, "items": [{"id": name, **fields} for name in names]}


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([queue("held", "a", "b")], ["2"]),
        ([queue("open", "a"), queue("held", "a")], ["1"]),
        ([queue("held", "a"), queue("held", "a", "b")], ["1", "2"]),
        ([queue("held", "a", "b"), queue("held", "b"), queue("open")], ["2"]),
        ([queue("held"), queue("held", "a")], ["1"]),
        ([queue("open", "a", "b")], []),
    ],
)
def test_held_is_said_when_more_is_held(events: list[Event], said: list[str]) -> None:
    """Not again for each that is taken back."""
    assert printed(*events) == [f"Held: {n} waiting. /queue resume runs them." for n in said]


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ([{"id": "b", "state": "pending", "held": True}], "2"),
        ([{"id": "b", "state": "running"}], "1"),
    ],
)
def test_what_one_stop_holds_is_said_once(then: list[Event], said: str) -> None:
    """The steers of the turn are held first, then what waits behind it, or that starts."""
    steer = {"id": "a", "state": "pending", "held": True}
    first = [steer, {"id": "b", "state": "pending"}]
    events = [
        {"type": "queue", "state": "open", "items": items} for items in (first, [steer, *then])
    ]
    assert printed(*events) == [f"Held: {said} waiting. /queue resume runs them."]


@pytest.mark.parametrize("is_reply_first", [True, False])
def test_a_hold_is_said_once(*, is_reply_first: bool) -> None:
    """By the command or by the change of the queue, whichever comes first."""
    items = [{"id": "b", "state": "pending"}]
    before = {"type": "queue", "state": "open", "items": items}
    said = "Held: 1 waiting. /queue resume runs them."
    about = {"client_id": None, "name": "queue", "ok": True, "data": {}}
    both = [
        {"type": "result", "text": said, **about},
        {"type": "queue", "state": "held", "items": [{**items[0], "held": True}]},
    ]
    events = [before, *(both if is_reply_first else reversed(both))]
    assert printed(*events) == [said]


def test_a_stop_is_answered_once() -> None:
    """The command's own answer is the end of the turn; where there was none to stop, it says so."""
    result = {"type": "result", "name": "stop", "text": "Stopping turn t1."}
    assert printed({**result, "data": {"interrupted": "t1"}}) == []
    assert printed({**result, "text": "Nothing to stop.", "data": {}}) == ["Nothing to stop."]


@pytest.mark.parametrize(("has_bar", "lines"), [(False, ["(file 12/50)"]), (True, [])])
def test_progress_is_printed_once(has_bar: bool, lines: list[str]) -> None:
    """The tool's own call says nothing more; where a bar shows it, no line does."""
    arguments = {"done": 12, "total": 50, "unit": "file"}
    started = {"type": "tool_started", "tool": "progress", "arguments": arguments}
    assert printed(started, {"type": "progress", **arguments}, has_bar=has_bar) == lines


def test_a_stop_ends_the_line() -> None:
    """The partial answer has its own line; the stop is reported once."""
    done = {"done": 23, "total": 50, "unit": "file"}
    assert printed(
        {"type": "text", "delta": "I will"},
        {"type": "interrupting", "cause": "stop"},
        {"type": "interrupted", "checkpoint": done},
        {"type": "turn_ended", "status": "interrupted"},
    ) == ["I will", "Stopping current task. Progress saved at checkpoint 23/50."]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tool": "write", "output": "Error: `a`: Read-only file system\nwrite elsewhere"},
            "[write] failed: `a`: Read-only file system",
        ),
        (
            {"tool": "shell", "exit_code": 3, "output": "begin\n\x1b[31mls: no\x07\n[exit code 3]"},
            "[shell] failed, exit 3: ls: no",
        ),
        (
            {"tool": "shell", "status": "timed_out", "exit_code": -15, "output": "(no output)\n"},
            "[shell] timed_out, SIGTERM",
        ),
        (
            {"tool": "shell", "status": "denied", "reason": "denied by\na person", "output": "x"},
            "[shell] denied by a person",
        ),
        ({"tool": "read", "output": "y" * 300}, f"[read] failed: {'y' * 199}…"),
    ],
)
def test_a_failed_call_says_why_on_one_line(fields: Event, said: str) -> None:
    """The telling line of its output, bounded, without escape sequences."""
    end = {"type": "tool_ended", "status": "failed", "exit_code": None, **fields}
    assert printed(end) == [said]


@pytest.mark.parametrize(
    ("after", "is_told"),
    [("accepted", True), ("text", True), ("tool_started", False), ("turn_ended", False)],
)
def test_a_model_that_says_nothing_is_mentioned_once(
    monkeypatch: pytest.MonkeyPatch, after: str, is_told: bool
) -> None:
    """After a while, also amid its answer, and not while a tool runs, or nothing is asked."""
    now = [100.0]
    monkeypatch.setattr(plain.time, "monotonic", lambda: now[0])
    sink = TextSink()
    silence = Silence(sink.write)
    silence.hear({"type": "turn_started"})
    silence.hear({"type": after, "delta": "Then"})
    now[0] += SILENT - 1
    silence.look()
    assert sink.text == ""
    now[0] += 2
    silence.look()
    silence.look()
    assert sink.text.count("The model has said nothing for 10 s") == is_told


def test_the_end_of_a_subagent_that_was_stopped_names_its_processes() -> None:
    """A stop of all that works tells them by itself."""
    ended: Event = {"type": "child_ended", "name": "kid", "status": "cancelled", "killed": [7, 8]}
    assert printed(ended) == ["🤖 kid cancelled. Ended: processes 7, 8"]
    assert printed({**ended, "resumable": True}) == ["🤖 kid stopped"]
    assert printed({**ended, "killed": []}) == ["🤖 kid cancelled"]
