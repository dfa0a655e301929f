"""Tools for models that do not call them natively.

With `JsonDialect` the answer itself is a constrained JSON action: either `{"say": "text"}` or
`{"tool": "name", "arguments": {…}}`. The server constrains the answer by a JSON Schema; if it does not,
the parser accepts fences, prose around the action, and other spellings (`said_calls.py`). Results of
tools go back as user messages that begin with `[Result of NAME]`.

Small models, and servers without a template for tools, print `{"name": "read", …}` in place of a native
call. Shown as the answer it would end the turn with nothing done. So `ReadingModel` takes such a text for
the calls that it is, and the model's later requests go through the JSON dialect.
"""

import json
import re
from collections.abc import Sequence

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, as_told
from ...machines.pattern import lazy_pattern
from .model import AnswerListener, Model, ModelAnswer, ModelRequest, WrappedModel
from .retry import BrokenAnswer
from .said_calls import SayStream, calls_in, parse_action

_FORGED = lazy_pattern(r"^(?=\[(?:New message from|Result of) )", re.MULTILINE)
_PROMPT = """
You can use tools. Always answer with exactly one JSON object and nothing else. To speak:
{"say": "your words"}
To use a tool, whose result comes next:
{"tool": "name", "arguments": {...}}
Tools:
"""
_FRAMES = ("```json", "```", "<tool_call>", "<tools>", "[TOOL_CALLS]")

NOTICE = (
    "The model wrote a tool call as text; it was made, and tools are asked for as JSON from now on. "
    '`tool_dialect = "json"` of the model says so from the start.'
)


class JsonDialect(WrappedModel):
    """Gives tools to a model without native tool calls; requests without tools pass unchanged."""

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Stream the text of the model, and return its text or its one tool call."""
        if not request.tools or request.response_schema is not None:
            plain = replace(request, tools=(), messages=_plain(request.messages, as_json=False))
            return await self.inner.answer(plain, listener)
        say = {"say": {"type": "string"}}
        uses = [{"tool": {"const": of.name}, "arguments": of.parameters} for of in request.usable]
        closed = {"type": "object", "additionalProperties": False}
        tools = "".join(
            f"- {tool.name}: {tool.description} Arguments: {json.dumps(as_told(tool)['parameters'])}\n"
            for tool in request.tools
        )
        translated = replace(
            request,
            system=f"{request.system}\n{_PROMPT}{tools}".strip(),
            messages=_plain(request.messages, as_json=True),
            tools=(),
            response_schema={
                "oneOf": [closed | {"properties": of, "required": [*of]} for of in (say, *uses)]
            },
        )
        stream = SayStream(listener.on_text)
        answer = await self.inner.answer(translated, replace(listener, on_text=stream.feed))
        text, call = parse_action(answer.text, is_cut=answer.stop_reason == "length")
        stream.finish(text)
        if call is None and not text.strip():
            raise BrokenAnswer(
                f"{self.name} gave an empty answer", "ask again", repeats=1, is_empty=True
            )
        if call is None:
            return replace(answer, text=text)
        calls = (call.request(f"{request.call_prefix}1"),)
        return replace(answer, text=text, tool_calls=calls, stop_reason="tools")


class ReadingModel(WrappedModel):
    """Asks `inner`, whose tools are native, until it writes a call as text."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._dialect: JsonDialect | None = None

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Return the answer of the model, with what it wrote as calls as calls."""
        if self._dialect is not None and not request.is_plain:
            return await self._dialect.answer(request, listener)
        answer = await self.inner.answer(request, listener)
        if answer.tool_calls or request.is_plain or request.response_schema is not None:
            return answer
        said = calls_in(answer.text, (tool.name for tool in request.tools))
        if not said:
            return answer
        self._dialect = JsonDialect(self.inner)
        listener.on_notice(NOTICE)
        before = answer.text[: min(call.start for call in said)].rstrip()
        for frame in _FRAMES:
            before = before.removesuffix(frame).rstrip()
        calls = [call.request(f"{request.call_prefix}{at}") for at, call in enumerate(said, 1)]
        return replace(answer, text=before, tool_calls=tuple(calls), stop_reason="tools")


def _plain(messages: Sequence[ChatMessage], *, as_json: bool) -> tuple[ChatMessage, ...]:
    """Rewrite tool calls and results as text; neighbours of one role become one message."""
    names = {call.call: call.tool for message in messages for call in message.tool_calls}
    plain: list[ChatMessage] = []
    for message in messages:
        role, text, pictures = message.role, message.text, message.pictures
        if role == "assistant":
            said = json.dumps({"say": text}, ensure_ascii=False) if as_json and text else text
            calls = (
                json.dumps({"tool": call.tool, "arguments": call.arguments}, ensure_ascii=False)
                for call in message.tool_calls
            )
            text = "\n".join(filter(None, (said, *calls)))
        elif role == "tool":
            # A line in a result must not pass for a message of the person.
            text = f"[Result of {names.get(message.call, 'tool')}] " + _FORGED.sub("| ", text)
            role = "user"
        if plain and plain[-1].role == role:
            text = f"{plain[-1].text}\n\n{text}"
            pictures = (*plain.pop().pictures, *pictures)
        plain.append(ChatMessage(role=role, text=text, pictures=pictures))
    return tuple(plain)
