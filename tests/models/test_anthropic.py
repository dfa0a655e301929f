"""AnthropicModel against a real HTTP server on loopback."""

import asyncio
import json
import time

import pytest
from serving import Cut, Hang, ModelServer, Raw, Stall, Status, Text, Tools

from steersman.machines.conversation import ChatMessage, ToolRequest, ToolSchema, Usage
from steersman.machines.errors import ModelError
from steersman.ports.models.anthropic import AnthropicModel, wire_turns
from steersman.ports.models.model import ModelAnswer, ModelRequest
from steersman.ports.models.retry import RetryPolicy

USAGE = Usage(input=100, output=20, cache_read=60, cache_write=10)
READ = ToolSchema("read", "Read a file.", {"type": "object", "properties": {}})
MARK = {"cache_control": {"type": "ephemeral"}}


async def no_pause(seconds: float) -> None:
    """Wait no time at all."""


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
    assert answer == ModelAnswer("Hello there.", (), USAGE, "stop")


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
        ToolRequest("t1.c1", "read", {"path": "a.txt"}, "toolu_1"),
        ToolRequest("t1.c2", "list", {}, "toolu_2"),
        ToolRequest("t1.c3", "read", {}, "toolu_3", fault),
    )


def test_request_holds_everything_the_model_needs(asker):
    """Key, version, system and tools are sent, and the last blocks are marked for the cache."""
    request = ModelRequest("Be kind.", (ChatMessage("user", "Hi"),), tools=(READ,), temperature=0.5)
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
    request = ModelRequest("", (ChatMessage("user", "Done?"),), response_schema=schema)
    with ModelServer([form]) as server:
        [answer] = asker(model_at(server), request)
        body = server.requests[0].body
    assert json.loads(answer.text) == {"verdict": "done"}
    assert answer.tool_calls == ()
    assert body["tools"][0]["input_schema"] == schema
    assert body["tool_choice"] == {"type": "tool", "name": "give_answer"}


def test_conversation_alternates_and_is_only_appended_to():
    """Neighbours of one side share a turn, ids are made valid, blocks are never rewritten."""
    calls = (ToolRequest("t1.c1", "read", {"path": "a"}), ToolRequest("t1.c2", "list", wire_id="w"))
    conversation = (
        ChatMessage("user", "Hi"),
        ChatMessage("assistant", "", calls),
        ChatMessage("tool", "content", call="t1.c1"),
        ChatMessage("tool", "", call="t1.c2", wire_id="w"),
        ChatMessage("user", "[New message from USER] faster"),
        ChatMessage("assistant", ""),
    )

    def blocks(count: int) -> list[tuple[str, str]]:
        turns = wire_turns(conversation[:count])
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"][
            : len(turns)
        ]
        return [(turn["role"], json.dumps(one)) for turn in turns for one in turn["content"]]

    whole = blocks(6)
    for count in range(6):
        assert blocks(count) == whole[: len(blocks(count))]
    assert wire_turns(conversation)[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1_c1", "content": "content"},
        {"type": "tool_result", "tool_use_id": "w"},
        {"type": "text", "text": "[New message from USER] faster"},
    ]


OVERLOADED = 'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'


def test_overload_is_repeated_however_it_is_said(asker):
    """429, 529 and an overload inside the stream are all tried again."""
    with ModelServer([Status(429), Status(529), Raw(OVERLOADED), Text("ok")]) as server:
        [answer] = asker(model_at(server, retries=4), "Hi")
    assert answer.text == "ok"
    assert [notice.split(",")[0] for notice in asker.notices] == [
        "server is busy (429)",
        "server is overloaded (529)",
        "server is overloaded (529)",
    ]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (Status(401, {"error": {"message": "bad sk-secret"}}), "answered 401: bad [key]"),
        (Cut("One two"), "in the middle of its answer, after 7 characters"),
        (Cut(""), "broke: "),
        (Text("", stop="length"), "empty answer"),
        (Raw("<html>", "text/html"), "a web page"),
        (Raw('{"hello": 1}'), "no model's answer"),
    ],
)
def test_faults_say_what_came(asker, behaviour, words):
    """Each message names the address and what came."""
    with ModelServer([behaviour]) as server, pytest.raises(ModelError) as caught:
        asker(model_at(server), "Hi")
    assert words in caught.value.message
    assert f"`{server.base_url}/messages`" in caught.value.message


@pytest.mark.parametrize("behaviour", [Stall("One two"), Hang()], ids=lambda b: type(b))
def test_cancel_closes_the_connection(asker, behaviour):
    """Cancelling the task hangs up at once."""

    async def cancel_in_time(server: ModelServer) -> float:
        model = model_at(server)
        task = asyncio.create_task(asker.ask(model, "Hi"))
        await asyncio.to_thread(server.wait_requests, 1)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].closed.wait, 5)
        took = time.monotonic() - start
        await model.aclose()
        return took

    with ModelServer([behaviour]) as server:
        assert asker.run(cancel_in_time(server)) < 0.25
