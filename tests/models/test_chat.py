"""ChatModel against a real HTTP server on loopback."""

import asyncio
import json
from typing import Any

import pytest
from models.conftest import NONE, QUICK
from support.model_server import Behaviour, Cut, Hang, ModelServer, Raw, Stall, Status, Text, Tools
from support.patience import seconds
from support.ports import HeldPort

from steersman.machines.conversation import ChatMessage, ToolRequest, ToolSchema, Usage
from steersman.machines.errors import ConfigError
from steersman.ports.models.chat import ChatModel, wire_messages
from steersman.ports.models.model import AnswerListener, ModelAnswer, ModelRequest
from steersman.ports.models.retry import RetryPolicy
from steersman.ports.models.wire import wire_id

USAGE = Usage(input=100, output=20, cache_read=60, reasoning=4)
READ = ToolSchema(
    name="read", description="Read a file.", parameters={"type": "object", "properties": {}}
)


def model_at(server: ModelServer, key: str = "", retry: RetryPolicy = NONE) -> ChatModel:
    """A model of this server."""
    return ChatModel(
        server.base_url, "test-model", key=key, key_env="TEST_KEY" if key else "", retry=retry
    )


def test_text_streams_and_usage_is_read(asker):
    """Pieces arrive in order, the whole and the usage are returned."""
    with ModelServer([Text("Hello there, person.")]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert asker.pieces == ["Hello ", "there, ", "person."]
    assert answer == ModelAnswer(
        text="Hello there, person.", tool_calls=(), usage=USAGE, stop_reason="stop"
    )
    assert asker.notices == []


def test_request_holds_everything_the_model_needs(asker):
    """System, tools, limits and schema are sent; without a key there is no Authorization header."""
    request = ModelRequest(
        system="You are kind.",
        messages=(ChatMessage(role="user", text="Hi"),),
        tools=(READ,),
        max_tokens=7,
        temperature=0.5,
        response_schema={"type": "object"},
    )
    with ModelServer([Text("ok")]) as server:
        asker(model_at(server), request)
        recorded = server.requests[0]
    assert "authorization" not in recorded.headers
    assert recorded.body == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "You are kind."},
            {"role": "user", "content": "Hi"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Read a file.",
                    "parameters": READ.parameters,
                },
            }
        ],
        "max_tokens": 7,
        "temperature": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}},
        },
    }


def test_wire_form_of_a_prefix_is_a_prefix():
    """Appending messages never changes what was sent before."""
    call = ToolRequest(call="t1.c1", tool="read", arguments={"path": "a"})
    other = ToolRequest(call="t1.c2", tool="list", arguments={})
    conversation = (
        ChatMessage(role="user", text="Hi"),
        ChatMessage(role="assistant", text="", tool_calls=(call, other)),
        ChatMessage(role="tool", text="content", call="t1.c1"),
        ChatMessage(role="tool", text="names", call="t1.c2"),
        ChatMessage(role="user", text="[New message from USER] faster"),
        ChatMessage(role="assistant", text="Done."),
    )
    whole = [message for _, message in wire_messages(conversation)]
    for count in range(len(conversation) + 1):
        assert [message for _, message in wire_messages(conversation[:count])] == whole[:count]
    ids = [wire_id("t1.c1"), wire_id("t1.c2")]
    assert [call["id"] for call in whole[1]["tool_calls"]] == ids
    assert [message["tool_call_id"] for message in whole[2:4]] == ids


CALLS = [
    {"tool": "read", "arguments": {"path": "a.txt"}, "id": "x1"},
    {"tool": "list", "arguments": {"path": "."}, "id": "x2"},
]


@pytest.mark.parametrize(
    ("style", "ids"),
    [
        ("deltas", ("x1", "x2")),
        ("whole", ("x1", "x2")),
        ("no_index", ("x1", "x2")),
        ("no_ids", ("", "")),
        ("object", ("x1", "x2")),
    ],
)
def test_tool_calls_are_assembled_however_they_come(asker, style, ids):
    """Fragments, whole calls, missing ids and missing indexes all give the same calls."""
    with ModelServer([Tools(CALLS, text="Looking.", style=style)]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert answer.text == "Looking."
    assert answer.stop_reason == "tools"
    assert answer.tool_calls == (
        ToolRequest(call="t1.c1", tool="read", arguments={"path": "a.txt"}),
        ToolRequest(call="t1.c2", tool="list", arguments={"path": "."}),
    )


@pytest.mark.parametrize("raw", ["[1, 2]", '"text"', '{"path": "a', "ls -la", "null"])
def test_arguments_that_are_no_object_become_a_fault(asker, raw):
    """The call is kept, its arguments are empty, and the fault shows what came."""
    with ModelServer([Tools([{"tool": "read", "arguments": raw}])]) as server:
        [answer] = asker(model_at(server), "Hi")
    [call] = answer.tool_calls
    assert (call.tool, call.arguments) == ("read", {})
    assert call.fault == f"the arguments are not a JSON object: {raw}"


@pytest.mark.parametrize(
    "raw", ['"{\\"path\\": \\"a\\", \\"limit\\": 5}"', '{"path": "a", "limit": 5.0}']
)
def test_arguments_in_unusual_forms_are_read(asker, raw):
    """JSON in JSON is the object in it, and a number without a fraction is a whole one."""
    with ModelServer([Tools([{"tool": "read", "arguments": raw}])]) as server:
        [answer] = asker(model_at(server), "Hi")
    [call] = answer.tool_calls
    assert (repr(call.arguments), call.fault) == ("{'path': 'a', 'limit': 5}", "")


def test_calls_of_one_id_and_two_indexes_are_two(asker):
    """Calls with different numbers are two calls, whatever their ids."""
    calls = [
        {"index": at, "id": "x", "function": {"name": "read", "arguments": f'{{"path": "{path}"}}'}}
        for at, path in enumerate("ab")
    ]
    chunk = {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    with ModelServer([Raw(event(chunk))]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert [call.arguments["path"] for call in answer.tool_calls] == ["a", "b"]


def test_no_arguments_are_an_empty_object(asker):
    """A call without any arguments is not faulty."""
    with ModelServer([Tools([{"tool": "list", "arguments": ""}])]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert answer.tool_calls == (ToolRequest(call="t1.c1", tool="list", arguments={}),)


def event(value) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


HELLO = {"choices": [{"delta": {"content": "A\u2028B"}, "finish_reason": "stop"}]}
PARTS = {"choices": [{"delta": {"content": [{"type": "text", "text": "A\u2028B"}]}}]}
REFUSAL = {"choices": [{"delta": {"content": None, "refusal": "A\u2028B"}}]}
THOUGHT = {"choices": [{"delta": {"reasoning_content": "hm"}}]}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (event(HELLO), "text/event-stream"),
        (event(HELLO).replace("\n", "\r\n") + "data: [DONE]\r\n\r\n", "text/event-stream"),
        (": ping\n\nevent: x\nid: 4\n" + event(HELLO) + ": ping\n\n", "application/json"),
        ("data:" + json.dumps(HELLO), "text/plain"),
        (event(PARTS) + "data: [DONE]", "text/event-stream"),
        ("\ufeff" + event(THOUGHT) + event(PARTS) + "data: [DONE]\n\n", "text/event-stream"),
        (event(REFUSAL) + "data: [DONE]\n\n", "text/event-stream"),
        (event(HELLO) + event({"choices": None, "odd": 1}), "text/event-stream"),
        (json.dumps({"choices": [{"message": {"content": "A\u2028B"}}]}), "application/json"),
        (json.dumps({"choices": [{"message": {"content": "A\u2028B"}}]}), "text/event-stream"),
    ],
)
def test_bodies_that_differ_from_the_standard_are_understood(asker, body, kind):
    """Comments, CRLF, byte order marks, part lists, missing ends and plain JSON are accepted."""
    behaviour = Raw(body, kind, splits=(1, 3, 20, len(body) // 2))
    with ModelServer([behaviour]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert (answer.text, answer.stop_reason) == ("A\u2028B", "stop")


def test_whole_answer_instead_of_a_stream(asker):
    """A server that does not stream is understood, usage included."""
    with ModelServer([Text("All at once.", stream=False, stop="length")]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert answer == ModelAnswer(
        text="All at once.", tool_calls=(), usage=USAGE, stop_reason="length"
    )


def test_missing_usage_is_estimated(asker):
    """With a server that counts nothing four characters are a token, so that limits hold."""
    with ModelServer([Text("x" * 400, usage=None)]) as server:
        [answer] = asker(model_at(server), "y" * 800)
    assert answer.is_estimated
    assert (answer.usage.input, answer.usage.output) == (pytest.approx(200, abs=40), 104)


@pytest.mark.parametrize(
    ("behaviour", "words", "hint"),
    [
        (
            Status(401, {"error": {"message": "bad key sk-secret"}}),
            "answered 401: bad key [key]",
            "`TEST_KEY`",
        ),
        (Status(403, {"error": "no"}), "answered 403: no", "`TEST_KEY`"),
        (
            Status(404, {"error": {"message": "model not found"}}),
            "answered 404: model not found",
            "`test-model`",
        ),
        (Status(404, "<html>nginx</html>"), "answered 404: <html>nginx", "`base_url`"),
        (Status(400, {"message": "wrong shape"}), "answered 400: wrong shape", "`tool_dialect`"),
        (
            Status(400, {"error": {"message": "context_length_exceeded"}}),
            "answered 400",
            "`/compact`",
        ),
        (Status(302, "", {"Location": "/x"}), "answered 302", "`base_url`"),
        (Status(429, {"error": {"code": "insufficient_quota"}}), "answered 429", "credit"),
        (Raw("<!doctype html><p>Sign in", "text/html"), "a web page", "`/v1`"),
        (Raw("hello \x1b[31m", "text/plain"), "no model's answer: hello [31m", "`/v1`"),
        (Raw("", "text/plain"), "broke: it ended without an answer", "still running"),
        (Raw("data: {oops}\n\n"), "sent a part of its answer broken: {oops}", "try again"),
        (Raw("data: [1]\n\n"), "no model's answer: [1]", "`/v1`"),
        (Raw('{"hello": 1}', "application/json"), "no model's answer", "`/v1`"),
        (Raw('data: {"error": {"message": "GPU on fire"}}\n\n'), "error: GPU on fire", "later"),
        (Raw('{"error": {"message": "too long", "code": 400}}'), "answered 400", "`/compact`"),
        (Text(""), "empty answer (it stopped because of `stop`)", "ask again"),
        (Text("", stop="length"), "empty answer", "`max_tokens`"),
        (Cut("One two"), "in the middle of its answer, after 7 characters", "continue"),
        (Cut("", header=False), "broke: ", "still running"),
        (Cut(""), "broke: ", "still running"),
        (
            Raw(event({"choices": [{"delta": {"content": "One"}}]}) + 'data: {"error": "x"}\n\n'),
            "after 3 characters: `",
            "continue",
        ),
    ],
)
def test_faults_say_what_came_and_the_next_step(asker, behaviour: Behaviour, words, hint):
    """Each message names the address and what came, and each hint names a next step."""
    with ModelServer([behaviour]) as server:
        fault = asker.fault(model_at(server, key="sk-secret"))
    assert f"`{server.base_url}/chat/completions`" in fault.message
    assert words in fault.message
    assert hint in fault.hint
    assert "sk-secret" not in fault.message


def test_long_error_bodies_are_shown_shortened(asker):
    """Only the first 200 characters of a body are shown."""
    with ModelServer([Status(400, "x" * 5000)]) as server:
        fault = asker.fault(model_at(server))
    assert "x" * 200 + "…" in fault.message
    assert "x" * 201 not in fault.message


def test_refused_connection(asker):
    """A refused connection is reported as one."""
    with HeldPort() as closed:
        model = ChatModel(f"http://127.0.0.1:{closed.number}/v1", "m", retry=NONE)
        fault = asker.fault(model)
    assert fault.message.startswith("no server listens at `http://127.0.0.1:")
    assert "start the model server" in fault.hint


def test_unknown_host(asker):
    """A name that does not resolve is said as that, without the user's password."""
    fault = asker.fault(ChatModel("http://u:pass@no.such.invalid/v1", "m", retry=NONE))
    assert "`no.such.invalid`" in fault.message
    assert "pass@" not in fault.message


@pytest.mark.parametrize("url", ["", "ftp://x/v1", "http://", "http://[::1/v1", "http://x:y/v1"])
def test_impossible_address(url):
    """An address that no request can be sent to is refused when the model is made."""
    with pytest.raises(ConfigError, match="model `main`: `base_url` is no address") as caught:
        ChatModel(url, "m", name="main")
    assert "http://127.0.0.1:8080/v1" in caught.value.hint


@pytest.mark.parametrize("behaviour", [Hang(), Stall("One two")])
def test_silence_ends_in_time(asker, behaviour):
    """A silent server is given up, and the call is not repeated automatically."""
    with ModelServer([behaviour]) as server:
        model = ChatModel(server.base_url, "m", retry=QUICK, silence=0.1)
        fault = asker.fault(model)
        assert len(server.requests) == 1
    assert "fell silent" in fault.message
    assert fault.retryable


@pytest.mark.parametrize("behaviour", [Hang(), Stall("One two")])
def test_silence_is_told_before_the_call_is_given_up(asker, behaviour, monkeypatch):
    """Before the first piece and behind it; then after twice as long."""
    monkeypatch.setattr("steersman.ports.models.silence.TOLD_AFTER", 0.1)
    with ModelServer([behaviour]) as server:
        asker.fault(ChatModel(server.base_url, "m", retry=QUICK, silence=0.5))
    told = [said for said in asker.notices if "has sent nothing for" in said]
    assert 1 <= len(told) <= 3  # after 0.1, 0.2 and 0.4 s
    assert told[0].endswith("the call is given up after 0.5 s")


def test_busy_server_is_asked_again(asker):
    """429 and 5xx are repeated, with a notice each time."""
    behaviours = [
        Status(429, headers={"Retry-After": "2"}),
        Status(503),
        Status(500),
        Cut(header=False),
        Text("At last."),
    ]
    with ModelServer(behaviours) as server:
        [answer] = asker(model_at(server, retry=QUICK), "Hi")
        assert len(server.requests) == 5
    assert answer.text == "At last."
    assert asker.notices == [
        "server is busy (429), retry 1 of 4 in 2.0 s",
        "server is unavailable (503), retry 2 of 4 in 1.0 s",
        "server failed (500), retry 3 of 4 in 2.0 s",
        "connection lost, retry 4 of 4 in 4.0 s",
    ]


def test_retries_end(asker):
    """After the last retry the error says how often it was tried."""
    with ModelServer([Status(503)]) as server:
        fault = asker.fault(model_at(server, retry=QUICK))
        assert len(server.requests) == 5
    assert fault.message.endswith("(gave up after 4 retries)")
    assert fault.retryable


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_what_cannot_get_better_is_not_repeated(asker, status):
    """A request that is wrong is sent once."""
    with ModelServer([Status(status)]) as server:
        asker.fault(model_at(server, retry=QUICK))
        assert len(server.requests) == 1


def test_the_wire_repeats_nothing_after_the_first_text(asker):
    """A cut after text ends the call: whoever knows what was shown decides what comes next."""
    with ModelServer([Cut("One two"), Text("never")]) as server:
        asker.fault(model_at(server, retry=QUICK))
        assert len(server.requests) == 1
    assert "".join(asker.pieces).strip() == "One two"


@pytest.mark.parametrize(
    "behaviour", [Text("word " * 1000, pause=0.01), Stall("One two"), Hang()], ids=lambda b: type(b)
)
async def test_cancel_closes_the_connection(asker, behaviour):
    """Cancelling the task hangs up at once: mid-stream, in a silence, and before any header."""
    with ModelServer([behaviour]) as server:
        model = model_at(server)
        begun = asyncio.Event()
        request = ModelRequest(system="", messages=(ChatMessage(role="user", text="Hi"),))
        task = asyncio.create_task(
            model.answer(request, AnswerListener(on_text=lambda text: begun.set()))
        )
        await asyncio.to_thread(server.wait_requests, 1)
        if not isinstance(behaviour, Hang):
            await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].closed.wait, seconds(5))
        assert not server.requests[0].finished
        await model.aclose()


async def test_waiting_for_a_retry_can_be_cancelled(asker):
    """A cancel during a pause ends it, and no further request is sent."""
    with ModelServer([Status(503)]) as server:
        waiting = asyncio.Event()
        model = model_at(server, retry=RetryPolicy(first_pause=200, longest_pause=200))
        request = ModelRequest(system="", messages=(ChatMessage(role="user", text="Hi"),))
        listener = AnswerListener(on_notice=lambda text: waiting.set())
        task = asyncio.create_task(model.answer(request, listener))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.aclose()
        assert len(server.requests) == 1


async def test_two_answers_at_once(asker):
    """One model serves several calls at the same time."""
    script = [Text("one", match="first", pause=0.05), Text("two", match="second", pause=0.05)]
    with ModelServer(script) as server:
        model = model_at(server)
        answers = await asyncio.gather(asker.ask(model, "first"), asker.ask(model, "second"))
        await model.aclose()
        assert [answer.text for answer in answers] == ["one", "two"]


@pytest.mark.parametrize(
    ("url", "name", "allowed"),
    [
        ("https://api.openai.com/v1", "gpt-5.1", ["read"]),
        ("https://api.openai.com/v1", "gpt-4o", []),
        ("http://127.0.0.1:9/v1", "gpt-5.1", []),
    ],
)
def test_openai_is_told_which_tools_are_allowed(url: str, name: str, allowed: list[str]) -> None:
    """Its newer models alone: older ones and other servers may refuse the word."""
    wait = ToolSchema(name="wait", description="Wait.", parameters={"type": "object"})
    request = ModelRequest(system="", messages=(), tools=(READ, wait), unusable=("wait",))
    fields: dict[str, Any] = ChatModel(url, name)._fields(request)
    assert [tool["function"]["name"] for tool in fields["tools"]] == ["read", "wait"]
    told = fields.get("tool_choice", {}).get("allowed_tools", {})
    assert [tool["function"]["name"] for tool in told.get("tools", ())] == allowed
