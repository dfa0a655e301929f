"""Anthropic's own Messages API: streaming, tool use, prompt caching.

Format: https://docs.anthropic.com/en/api/messages. Neighbouring messages of one side become one, as
the API wants all results of one answer in one message; its content blocks are only ever appended
to. The last block of the instructions, of the conversation and of what was said before is marked for
the cache, so that each call reads the cache entry that the call before has written.

The thoughts of the model go back with its answer, unchanged: the API requires that with tools. Older
models have a budget of tokens for thoughts, newer ones (from 4.6 on) an effort.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, Thought, Usage, as_told
from ...machines.pattern import lazy_pattern
from .capacity import published_window
from .error_text import is_error
from .loose_json import count, table, tables
from .model import ModelRequest
from .reply import AnswerBuilder
from .served import ServedModel, ServedProvider
from .wire import WireFormat, WireValue, wire_id

_VERSION = "2023-06-01"
_CACHE = {"cache_control": {"type": "ephemeral"}}
_FORM = "give_answer"  # the tool whose arguments are a constrained answer
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}  # tokens to think with
_WITH_BUDGET = lazy_pattern(r"claude-(3|[a-z]+-4(-[0-5])?(-20|@|$|-latest))")


def wire_turns(messages: Iterable[ChatMessage]) -> Iterator[tuple[int, WireValue]]:
    """Give user and assistant turns in alternation, each a list of content blocks."""
    turn: WireValue = {}
    count = 0
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if turn and turn["role"] != role:
            yield count, turn
            turn, count = {}, 0
        if not turn:
            turn = {"role": role, "content": []}
        turn["content"] += _blocks(message)
        count += 1
    if turn:
        yield count, turn


def _mark(newest: list[WireValue]) -> None:
    """Mark the last block of the conversation, and of what was said before, for the cache."""
    for turn in [turn for turn in newest if turn["role"] == "user"][-2:]:
        turn["content"][-1] |= _CACHE


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": wire_id(message.call)}
        if message.pictures:
            text = {"type": "text", "text": message.text.strip() or "(nothing)"}
            return [{**result, "content": [text, *_images(message)]}]
        return [{**result, "content": message.text} if message.text else result]
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": wire_id(call.call), "name": call.tool, "input": call.arguments}
        for call in message.tool_calls
    ]
    if message.text.strip() or not blocks:  # the API refuses empty text
        blocks.insert(0, {"type": "text", "text": message.text.strip() or "(nothing)"})
    return [*map(_thought, message.thoughts), *_images(message), *blocks]


def _images(message: ChatMessage) -> list[dict[str, Any]]:
    sources = [{"media_type": of.media_type, "data": of.data} for of in message.pictures]
    return [{"type": "image", "source": {"type": "base64", **source}} for source in sources]


def _thought(thought: Thought) -> dict[str, Any]:
    if thought.sealed:
        return {"type": "redacted_thinking", "data": thought.sealed}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


TURNS = WireFormat(objects=wire_turns, open=4, finish=_mark)
"""The newest turn may get more blocks; the last two of the user, which are marked, are among four."""


class AnthropicModel(ServedModel):
    """A model behind `{base_url}/v1/messages`."""

    format = TURNS
    path = "/messages"
    limit = 8192  # the API demands one
    base = "ends before `/v1/messages`"

    async def window(self) -> int:
        """Return the published window of the model."""
        return published_window(self._model)

    def _api(self, address: str) -> str:
        return f"{address.removesuffix('/v1')}/v1"

    def _headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def _fields(self, request: ModelRequest) -> WireValue:
        body: WireValue = {"model": self._model, "max_tokens": request.max_tokens, "stream": True}
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, **_CACHE}]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.response_schema is not None:
            body["tools"] = [_wire_tool(_FORM, "Give the answer.", request.response_schema)]
            body["tool_choice"] = {"type": "tool", "name": _FORM}
        elif request.tools:
            body["tools"] = [_wire_tool(**as_told(tool)) for tool in request.tools]
        if self._thinking and request.response_schema is None:  # a form can't be thought about
            self._let_think(body)
        return body

    def _let_think(self, body: dict[str, Any]) -> None:
        body.pop("temperature", None)  # the API allows none beside it
        if _WITH_BUDGET.match(self._model):
            budget = _BUDGETS[self._thinking]
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}
            body["max_tokens"] += budget  # the limit counts thoughts, too
        else:
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
            body["output_config"] = {"effort": self._thinking}

    def _take_in(self, value: dict[str, Any], reply: AnswerBuilder) -> None:
        """Add one event of a stream to the reply; unknown kinds are ignored, as the API requires."""
        if is_error(value):
            raise self._diagnostic.reported(value)
        index = count(value, "index")
        match value.get("type"):
            case "message_start":
                reply.usage = _usage(table(table(value.get("message")).get("usage")))
            case "message":  # the whole at once, from a server that does not stream
                reply.usage = _usage(table(value.get("usage")))
                for at, block in enumerate(tables(value.get("content"))):
                    _start_block(at, block, reply)
                _stop(value, reply)
            case "content_block_start":
                _start_block(index, table(value.get("content_block")), reply)
            case "content_block_delta":
                _take_in_delta(index, table(value.get("delta")), reply)
            case "message_delta":
                _stop(table(value.get("delta")), reply)
                used = _usage(table(value.get("usage")))
                reply.usage = used if used.input else replace(reply.usage, output=used.output)
            case str():
                return
            case _:
                reply.note_odd(value)


PROVIDER = ServedProvider(AnthropicModel, "https://api.anthropic.com")


def _wire_tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": parameters}


def _stop(message: dict[str, Any], reply: AnswerBuilder) -> None:
    reason = str(message.get("stop_reason") or "")
    reply.stop_reason = _STOPS.get(reason, reason) or reply.stop_reason


def _start_block(index: int, block: dict[str, Any], reply: AnswerBuilder) -> None:
    given = json.dumps(block["input"]) if block.get("input") else ""  # mostly it comes in pieces
    if block.get("type") == "tool_use" and block.get("name") == _FORM:
        reply.form = index
        reply.add_text(given)
    elif block.get("type") == "tool_use":
        reply.add_call(index, str(block.get("id") or ""), str(block.get("name") or ""), given)
    elif block.get("type") == "text":
        reply.add_text(str(block.get("text") or ""))
    elif block.get("type") == "thinking":
        text, signature = block.get("thinking") or "", block.get("signature") or ""
        reply.keep_thought(index, str(text), str(signature))
    elif block.get("type") == "redacted_thinking":
        reply.keep_thought(index, sealed=str(block.get("data") or ""))


def _take_in_delta(index: int, delta: dict[str, Any], reply: AnswerBuilder) -> None:
    match delta:
        case {"type": "text_delta", "text": str(text)}:
            reply.add_text(text)
        case {"type": "input_json_delta", "partial_json": str(part)} if reply.has_call(index):
            reply.add_call(index, arguments=part)
        case {"type": "input_json_delta", "partial_json": str(part)} if index == reply.form:
            reply.add_text(part)
        case {"type": "thinking_delta", "thinking": str(text)}:
            reply.keep_thought(index, text)
        case {"type": "signature_delta", "signature": str(signature)}:
            reply.keep_thought(index, signature=signature)
        case _:
            return


def _usage(counts: dict[str, Any]) -> Usage:
    """Read the counts; cached tokens, which the API counts apart, are added to the input."""
    read = count(counts, "cache_read_input_tokens")
    written = count(counts, "cache_creation_input_tokens")
    return Usage(
        input=count(counts, "input_tokens") + read + written,
        output=count(counts, "output_tokens"),
        cache_read=read,
        cache_write=written,
    )
