"""An answer while it arrives: pieces of text, tool calls in fragments, usage; for any wire format.

Chat completions send a call as fragments with an index, Anthropic as a block; some servers send
whole calls at once, without ids, or all with index 0. A fragment belongs to the call of its index
unless it carries another id, or starts a new call although the call of its index is complete.
"""

import json
from typing import Any, cast

from msgspec import Struct, field

from ...machines.conversation import Thought, ToolRequest, Usage
from ...machines.json_shape import DEEPEST, is_deeper
from .model import AnswerListener, ModelAnswer

ANSWER_LIMIT = 2 << 20
"""Bytes of one answer: text, thoughts and tool calls together. No model's window is larger."""
_SHOWN = 120  # characters of faulty arguments in the error that the model gets


class _Call(Struct, kw_only=True):
    """One tool call that is being received."""

    index: int
    wire_id: str = ""
    tool: str = ""
    arguments: str = ""


class AnswerBuilder(Struct, kw_only=True):
    """Collects one answer; `is_begun` as soon as a part of the answer has arrived.

    Thoughts are no part of it: a call that fails during them may be retried. `form` is the index of the
    block that holds a constrained answer, `size` counts the bytes so far, `odd` is the first object that
    the format does not know.
    """

    listener: AnswerListener
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = ""
    reasoning_pieces: int = 0
    form: int = -1
    size: int = 0
    odd: str = ""
    _halves: dict[str, str] = field(default_factory=dict[str, str])
    _text: list[str] = field(default_factory=list[str])
    _calls: list[_Call] = field(default_factory=list[_Call])
    _thoughts: dict[int, Thought] = field(default_factory=dict[int, Thought])

    @property
    def is_begun(self) -> bool:
        """Whether a part of the answer has arrived, which a second attempt would repeat."""
        return bool(self._text or self._calls)

    @property
    def is_empty(self) -> bool:
        """Whether neither text nor a tool call has arrived."""
        return not (self._calls or self.text.strip())

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._text)

    @property
    def came(self) -> str:
        """How much has arrived, for people."""
        calls = f" and {len(self._calls)} tool calls" if self._calls else ""
        return f"{len(self.text)} characters{calls}"

    def note_odd(self, value: dict[str, Any]) -> None:
        """Keep an object of an unknown kind for the error if nothing else comes."""
        self.odd = self.odd or json.dumps(value, ensure_ascii=False)

    def add_text(self, piece: str) -> None:
        """Receive a piece of text, and pass it on."""
        if piece := self._whole("text", piece):
            self._count(piece)
            self._text.append(piece)
            self.listener.on_text(piece)

    def think(self, piece: str) -> None:
        """Receive a piece of a thought that the API does not require back, and pass it on."""
        if piece := self._whole("thought", piece):
            self._count(piece)
            self.reasoning_pieces += 1
            self.listener.on_thought(piece)

    def keep_thought(
        self, index: int, text: str = "", signature: str = "", sealed: str = ""
    ) -> None:
        """Receive a fragment of a thought that the API requires back, and pass its text on."""
        self._count(signature + sealed)
        known = self._thoughts.get(index, Thought())
        self._thoughts[index] = Thought(
            text=paired(known.text + text),
            signature=known.signature + signature,
            sealed=known.sealed + sealed,
        )
        self.think(text)

    def add_call(
        self, index: int | None, wire_id: str = "", tool: str = "", arguments: str = ""
    ) -> None:
        """Receive a fragment of a tool call; all but the index may be empty."""
        self._count(wire_id + tool + arguments)
        call = self._call(index, wire_id, tool)
        call.wire_id = call.wire_id or wire_id
        call.tool = call.tool or tool
        call.arguments += arguments

    @property
    def is_too_large(self) -> bool:
        """Whether more has arrived than an answer may have."""
        return self.size > ANSWER_LIMIT

    def _whole(self, kind: str, piece: str) -> str:
        """Return a piece without half a character at its end, which waits for the other half."""
        piece = paired(self._halves.pop(kind, "") + piece)
        if "\ud800" <= piece[-1:] <= "\udbff":
            self._halves[kind], piece = piece[-1], piece[:-1]
        return piece

    def _count(self, piece: str) -> None:
        self.size += len(piece.encode("utf-8", "replace"))

    def has_call(self, index: int) -> bool:
        """Whether a call with this index has begun."""
        return any(call.index == index for call in self._calls)

    def _call(self, index: int | None, wire_id: str, tool: str) -> _Call:
        last = self._calls[-1] if self._calls else None
        for call in reversed(self._calls):
            is_apart = index not in (None, call.index) and tool and _is_object(call.arguments)
            if wire_id and call.wire_id == wire_id and not is_apart:
                return call
            if index is not None and call.index == index:
                last = call
                break
        if (
            last is None
            or (index is not None and last.index != index)
            or (wire_id and last.wire_id and wire_id != last.wire_id)
            or (tool and last.tool and _is_object(last.arguments))
        ):
            last = _Call(index=len(self._calls) if index is None else index)
            self._calls.append(last)
        return last

    def answer(self, call_prefix: str) -> ModelAnswer:
        """Return the whole answer; the ids of its calls are `call_prefix` and a number from 1."""
        is_cut = self.stop_reason == "length"
        calls: list[ToolRequest] = []
        for number, call in enumerate(self._calls, 1):
            arguments, fault = parse_arguments(paired(call.arguments))
            if fault and is_cut:
                fault = f"cut off at the token limit: {fault}"
            if not call.tool:
                fault = "the call names no tool"
            ours = f"{call_prefix}{number}"
            calls.append(ToolRequest(call=ours, tool=call.tool, arguments=arguments, fault=fault))
        thoughts = self._thoughts.values()
        return ModelAnswer(
            text=self.text,
            tool_calls=tuple(calls),
            usage=self.usage,
            stop_reason="tools" if calls else "length" if is_cut else "stop",
            thoughts=tuple(kept for kept in thoughts if kept.signature or kept.sealed),
        )


def paired(text: str) -> str:
    """Put the halves of characters together that came as two, as UTF-16 writes what is above U+FFFF."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def parse_arguments(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object in `text`, or an empty one and the fault; an empty text is `{}`."""
    if not text.strip():
        return {}, ""
    try:
        value: Any = json.loads(text, strict=False, parse_float=_number)
        if isinstance(value, str):  # some models write JSON in JSON
            value = json.loads(value, strict=False, parse_float=_number)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        if is_deeper(value, DEEPEST):
            return {}, f"the arguments are nested more than {DEEPEST} deep"
        return cast(dict[str, Any], value), ""
    return {}, f"the arguments are not a JSON object: {text[:_SHOWN]}"


def _number(text: str) -> int | float:
    """Read a number; `5.0` is an integer for JSON Schema."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _is_object(text: str) -> bool:
    return bool(text.strip()) and not parse_arguments(text)[1]
