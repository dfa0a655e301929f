"""What a test's model server can be told to do, and the events that it then sends."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Behaviour",
    "Cut",
    "Door",
    "Endless",
    "Hang",
    "Raw",
    "Stall",
    "Status",
    "Text",
    "Tools",
    "chat_events",
    "message_events",
    "shell",
    "text_events",
    "whole_answer",
]

USAGE = {"input": 100, "output": 20, "cached": 60, "reasoning": 4}


class Door:
    """Where an answer stops until a test opens it; a pipe, so that it can be waited for."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()

    def fileno(self) -> int:
        """Return what becomes readable when the door is open."""
        return self._out

    def open(self) -> None:
        """Let everything through, from now on. Idempotent."""
        if self._in >= 0:
            os.close(self._in)
            self._in = -1

    def close(self) -> None:
        """Give the pipe back; not while anything waits."""
        self.open()
        os.close(self._out)


@dataclass(frozen=True)
class Behaviour:
    """What to do with a request; `pause` seconds lie before the header and before each piece.

    `door` holds the answer back: a `Text` and `Tools` behind their text, and before the rest.
    """

    match: str = field(default="", kw_only=True)
    times: int = field(default=1, kw_only=True)
    pause: float = field(default=0.0, kw_only=True)
    door: Door | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Text(Behaviour):
    """Stream `text` word by word; `stream` false sends one JSON answer instead."""

    text: str
    usage: dict[str, int] | None = field(default_factory=lambda: dict(USAGE))
    stream: bool = True
    stop: str = "stop"
    done: bool = True


@dataclass(frozen=True)
class Tools(Behaviour):
    """Ask for tools; each of `calls` is {tool, arguments, id?}, `arguments` a table or raw text.

    `style`: `deltas` (in fragments), `whole` (each call in one chunk, all with index 0), `no_ids`,
    `no_index`, `object` (arguments as an object, not as text).
    """

    calls: Sequence[dict[str, Any]]
    text: str = ""
    style: str = "deltas"


def shell(command: str, **more: Any) -> Tools:
    """Have the model wish for a shell command; `more` are other fields of `Tools`."""
    return Tools([{"tool": "shell", "arguments": {"command": command}}], **more)


@dataclass(frozen=True)
class Status(Behaviour):
    """Answer with an HTTP status; `body` is sent as JSON unless it is a string."""

    status: int
    body: Any = field(default_factory=lambda: {"error": {"message": "told to fail"}})
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Hang(Behaviour):
    """Send nothing, not even a header, until the client hangs up."""


@dataclass(frozen=True)
class Stall(Behaviour):
    """Stream `text`, then nothing more until the client hangs up."""

    text: str = ""


@dataclass(frozen=True)
class Cut(Behaviour):
    """Stream `text`, then close the connection; `header` false closes before any header."""

    text: str = ""
    header: bool = True


@dataclass(frozen=True)
class Raw(Behaviour):
    """Send `body` as it is, with status 200, flushed at each of the places `splits`; `is_cut`: no end."""

    body: str
    content_type: str = "text/event-stream"
    splits: Sequence[int] = ()
    is_cut: bool = False


@dataclass(frozen=True)
class Endless(Behaviour):
    """Send `start`, and then `piece` over and over until the client hangs up."""

    piece: str
    start: str = ""
    status: int = 200
    content_type: str = "text/event-stream"


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*", text) or ([text] if text else [])


def _event(value: Any, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"


def _delta(delta: dict[str, Any], stop: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return _event({"object": "chat.completion.chunk", "choices": [choice]})


def _chat_usage(usage: dict[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage["input"],
        "completion_tokens": usage["output"],
        "prompt_tokens_details": {"cached_tokens": usage.get("cached", 0)},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
    }


def text_events(
    text: str, is_messages: bool, usage: dict[str, int] | None = USAGE
) -> Iterator[str]:
    """Yield the begin of an answer, without its end."""
    if is_messages:
        yield from _message_start(usage)
        yield from _message_text(text)
        return
    yield _delta({"role": "assistant", "content": ""})
    for word in _words(text):
        yield _delta({"content": word})


def chat_events(what: Text | Tools) -> Iterator[str]:
    """Yield a whole answer as chat completions stream it."""
    yield from text_events(what.text, False)
    if isinstance(what, Tools):
        for number, call in enumerate(what.calls):
            yield from _call_events(number, call, what.style)
    yield _delta({}, what.stop if isinstance(what, Text) else "tool_calls")
    usage = what.usage if isinstance(what, Text) else USAGE
    if usage is not None:
        yield _event({"choices": [], "usage": _chat_usage(usage)})
    if not isinstance(what, Text) or what.done:
        yield "data: [DONE]\n\n"


def _arguments(call: dict[str, Any]) -> str:
    given = call.get("arguments", {})
    return given if isinstance(given, str) else json.dumps(given)


def _call_events(number: int, call: dict[str, Any], style: str) -> Iterator[str]:
    head: dict[str, Any] = {"index": number, "id": call.get("id", f"call_{number}")}
    name, arguments = call.get("tool", ""), _arguments(call)
    if style == "deltas":
        yield _delta({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        for start in range(0, len(arguments), 7):
            part = {"arguments": arguments[start : start + 7]}
            yield _delta({"tool_calls": [{"index": number, "function": part}]})
        return
    if style == "whole":
        head["index"] = 0
    if style in ("no_ids", "no_index"):
        del head["id" if style == "no_ids" else "index"]
    whole: Any = call["arguments"] if style == "object" else arguments
    yield _delta({"tool_calls": [{**head, "function": {"name": name, "arguments": whole}}]})


def whole_answer(what: Text) -> dict[str, Any]:
    """Return an answer of chat completions that is not streamed."""
    message = {"role": "assistant", "content": what.text}
    answer: dict[str, Any] = {"choices": [{"message": message, "finish_reason": what.stop}]}
    return answer | ({"usage": _chat_usage(what.usage)} if what.usage else {})


def _message_start(usage: dict[str, int] | None) -> Iterator[str]:
    message: dict[str, Any] = {"role": "assistant", "content": []}
    if usage is not None:
        message["usage"] = {
            "input_tokens": usage["input"] - usage["cached"] - 10,
            "cache_read_input_tokens": usage["cached"],
            "cache_creation_input_tokens": 10,
            "output_tokens": 1,
        }
    yield _event({"type": "message_start", "message": message}, "message_start")
    yield _event({"type": "ping"}, "ping")


def _message_block(
    index: int, block: dict[str, Any], deltas: list[dict[str, Any]]
) -> Iterator[str]:
    start = {"type": "content_block_start", "index": index, "content_block": block}
    yield _event(start, "content_block_start")
    for delta in deltas:
        one = {"type": "content_block_delta", "index": index, "delta": delta}
        yield _event(one, "content_block_delta")


def _message_text(text: str) -> Iterator[str]:
    deltas = [{"type": "text_delta", "text": word} for word in _words(text)]
    yield from _message_block(0, {"type": "text", "text": ""}, deltas)


def message_events(what: Text | Tools) -> Iterator[str]:
    """Yield a whole answer as Anthropic's Messages API streams it."""
    usage = what.usage if isinstance(what, Text) else USAGE
    yield from text_events(what.text, True, usage)
    calls = what.calls if isinstance(what, Tools) else ()
    for number, call in enumerate(calls, 1):
        block = {
            "type": "tool_use",
            "id": call.get("id", f"toolu_{number}"),
            "name": call.get("tool", ""),
            "input": {},
        }
        raw = _arguments(call)
        parts = [raw[start : start + 7] for start in range(0, len(raw), 7)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield from _message_block(number, block, deltas)
        yield _event({"type": "content_block_stop", "index": number}, "content_block_stop")
    stop = what.stop if isinstance(what, Text) else "tool_use"
    stop = {"stop": "end_turn", "length": "max_tokens"}.get(stop, stop)
    last = {
        "type": "message_delta",
        "delta": {"stop_reason": stop},
        "usage": {"output_tokens": usage["output"] if usage else 0},
    }
    yield _event(last, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")
