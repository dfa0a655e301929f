"""What servers do to a chat: rate limits, overload, streams that break, thoughts; for both APIs."""

import json
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Behaviour, Cut, Endless, Raw, Stall, Status, Text
from support.nightly import daily

PROVIDERS = ("openai", "anthropic")
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def busy(seconds: str, status: int = 429) -> Status:
    """A server that wants to be left alone for a while."""
    return Status(status, OVERLOADED, headers={"Retry-After": seconds})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_rate_limits_are_waited_out_and_broken_streams_are_reported(
    place: Place, serve, provider: str
) -> None:
    """Each wait is reported with its seconds; streams that break twice end the turn, not the chat."""
    serve(
        busy("0.1"),
        busy("0.1", 529),
        Text("Here."),
        Cut("Half an"),
        Cut("Half an"),
        Stall("Half an"),
        Stall("Half an"),
        Text("Whole."),
        provider=provider,
        model="timeout = 1.0",
    )
    chat = place.chat()
    first = chat.causes("one", "notice", seconds=0.1)
    assert first["text"] == "server is busy (429), retry 1 of 4 in 0.1 s"
    assert "overloaded (529), retry 2 of 4" in chat.wait("notice", seconds=0.1)["text"]
    chat.wait("turn_ended", status="completed")
    for text, reason in (("two", "in the middle of its answer"), ("three", "fell silent")):
        error = chat.causes(text, "error", code="model_failed")
        assert reason in error["text"]
        assert "send `continue`" in error["hint"]
        chat.wait("turn_ended", status="failed")
    chat.completes("four")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_wait_can_be_stopped_and_is_not_endless(place: Place, serve, provider: str) -> None:
    """`/stop` ends a wait at once; a server that wants an hour is not waited for."""
    server = serve(busy("60"), busy("3600"), Text("Here."), provider=provider)
    chat = place.chat()
    chat.causes("one", "notice", seconds=60.0)
    chat.causes("/stop", "stopped", timeout=10.0)
    chat.send("two")
    assert "asked again in 60 minutes" in chat.wait("error", code="model_failed")["text"]
    assert len(server.requests) == 2


def thoughtful(provider: str) -> Behaviour:
    """An answer that is thought about first."""
    events: list[dict[str, Any]]
    if provider == "openai":
        deltas = ({"reasoning_content": "Hm, "}, {"reasoning": "well."}, {"content": "Yes."})
        events = [{"choices": [{"delta": delta}]} for delta in deltas]
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    else:
        events = [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
            *(_delta(0, {"type": "thinking_delta", "thinking": one}) for one in ("Hm, ", "well.")),
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text"}},
            _delta(1, {"type": "text_delta", "text": "Yes."}),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ]
    return Raw(
        ": keep-alive\r\n\r\n" + "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)
    )


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_thoughts_pass_and_are_not_sent_again(place: Place, serve, provider: str) -> None:
    """They are events of their own, and no part of the answer or of the next request."""
    server = serve(thoughtful(provider), Text("Fine."), provider=provider)
    chat = place.chat()
    chat.completes("one")
    assert "".join(event["delta"] for event in chat.seen("thinking")) == "Hm, well."
    assert "".join(event["delta"] for event in chat.seen("text")) == "Yes."
    chat.completes("two")
    assert "well." not in json.dumps(server.requests[1].body)


def test_an_answer_without_an_end_fails_its_turn(place: Place, serve) -> None:
    """The connection is closed at a limit, the reason names it, and the next message is answered."""
    serve(Endless("x" * 65_536, start="data: "), Text("Still here."))
    chat = place.chat()
    ended = chat.causes("work", "turn_ended")
    assert (ended["status"], "a line" in ended["reason"]) == ("failed", True), ended
    assert chat.causes("and now?", "turn_ended")["status"] == "completed"


TOO_LONG = {"error": {"code": 400, "message": "it exceeds the available context size"}}
WAYS: dict[str, tuple[Behaviour, str]] = {
    "refused": (Status(400, {"error": {"message": "wrong shape"}}), "answered 400: wrong shape"),
    "too-long": (Status(400, TOO_LONG), "available context size; the conversation was not"),
    "too-long-in-a-body": (Raw(json.dumps(TOO_LONG)), "size; the conversation was not"),
    "page": (Raw("<html>Sign in"), "a web page instead of a model's answer"),
    "empty": (Text("", stop="length"), "gave an empty answer"),
    "cut": (Cut("Half an"), "in the middle of its answer"),
    "silent": (Stall("Half an"), "fell silent"),
    "declined": (Text("No.", stop="content_filter"), "refused to answer"),
}


@pytest.mark.parametrize("way", daily("refused", "too-long", "cut", "declined", of=WAYS))
def test_a_turn_that_fails_says_why_once_in_every_interface(place: Place, serve, way: str) -> None:
    """A single message, the same as JSON, and plain lines: the reason comes with the turn's end."""
    behaviour, reason = WAYS[way]
    serve(behaviour, model="timeout = 1.0")
    for arguments, said in ((["go"], ""), (["--plain"], "go\n")):
        ran = place.run("chat", *arguments, said=said)
        told = [line for line in ran.stderr.splitlines() if reason in line]
        assert len(told) == 1, ran.stderr
        assert told[0].startswith("steersman: ")
        assert ran.returncode == (1 if arguments == ["go"] else ran.returncode)
    ran = place.run("chat", "--json", "go")
    assert ran.returncode == 1
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    errors = [event["text"] for event in events if event["type"] == "error"]
    ends = [event for event in events if event["type"] == "turn_ended"]
    assert [(end["status"], reason in end["reason"]) for end in ends] == [("failed", True)]
    assert errors == [ends[0]["reason"]]


def test_what_waits_is_not_burnt_on_a_model_that_gives_no_answer(place: Place, serve) -> None:
    """It is held in its order, and runs when a person says so, after what had no answer."""
    server = serve(busy("1"), Status(400), Text("One."), Text("Two."), Text("Three."))
    chat = place.chat()
    chat.causes("one", "notice", seconds=1.0)
    chat.send("/queue add two", "/queue add three")
    chat.wait("turn_ended", turn="t1", status="failed")
    held = chat.wait("queue", state="held")
    assert [item["text"] for item in held["items"]] == ["two", "three"]
    assert len(server.requests) == 2
    chat.causes("/queue resume", "turn_ended", turn="t4", status="completed")
    assert chat.close() == 0
    assert [turn["status"] for turn in chat.seen("turn_ended")] == ["failed", *["completed"] * 3]


WAITS = "[limits]\nwait_minutes = 90.0\n"


def test_a_provider_that_says_when_its_limit_ends_is_waited_for(place: Place, serve) -> None:
    """An hour or less, by the setting: the person is told until when, and a stop ends it."""
    server = serve(*[busy("0.1")] * 5, Text("Here."), busy("3600"), rest=WAITS)
    chat = place.chat()
    chat.send("one")
    while "The model is asked again at" not in chat.wait("notice")["text"]:
        pass
    chat.wait("turn_ended", status="completed")
    assert len(server.requests) == 6
    told = chat.causes("two", "notice", seconds=3600.0)["text"]
    assert "asked again in 60 minutes" in told
    chat.causes("/stop", "turn_ended", status="interrupted")
    assert len(server.requests) == 7


@pytest.mark.nightly
def test_a_wait_for_a_provider_outlives_a_kill(place: Place, serve) -> None:
    """Opened again, the session goes on with the turn when the time has come; nobody says a word."""
    server = serve(*[busy("3")] * 5, Text("Here."), rest=WAITS)
    chat = place.chat()
    chat.send("one")
    while "is asked again at" not in chat.wait("notice")["text"]:
        pass
    chat.process.kill()
    chat.process.wait()
    again = place.chat("--resume", "last")
    again.wait("turn_ended", status="completed")
    assert len(server.requests) == 6
