"""Events of real sessions fit `docs/events.schema.json`, which clients are generated from."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from blackbox.judged import DONE, Start, counting, verdicts, wait_goal
from jsonschema import Draft202012Validator
from support.driver import Event, Gate, Place
from support.model_server import Text, Tools, shell

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "events.schema.json").read_text("utf-8")
)


def strict() -> dict[str, Any]:
    """Return the schema, which then also refuses a field that it does not name."""
    kinds = SCHEMA["$defs"].items()
    return {**SCHEMA, "$defs": {name: {**k, "additionalProperties": False} for name, k in kinds}}


def check(events: Iterable[Event], *wanted: str) -> None:
    """Hold events against the schema; some of each of these kinds have to be there."""
    events = list(events)
    assert set(wanted) <= {event["type"] for event in events}
    validator = Draft202012Validator(strict())
    for event in events:
        assert validator.is_valid(event), event


@pytest.mark.parametrize("change", [{"more": 1}, {"mode": 1}, {"type": "dreamt"}, {"seq": None}])
def test_what_is_no_event_is_refused(change: dict[str, Any]) -> None:
    """The schema has every field, with its type; `seq` may be null."""
    event = {"type": "mode", "seq": 1, "time": "…", "session": "s", "mode": "plan"}
    assert Draft202012Validator(strict()).is_valid(event | change) == ("seq" in change)


def test_the_events_of_a_chat(place: Place, serve, gate: Gate) -> None:
    """A question, a tool, a queue, a steer, a stop, a revert, a command of one's own, a bad line."""
    call = shell(gate.command)
    write = {"tool": "write", "arguments": {"path": "made.txt", "content": "made"}}
    serve(call, Text("Done."), Tools([write]), Text("Made."), Text("So it is.", times=0))
    chat = place.chat()
    chat.send("work", "{")
    chat.answer(chat.wait("question"), "allow")
    gate.wait()
    chat.send({"text": "later", "as": "queue"}, {"text": "mind this", "as": "steer"}, {"text": ""})
    chat.wait("accepted", text="mind this")
    chat.ask("/queue")
    chat.ask("/stop")
    chat.wait("turn_ended", status="interrupted")
    chat.ask("/mode edits")  # before the message that waits writes
    chat.ask("/queue resume")
    chat.completes("write it")
    chat.ask("/revert")
    chat.wait("reverted")
    chat.causes("!echo hello", "own_command", state="exited")
    chat.causes("/smalltalk how is it?", "side_talk_ended")
    assert chat.close() == 0
    check(
        chat.events,
        *("session_started", "question", "answered", "tool_started", "tool_ended", "queue"),
        *("accepted", "rejected", "interrupted", "stopped", "turn_ended", "result", "error"),
        *("reverted", "mode", "own_command", "side_talk_ended", "session_suspended", "text"),
    )


def test_the_events_of_a_goal(place: Place, start: Start) -> None:
    """Its states and its verdicts, and what a client that attaches is told of it."""
    start(counting, verdicts(DONE))
    chat = place.chat()
    chat.ask("/goal all three steps are done")
    wait_goal(chat, "achieved")
    assert chat.close() == 0
    check(chat.events, "goal", "verdict", "turn_ended")


def test_the_events_of_a_run_and_of_http(place: Place, serve, served) -> None:
    """A run with a step for each of two items, and its journal as HTTP tells it."""
    serve(Text("Good day.", times=0))
    (place.folder / "job.toml").write_text(
        '[workflow]\nname = "job"\n[[step]]\nid = "list"\nrun = ["printf", "a\\nb\\n"]\n'
        'output = "lines"\n[[step]]\nid = "greet"\nneeds = ["list"]\n'
        'for_each = "steps.list.output"\nagent = "assistant"\nprompt = "Greet {{ item }}."\n'
    )
    job = place.job("job.toml", "--yes")
    session = job.wait("run_started")["run"]
    assert job.wait("run_ended")["status"] == "succeeded"
    assert job.close() == 0
    check(job.events, "run_started", "step", "run_ended", "changed", "child_started")
    check(served().page(session), "run_started", "step", "run_ended")
