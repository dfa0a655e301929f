"""Tools for models without native tool calls: the answer itself is a constrained JSON action.

Either `{"say": "text"}` or `{"tool": "name", "arguments": {…}}`. The server constrains the answer
by a JSON Schema; if it does not, the parser accepts fences, prose around the action, and other
spellings. Results of tools go back as user messages that begin with `[Result of NAME]`.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, ToolRequest, ToolSchema
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from .model import AnswerListener, Model, ModelAnswer, ModelRequest
from .retry import BrokenAnswer

_FORGED = lazy_pattern(r"^(?=\[(?:New message from|Result of) )", re.MULTILINE)
_PROMPT = """
You can use tools. Always answer with exactly one JSON object and nothing else. To speak:
{"say": "your words"}
To use a tool, whose result comes next:
{"tool": "name", "arguments": {...}}
Tools:
"""


class _Action(Value):
    """A constrained answer, parsed."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    fault: str = ""


class JsonDialect:
    """Gives tools to a model without native tool calls; requests without tools pass unchanged."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.name = inner.name

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Stream the text of the model, and return its text or its one tool call."""
        if not request.tools or request.response_schema is not None:
            plain = replace(request, tools=(), messages=_plain(request.messages, as_json=False))
            return await self._inner.answer(plain, listener)
        stream = SayStream(listener.on_text)
        answer = await self._inner.answer(
            translate(request), replace(listener, on_text=stream.feed)
        )
        action = parse_action(answer.text, is_cut=answer.stop_reason == "length")
        stream.finish(action.text)
        if not action.tool and not action.text.strip():
            raise BrokenAnswer(
                f"{self.name} gave an empty answer", "ask again", repeats=1, is_empty=True
            )
        if not action.tool:
            return replace(answer, text=action.text)
        call = ToolRequest(
            call=f"{request.call_prefix}1",
            tool=action.tool,
            arguments=action.arguments or {},
            fault=action.fault,
        )
        return replace(answer, text=action.text, tool_calls=(call,), stop_reason="tools")

    async def window(self) -> int:
        """Return the window of the inner model."""
        return await self._inner.window()

    async def aclose(self) -> None:
        """Close the inner model. Idempotent."""
        await self._inner.aclose()


def translate(request: ModelRequest) -> ModelRequest:
    """Return an equivalent request without native tools."""
    tools = "".join(
        f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters)}\n"
        for tool in request.tools
    )
    return replace(
        request,
        system=f"{request.system}\n{_PROMPT}{tools}".strip(),
        messages=_plain(request.messages, as_json=True),
        tools=(),
        response_schema=action_schema(request.tools),
    )


def action_schema(tools: Iterable[ToolSchema]) -> dict[str, Any]:
    """Return the JSON Schema of one action."""
    say = _closed({"say": {"type": "string"}})
    uses = [_closed({"tool": {"const": tool.name}, "arguments": tool.parameters}) for tool in tools]
    return {"oneOf": [say, *uses]}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _plain(messages: Sequence[ChatMessage], *, as_json: bool) -> tuple[ChatMessage, ...]:
    """Rewrite tool calls and results as text; neighbours of one role become one message."""
    names = {call.call: call.tool for message in messages for call in message.tool_calls}
    plain: list[ChatMessage] = []
    for message in messages:
        role, text = message.role, message.text
        if role == "assistant":
            text = _spoken(message, as_json)
        elif role == "tool":
            # A line in a result must not pass for a message of the person.
            text = f"[Result of {names.get(message.call, 'tool')}] " + _FORGED.sub("| ", text)
            role = "user"
        if plain and plain[-1].role == role:
            text = f"{plain[-1].text}\n\n{text}"
            pictures = (*plain.pop().pictures, *message.pictures)
        else:
            pictures = message.pictures
        plain.append(ChatMessage(role=role, text=text, pictures=pictures))
    return tuple(plain)


def _spoken(message: ChatMessage, as_json: bool) -> str:
    spoken = message.text
    if as_json and spoken:
        spoken = json.dumps({"say": spoken}, ensure_ascii=False)
    calls = (
        json.dumps({"tool": call.tool, "arguments": call.arguments}, ensure_ascii=False)
        for call in message.tool_calls
    )
    return "\n".join([*([spoken] if spoken else []), *calls])


def parse_action(text: str, is_cut: bool = False) -> _Action:
    """Parse an answer; anything but an action is text. `is_cut`: the token limit ended it."""
    for start in [match.start() for match in re.finditer(r"\{", text)][:20]:
        try:
            value: Any = json.JSONDecoder(strict=False).raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        action = _action(cast(dict[str, Any], value))
        if action:
            before = re.sub(r"```(?:json)?\s*$", "", text[:start]).strip()
            return replace(action, text=before or action.text) if action.tool else action
        break
    stream = SayStream(lambda piece: None)
    stream.feed(text)
    if stream.text:
        return _Action(text=stream.text)
    if is_cut and re.match(r'\s*\{\s*"tool"\s*:\s*"([^"]+)"', text):
        name = text.split('"')[3]
        return _Action(tool=name, fault=f"cut off at the token limit: {text[:120]}")
    return _Action(text=text)


def _action(value: dict[str, Any]) -> _Action | None:
    say = _first(value, "say", "text", "answer", "message")
    tool = _first(value, "tool", "name", "action")
    if isinstance(tool, str) and tool and tool != "say":
        arguments = _first(value, "arguments", "parameters", "args", "input")
        if isinstance(arguments, dict):
            return _Action(tool=tool, arguments=cast(dict[str, Any], arguments))
        if arguments is None:
            return _Action(tool=tool, arguments={})
        shown = json.dumps(arguments)[:120]
        return _Action(tool=tool, fault=f"the arguments are not a JSON object: {shown}")
    return _Action(text=say) if isinstance(say, str) else None


def _first(value: dict[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if name in value), None)


_SAY = lazy_pattern(r'\s*(?:```(?:json)?\s*)?\{\s*"say"\s*:\s*"')
# As much of a JSON string as is surely whole: no half escape, no half pair of surrogates.
_WHOLE = lazy_pattern(
    r"(?:[^\"\\]"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    r'|\\["\\/bfnrt])+'
)


class SayStream:
    """Streams the text of `{"say": "…"}` while the JSON arrives; `text` is the text so far."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._waiting = ""
        self._is_open = False
        self._is_closed = False
        self.text = ""

    def feed(self, piece: str) -> None:
        """Receive a piece of the raw answer."""
        if self._is_closed:
            return
        self._waiting += piece
        if not self._is_open:
            begin = _SAY.match(self._waiting)
            if not begin:
                return
            self._is_open = True
            self._waiting = self._waiting[begin.end() :]
        whole = _WHOLE.match(self._waiting)
        if whole:
            self._waiting = self._waiting[whole.end() :]
            self._pass_on(str(json.loads(f'"{whole.group()}"', strict=False)))
        self._is_closed = self._waiting.startswith('"')

    def finish(self, text: str) -> None:
        """Pass on the rest of the whole `text`."""
        if text.startswith(self.text):
            self._pass_on(text[len(self.text) :])

    def _pass_on(self, piece: str) -> None:
        if piece:
            self.text += piece
            self._on_text(piece)
