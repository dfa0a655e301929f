"""A server whose answer does not end: the call ends with an error that says so, whatever it sends."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from support.model_server import Endless, ModelServer, Text
from support.patience import seconds

from steersman.machines.errors import ModelError
from steersman.ports.models import endpoint, reply, served, stream
from steersman.ports.models.anthropic import AnthropicModel
from steersman.ports.models.chat import ChatModel
from steersman.ports.models.model import Model

LIMIT = 20_000
JSON = "application/json"
FILL = "x" * 5_000


def delta(**fields: Any) -> str:
    """Return an event of chat completions."""
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': fields}]})}\n\n"


def block(kind: str, **fields: Any) -> str:
    """Return an event of messages."""
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}}
    return f"data: {json.dumps(event)}\n\n"


CALL = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": FILL}}
TOOL = {"type": "tool_use", "id": "c1", "name": "read"}
START = {"type": "content_block_start", "index": 0, "content_block": TOOL}
CASES: dict[str, tuple[type, Endless, str]] = {
    "text": (ChatModel, Endless(delta(content=FILL)), "an answer"),
    "thoughts": (ChatModel, Endless(delta(reasoning=FILL)), "an answer"),
    "calls": (ChatModel, Endless(delta(tool_calls=[CALL])), "an answer"),
    "line": (ChatModel, Endless(FILL, start="data: "), "a line"),
    "event": (ChatModel, Endless(f"data: {FILL}\n"), "a line"),
    "body": (ChatModel, Endless(FILL, start='{"choices": "', content_type=JSON), "a body"),
    "page": (ChatModel, Endless("<p>\n\n" * 1000, start="<html>"), "a body"),
    "lines": (ChatModel, Endless(",{}\n\n" * 1000, start='{"a":[{}'), "a body"),
    "block": (AnthropicModel, Endless(block("text_delta", text=FILL)), "an answer"),
    "thinking": (AnthropicModel, Endless(block("thinking_delta", thinking=FILL)), "an answer"),
    "input": (
        AnthropicModel,
        Endless(
            block("input_json_delta", partial_json=FILL), start=f"data: {json.dumps(START)}\n\n"
        ),
        "an answer",
    ),
    "message": (AnthropicModel, Endless(FILL, start='{"type": "', content_type=JSON), "a body"),
}


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set limits that are reached at once."""
    monkeypatch.setattr(reply, "ANSWER_LIMIT", LIMIT)
    monkeypatch.setattr(served, "ANSWER_LIMIT", LIMIT)
    monkeypatch.setattr(stream, "LONGEST", LIMIT)
    monkeypatch.setattr(endpoint, "ERROR_BODY", LIMIT)


def failed(asker: Callable[..., Any], make: Callable[..., Model], *behaviours: Any) -> ModelError:
    """Ask a server that behaves so; return the error, once the server has seen the client leave."""
    with ModelServer(behaviours) as server:
        with pytest.raises(ModelError) as caught:
            asker(make(server.base_url, "m"), "Hi")
        for request in server.requests:
            assert request.closed.wait(seconds(30))
    return caught.value


@pytest.mark.parametrize("case", CASES)
def test_an_answer_without_an_end_is_ended(asker, case: str) -> None:
    """The error says what there is too much of, the limit, and what to do; nothing is repeated."""
    make, behaviour, what = CASES[case]
    error = failed(asker, make, behaviour)
    assert f"sent {what} of more than {LIMIT:,} bytes" in error.message
    assert not asker.notices
    assert error.hint


def test_only_the_start_of_an_error_page_is_read(asker) -> None:
    """It is an error like any other of this status, with the begin of its text."""
    error = failed(
        asker, ChatModel, Endless(FILL, start='{"error": "', status=400, content_type=JSON)
    )
    assert "answered 400" in error.message
    assert len(error.message) < 500


def test_memory_stays_flat(asker) -> None:
    """A call keeps no more than the limit allows, however much is sent."""
    failed(asker, ChatModel, Endless(delta(content=FILL)))  # everything is imported
    tracemalloc.start()
    try:
        for case in ("text", "line", "body"):
            make, behaviour, _ = CASES[case]
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            failed(asker, make, behaviour)
            assert tracemalloc.get_traced_memory()[1] - before < 40 * LIMIT + (1 << 20), case
    finally:
        tracemalloc.stop()


def test_a_long_answer_below_the_limit_is_whole(asker) -> None:
    """The limit is about the whole answer; many lines below it are no reason to end a call."""
    text = "word " * (LIMIT // 5 - 10)
    with ModelServer([Text(text)]) as server:
        (answer,) = asker(ChatModel(server.base_url, "m"), "Hi")
    assert answer.text == text
