"""What a message does that comes while the agent works, in each busy mode and by explicit choice."""

import json
from typing import Any

import pytest
from support.driver import Gate, Place
from support.model_server import ModelServer, Stall, Text, Tools


def mode(name: str) -> str:
    """The configuration line of a busy mode."""
    return f'busy_input_mode = "{name}"'


def test_lines_are_taken_in_their_order(place: Place, serve: Any) -> None:
    """A steer and a message that stops have ways of their own; neither overtakes the line before it."""
    serve(Stall("One ", match="begin here"), Text("Done.", times=0))
    lines = [f"line {number}" for number in range(4)]
    lines[1:1] = ["please stop here"]
    ran = place.run("chat", "begin here", "--json", said="\n".join(lines))
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    said = [event["text"] for event in events if event["type"] == "accepted"]
    assert said == ["begin here", *lines]


def last_message(server: ModelServer, request: int) -> tuple[str, str]:
    """Role and text of the last message of a request."""
    message = server.requests[request].body["messages"][-1]
    return message["role"], message["content"]


def test_mode_steer_enters_at_the_next_boundary(place: Place, serve, gate: Gate) -> None:
    """Steers wait for the tool, then enter together, in order, as the last user message."""
    server = serve(Tools([gate.call]), Text("Noted."), top=mode("steer"))
    chat = place.at_work(gate)
    chat.send("use tabs", {"text": "and be brief", "user": "Ann"})
    for _ in range(2):
        chat.wait("accepted", **{"as": "steer"})
    gate.open()
    chat.wait("turn_ended", status="completed")
    said = "[New message from user] use tabs\n\n[New message from Ann] and be brief"
    assert last_message(server, 1) == ("user", said)
    steered = chat.seen("steered")
    assert [row["id"] for row in steered] == [
        event["id"] for event in chat.seen("accepted", **{"as": "steer"})
    ]
    assert {event["turn"] for event in steered} == {chat.seen("turn_started")[0]["turn"]}
    assert len(chat.seen("turn_started")) == 1


def test_a_steer_at_the_end_of_an_answer_continues_the_turn(place: Place, serve) -> None:
    """A steer that waits when an answer without tool calls ends gets an answer in the same turn."""
    server = serve(
        Text("This is a long answer that takes its time to end.", pause=0.05),
        Text("And briefly."),
        top=mode("steer"),
    )
    chat = place.chat("talk")
    chat.wait("text")
    chat.completes("be brief")
    assert len(chat.seen("turn_started")) == 1
    assert last_message(server, 1) == ("user", "[New message from user] be brief")
    assert server.requests[1].body["messages"][-2]["role"] == "assistant"


@pytest.mark.parametrize(
    ("configured", "chosen", "taken_as"),
    [
        ("interrupt", "queue", "queue"),
        ("interrupt", "steer", "steer"),
        ("queue", "interrupt", "interrupt"),
        pytest.param("queue", "steer", "steer", marks=pytest.mark.nightly),
        pytest.param("steer", "queue", "queue", marks=pytest.mark.nightly),
        pytest.param("queue", "auto", "queue", marks=pytest.mark.nightly),
    ],
)
def test_an_explicit_choice_wins(
    place: Place, serve, gate: Gate, configured: str, chosen: str, taken_as: str
) -> None:
    """`as` beats the busy mode, and every one of them is answered in the end."""
    server = serve(Tools([gate.call]), Text("Done."), top=mode(configured))
    chat = place.at_work(gate)
    chat.send({"text": "this one", "as": chosen, "client_id": "c"})
    assert chat.wait("accepted", client_id="c")["as"] == taken_as
    if taken_as != "interrupt":
        gate.open()
    assert chat.close() == 0
    assert "this one" in server.requests[-1].prompt
