"""Any server that speaks chat completions: OpenAI, OpenRouter, ollama, llama.cpp, vLLM, and so on.

Format: https://platform.openai.com/docs/api-reference/chat. What servers are known to do otherwise
is accepted: one JSON answer instead of a stream, whole tool calls, calls without ids, no usage.
Each message has a wire form of its own, which stays as it is, so prompt caches stay warm.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...machines.conversation import ChatMessage, Usage, as_told
from ...machines.pattern import lazy_pattern
from .capacity import asked_window, published_window
from .endpoint import is_loopback
from .error_text import is_error
from .loose_json import count, table, tables
from .model import ModelRequest
from .reply import AnswerBuilder
from .served import ServedModel, ServedProvider
from .stream import DONE
from .wire import WireFormat, WireValue, wire_id

_UNFINISHED = (None, "", "null")  # as some servers write that a choice goes on

_ALLOWING = lazy_pattern(r"gpt-(?:[5-9]|\d\d)")
"""Models of OpenAI that take a list of the tools that are allowed in a call."""

_OF_TOOLS = {
    "type": "text",
    "text": "[These are the pictures of the results above, in their order.]",
}


def wire_messages(messages: Iterable[ChatMessage]) -> Iterator[tuple[int, WireValue]]:
    """Give one wire message for each of `messages`, and one more for the pictures of tools.

    Results of tools are only text in this format, and nothing may stand between them: so a message with
    all their pictures follows the last one.
    """
    shown: list[WireValue] = []
    for message in messages:
        if shown and message.role != "tool":
            yield 0, {"role": "user", "content": [*shown, _OF_TOOLS]}
            shown = []
        if message.role == "tool":
            shown += _images(message)
        yield 1, _wire_message(message)
    if shown:
        yield 0, {"role": "user", "content": [*shown, _OF_TOOLS]}


def _images(message: ChatMessage) -> Iterator[WireValue]:
    for picture in message.pictures:
        url = f"data:{picture.media_type};base64,{picture.data}"
        yield {"type": "image_url", "image_url": {"url": url}}


def _wire_message(message: ChatMessage) -> WireValue:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": wire_id(message.call), "content": message.text}
    if message.pictures:
        text = {"type": "text", "text": message.text}
        return {"role": message.role, "content": [*_images(message), text]}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    calls: list[WireValue] = []
    for call in message.tool_calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        function = {"name": call.tool, "arguments": arguments}
        calls.append({"id": wire_id(call.call), "type": "function", "function": function})
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}


CHAT = WireFormat(objects=wire_messages)


def _take_in_delta(delta: dict[str, Any], reply: AnswerBuilder) -> None:
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thought, str):  # the name depends on the server
        reply.think(thought)
    if isinstance(delta.get("content"), str):
        reply.add_text(delta["content"])
    if isinstance(delta.get("refusal"), str):
        reply.add_text(delta["refusal"])
    for part in tables(delta.get("content")):
        reply.add_text(str(part.get("text") or ""))
    for call in tables(delta.get("tool_calls")):
        function = table(call.get("function"))
        index = call.get("index")
        arguments = function.get("arguments") or ""
        reply.add_call(
            index if isinstance(index, int) else None,
            str(call.get("id") or ""),
            str(function.get("name") or ""),
            arguments if isinstance(arguments, str) else json.dumps(arguments),
        )


def _usage(usage: dict[str, Any], reasoning_pieces: int) -> Usage:
    """Read the counts; where a server counts no reasoning, its pieces stand in (one token each)."""
    return Usage(
        input=count(usage, "prompt_tokens"),
        output=count(usage, "completion_tokens"),
        cache_read=count(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning=count(usage, "completion_tokens_details", "reasoning_tokens") or reasoning_pieces,
    )


class ChatModel(ServedModel):
    """A model behind `{base_url}/chat/completions`."""

    format = CHAT
    path = "/chat/completions"

    async def window(self) -> int:
        """Ask the server for the model's window in tokens; 0 if it does not report it."""
        if self._is_published:
            return published_window(self._model)
        is_near = is_loopback(self._address)
        return await asked_window(self._endpoint.get, self._address, self._model, is_near=is_near)

    @property
    def _is_published(self) -> bool:
        return self._host == "api.openai.com"

    def _headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def _take_in(self, value: dict[str, Any], reply: AnswerBuilder) -> None:
        """Add one chunk of a stream to the reply, or a whole answer, which differs only in a name."""
        if value is DONE:
            reply.stop_reason = reply.stop_reason or "stop"
            return
        if is_error(value):
            raise self._diagnostic.reported(value)
        usage = table(value.get("usage"))
        if not ("choices" in value or usage):
            reply.note_odd(value)
        for choice in tables(value.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            if is_error(choice):
                raise self._diagnostic.reported(choice)
            _take_in_delta(table(choice.get("delta") or choice.get("message")), reply)
            reason = choice.get("finish_reason")
            if reason not in _UNFINISHED or "message" in choice:
                reply.stop_reason = "stop" if reason in _UNFINISHED else str(reason)
        if usage:
            reply.usage = _usage(usage, reply.reasoning_pieces)

    def _fields(self, request: ModelRequest) -> WireValue:
        options = {"include_usage": True}
        body: WireValue = {"model": self._model, "stream": True, "stream_options": options}
        if request.tools:
            body["tools"] = [
                {"type": "function", "function": as_told(tool)} for tool in request.tools
            ]
            if self._is_published and _ALLOWING.match(self._model) and request.unusable:
                usable = [
                    {"type": "function", "function": {"name": tool.name}} for tool in request.usable
                ]
                allowed = {"mode": "auto", "tools": usable}
                body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            # OpenAI's own newer models refuse `max_tokens`; other servers may not know the newer name.
            limit = "max_completion_tokens" if self._is_published else "max_tokens"
            body[limit] = request.max_tokens
        if request.response_schema is not None:
            schema = {"name": "answer", "schema": request.response_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._thinking:
            body["reasoning_effort"] = self._thinking
        return body

    def _first(self, request: ModelRequest) -> list[WireValue]:
        return [{"role": "system", "content": request.system}] if request.system else []


PROVIDER = ServedProvider(ChatModel)
