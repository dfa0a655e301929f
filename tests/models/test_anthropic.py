"""AnthropicModel against a real HTTP server on loopback."""

import json

import pytest
from models.conftest import no_pause
from support.coroutines import run
from support.model_server import Cut, ModelServer, Raw, Status, Text, Tools

from steersman.machines.conversation import ChatMessage, ToolRequest, ToolSchema, Usage
from steersman.machines.errors import ModelError
from steersman.ports.models.anthropic import AnthropicModel, wire_turns
from steersman.ports.models.model import AnswerListener, ModelAnswer, ModelRequest
from steersman.ports.models.retry import RetryPolicy
from steersman.ports.models.wire import wire_id

USAGE = Usage(input=100, output=20, cache_read=60, cache_write=10)
READ = ToolSchema(
    name="read", description="Read a file.", parameters={"type": "object", "properties": {}}
)
MARK = {"cache_control": {"type": "ephemeral"}}


def model_at(server: ModelServer, retries: int = 0) -> AnthropicModel:
    """A model of this server."""
    retry = RetryPolicy(retries=retries, sleep=no_pause)
    return AnthropicModel(server.base_url, "test-model", key="sk-secret", retry=retry)


def test_text_streams_and_usage_is_read(asker):
    """Pieces arrive in order, and cached tokens count as a part of the input."""
    with ModelServer([Text("Hello there.")]) as server:
        [answer] = asker(model_at(server), "Hi")
        assert server.requests[0].path == "/v1/messages"
    assert asker.pieces == ["Hello ", "there."]
    assert answer == ModelAnswer(
        text="Hello there.", tool_calls=(), usage=USAGE, stop_reason="stop"
    )


def test_tool_calls_are_read(asker):
    """Blocks of tool use become calls, faulty arguments a fault."""
    calls = [
        {"tool": "read", "arguments": {"path": "a.txt"}},
        {"tool": "list"},
        {"tool": "read", "arguments": "{oops"},
    ]
    with ModelServer([Tools(calls, text="Looking.")]) as server:
        [answer] = asker(model_at(server), "Hi")
    assert (answer.text, answer.stop_reason) == ("Looking.", "tools")
    fault = "the arguments are not a JSON object: {oops"
    assert answer.tool_calls == (
        ToolRequest(call="t1.c1", tool="read", arguments={"path": "a.txt"}),
        ToolRequest(call="t1.c2", tool="list", arguments={}),
        ToolRequest(call="t1.c3", tool="read", arguments={}, fault=fault),
    )


def test_request_holds_everything_the_model_needs(asker):
    """Key, version, system and tools are sent, and the last blocks are marked for the cache."""
    request = ModelRequest(
        system="Be kind.",
        messages=(ChatMessage(role="user", text="Hi"),),
        tools=(READ,),
        temperature=0.5,
    )
    with ModelServer([Text("ok")]) as server:
        asker(model_at(server), request)
        recorded = server.requests[0]
    assert recorded.headers["x-api-key"] == "sk-secret"
    assert recorded.headers["anthropic-version"] == "2023-06-01"
    assert recorded.body == {
        "model": "test-model",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **MARK}]}],
        "stream": True,
        "system": [{"type": "text", "text": "Be kind.", **MARK}],
        "temperature": 0.5,
        "tools": [{"name": "read", "description": "Read a file.", "input_schema": READ.parameters}],
    }


def test_constrained_answer_is_a_form(asker):
    """A response schema is asked for as the arguments of a tool, and comes back as text."""
    schema = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    form = Tools([{"tool": "give_answer", "arguments": {"verdict": "done"}}])
    request = ModelRequest(
        system="", messages=(ChatMessage(role="user", text="Done?"),), response_schema=schema
    )
    with ModelServer([form]) as server:
        [answer] = asker(model_at(server), request)
        body = server.requests[0].body
    assert json.loads(answer.text) == {"verdict": "done"}
    assert answer.tool_calls == ()
    assert body["tools"][0]["input_schema"] == schema
    assert body["tool_choice"] == {"type": "tool", "name": "give_answer"}


def test_conversation_alternates_and_is_only_appended_to():
    """Neighbours of one side share a turn, ids are made valid, blocks are never rewritten."""
    calls = (
        ToolRequest(call="t1.c1", tool="read", arguments={"path": "a"}),
        ToolRequest(call="t1.c2", tool="list"),
    )
    conversation = (
        ChatMessage(role="user", text="Hi"),
        ChatMessage(role="assistant", text="", tool_calls=calls),
        ChatMessage(role="tool", text="content", call="t1.c1"),
        ChatMessage(role="tool", text="", call="t1.c2"),
        ChatMessage(role="user", text="[New message from USER] faster"),
        ChatMessage(role="assistant", text=""),
    )

    def blocks(count: int) -> list[tuple[str, str]]:
        turns = [turn for _, turn in wire_turns(conversation[:count])]
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"][
            : len(turns)
        ]
        return [(turn["role"], json.dumps(one)) for turn in turns for one in turn["content"]]

    whole = blocks(6)
    for count in range(6):
        assert blocks(count) == whole[: len(blocks(count))]
    covered, results = list(wire_turns(conversation))[2]
    assert covered == 3
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": wire_id("t1.c1"), "content": "content"},
        {"type": "tool_result", "tool_use_id": wire_id("t1.c2")},
        {"type": "text", "text": "[New message from USER] faster"},
    ]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (Status(401, {"error": {"message": "bad sk-secret"}}), "answered 401: bad [key]"),
        (Cut("One two"), "in the middle of its answer, after 7 characters"),
        (Cut(""), "broke: "),
        (Text("", stop="length"), "empty answer"),
        (Raw("<html>", "text/html"), "a web page"),
        (Status(404, {"error": {"message": "no such path"}}), "answered 404"),
        (Raw('{"hello": 1}'), "no model's answer"),
    ],
)
def test_faults_say_what_came(asker, behaviour, words):
    """Each message names the address and what came."""
    with ModelServer([behaviour]) as server, pytest.raises(ModelError) as caught:
        asker(model_at(server), "Hi")
    assert words in caught.value.message
    assert f"`{server.base_url}/messages`" in caught.value.message
    assert "ends in `/v1`" not in caught.value.hint


def thinking_answer(*blocks: dict, stop: str = "end_turn", used: dict | None = None) -> Raw:
    """An answer of these blocks, each with its deltas."""
    events: list[dict] = [{"type": "message_start", "message": {"usage": {"input_tokens": 5}}}]
    for index, block in enumerate(blocks):
        deltas = block.pop("deltas", ())
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": used or {}})
    events.append({"type": "message_stop"})
    return Raw(
        "".join(f"event: {event['type']}\r\ndata: {json.dumps(event)}\r\n\r\n" for event in events)
    )


def test_thoughts_are_separated_and_sent_back_sealed(asker):
    """They stream on a line of their own, and go back first in their answer, word for word."""
    thought = {
        "type": "thinking",
        "thinking": "",
        "deltas": [
            {"type": "thinking_delta", "thinking": "Read "},
            {"type": "thinking_delta", "thinking": "it."},
            {"type": "signature_delta", "signature": "c2VhbA=="},
        ],
    }
    call = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "read",
        "deltas": [{"type": "input_json_delta", "partial_json": '{"path": "a"}'}],
    }
    first = thinking_answer(
        thought, {"type": "redacted_thinking", "data": "xyz"}, call, stop="tool_use"
    )
    heard: list[str] = []

    async def talk(model: AnthropicModel) -> None:
        asked = ChatMessage(role="user", text="Hi")
        listener = AnswerListener(on_text=asker.pieces.append, on_thought=heard.append)
        answer = await model.answer(
            ModelRequest(system="", messages=(asked,), tools=(READ,)), listener
        )
        said = ChatMessage(
            role="assistant",
            text=answer.text,
            tool_calls=answer.tool_calls,
            thoughts=answer.thoughts,
        )
        [done] = answer.tool_calls
        result = ChatMessage(role="tool", text="It.", call=done.call)
        await model.answer(
            ModelRequest(system="", messages=(asked, said, result), tools=(READ,)), AnswerListener()
        )
        await model.aclose()

    with ModelServer([first, Text("ok")]) as server:
        run(talk(model_at(server)))
        again = server.requests[1].body["messages"]
    assert (heard, asker.pieces) == (["Read ", "it."], [])
    assert [block["type"] for block in again[1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "tool_use",
    ]
    assert again[1]["content"][0] == {
        "type": "thinking",
        "thinking": "Read it.",
        "signature": "c2VhbA==",
    }
    assert again[0]["content"][-1]["cache_control"] == MARK["cache_control"]
    assert again[2]["content"][-1]["cache_control"] == MARK["cache_control"]


@pytest.mark.parametrize(
    ("model", "wish", "body"),
    [
        ("claude-sonnet-4-5", "low", {"type": "enabled", "budget_tokens": 2048}),
        ("claude-opus-4-20250514", "high", {"type": "enabled", "budget_tokens": 24576}),
        ("claude-3-7-sonnet-latest", "low", {"type": "enabled", "budget_tokens": 2048}),
        ("claude-opus-4-7", "medium", {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-4-5", "off", None),
    ],
)
def test_each_generation_is_asked_to_think_in_its_own_way(asker, model, wish, body):
    """A budget below the limit of tokens for older models, an effort for newer ones."""
    with ModelServer([Text("ok")]) as server:
        asked = AnthropicModel(server.base_url, model, thinking=wish, temperature=0.5)
        asker(asked, "Hi")
        sent = server.requests[0].body
    assert sent.get("thinking") == body
    assert ("temperature" in sent) == (body is None)
    assert sent["max_tokens"] == 8192 + (body or {}).get("budget_tokens", 0)
    assert sent.get("output_config") == ({"effort": wish} if "4-7" in model else None)


@pytest.mark.parametrize("stop", ["refusal", "pause_turn", "model_context_window_exceeded"])
def test_unusual_ends(asker, stop):
    """A refusal is an error that says so; a pause and a full window end with what came."""
    text = {"type": "text", "text": "", "deltas": [{"type": "text_delta", "text": "Well,"}]}
    with ModelServer([thinking_answer(text, stop=stop)]) as server:
        if stop == "refusal":
            with pytest.raises(ModelError, match="refused to answer"):
                asker(model_at(server), "Hi")
            return
        [answer] = asker(model_at(server), "Hi")
    assert answer.stop_reason == ("stop" if stop == "pause_turn" else "length")


def test_forms_of_an_answer_that_other_servers_give(asker):
    """Arguments at once, a server's own tools, usage at the end, or the whole without a stream."""
    call = {"type": "tool_use", "id": "x", "name": "read", "input": {"path": "a"}}
    theirs = {
        "type": "server_tool_use",
        "deltas": [{"type": "input_json_delta", "partial_json": "{}"}],
    }
    text = {"type": "text", "text": "Well."}
    used = {"input_tokens": 9, "output_tokens": 7}
    whole = {"type": "message", "content": [text, call], "stop_reason": "tool_use", "usage": used}
    for body in (thinking_answer(theirs, text, call, used=used), Raw(json.dumps(whole))):
        with ModelServer([body]) as server:
            [answer] = asker(model_at(server), "Hi")
        request = ToolRequest(call="t1.c1", tool="read", arguments={"path": "a"})
        assert answer == ModelAnswer(
            text="Well.", tool_calls=(request,), usage=Usage(input=9, output=7), stop_reason="tools"
        )


def test_an_overload_while_it_thinks_is_tried_again(asker):
    """Thoughts are no answer: nothing that anybody relies on is said twice."""
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}}
    delta = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "Hm"},
    }
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    broken = "".join(f"data: {json.dumps(one)}\n\n" for one in (start, delta, error))
    with ModelServer([Raw(broken), Text("ok")]) as server:
        [answer] = asker(model_at(server, retries=1), "Hi")
    assert answer.text == "ok"
    assert "overloaded (529), retry 1 of 1" in asker.notices[0]
