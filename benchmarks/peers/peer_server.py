"""One model server on loopback for all contenders: chat completions, responses, Anthropic's messages.

What it answers is in the newest message of a person, so that the same work can be given to each
contender in words: `RUN[command]` is a call of its shell tool, `STREAM[seconds]` a text of 200 words a
second, `CALLS[n]` n shell calls one after another; everything else is answered with one word.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import Loopback, Talk

__all__ = ["Answer", "Asked", "PeerServer", "messages_of", "shell_call", "text_of"]

_SHELLS = (
    "shell",
    "bash",
    "Bash",
    "exec_command",
    "shell_command",
    "terminal",
    "local_shell",
    "run_shell_command",
)
_ORDER = re.compile(r"(RUN|STREAM|CALLS)\[([^\]]*)\]")
_RATE = 200  # words of a stream a second
_LONGEST = 600  # seconds that a command may run; some shell tools count milliseconds


@dataclass
class Asked:
    """One request for an answer; times of `time.perf_counter`, `size` in bytes of the body.

    `text` is what a person said last, `results` are the tool results behind it, oldest first.
    """

    path: str
    body: dict[str, Any]
    raw: bytes
    came: float
    text: str = ""
    results: list[str] = field(default_factory=list)
    done: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.raw)

    @property
    def has_tools(self) -> bool:
        """Whether the contender's agent asks, and not for example its maker of titles."""
        return bool(self.body.get("tools"))


class PeerServer(Loopback):
    """Serves until closed; a context manager. `asked` are the requests so far."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.change = threading.Condition()
        super().__init__(_Talk)

    def note(self, asked: Asked) -> None:
        """Remember a request."""
        with self.change:
            self.asked.append(asked)
            self.change.notify_all()

    def wait(self, start: int, count: int = 1, seconds: float = 60.0, text: str = "") -> Asked:
        """Return the `count`th request with tools from number `start` on; `text` is in it.

        Raises `TimeoutError`.
        """
        with self.change:
            if not self.change.wait_for(lambda: len(self._found(start, text)) >= count, seconds):
                raise TimeoutError(f"no request came in {seconds:g} s")
            return self._found(start, text)[count - 1]

    def answer(self, asked: Asked) -> "Answer":
        """Return what a request is answered with."""
        return _answer(asked)

    def before(self, asked: Asked, talk: BaseHTTPRequestHandler) -> bool:
        """Do what is to come before an answer; whether that took its place. For faults."""
        return False

    def during(self, asked: Asked, number: int) -> None:
        """Do what is to come before event `number` of a stream; an `OSError` ends it. For faults."""

    def _found(self, start: int, text: str) -> list[Asked]:
        needle = text.encode()
        return [one for one in self.asked[start:] if one.has_tools and needle in one.raw]


class _Talk(Talk):
    """One connection of a contender."""

    def do_HEAD(self) -> None:
        """Answer a contender that looks whether the server is there."""
        self.reply({})

    def do_GET(self) -> None:
        """List the one model."""
        models = [{"id": "bench", "object": "model", "slug": "bench", "context_length": 200_000}]
        self.reply({"object": "list", "data": models, "models": []})

    def do_POST(self) -> None:
        """Answer."""
        came = time.perf_counter()
        raw = self.body()
        if "count_tokens" in self.path:
            self.reply({"input_tokens": len(raw) // 4})
            return
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        asked = Asked(self.path, body, raw, came)
        _read(asked)
        if not any(part in self.path for part in ("completions", "responses", "messages")):
            self.reply({})
            return
        self.server.owner.note(asked)
        answer = self.server.owner.answer(asked)
        if self.server.owner.before(asked, self):
            return
        if body.get("stream"):
            self._stream(asked, answer)
        else:
            self.reply(_whole(asked, answer))
        asked.done = time.perf_counter()

    def _stream(self, asked: Asked, answer: "Answer") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number, event in enumerate(events(asked, answer)):
                self.server.owner.during(asked, number)
                data = event.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True


# What was asked -----------------------------------------------------------------------------------


def text_of(content: Any) -> str:
    """Return the text of a message's content, whose parts are joined by lines."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def messages_of(asked: Asked) -> list[dict[str, Any]]:
    """Return the items of the conversation, oldest first, as its protocol has them."""
    items = asked.body.get("messages") or asked.body.get("input") or ()
    return [item for item in items if isinstance(item, dict)]


def _read(asked: Asked) -> None:
    """Find the newest words of a person, and the results of tools behind them."""
    for item in messages_of(asked):
        content = item.get("content")
        blocks = content if isinstance(content, list) else []
        results = [part for part in blocks if part.get("type") == "tool_result"]
        if item.get("role") == "tool":
            asked.results.append(text_of(content))
        elif str(item.get("type", "")).endswith("_call_output"):
            asked.results.append(str(item.get("output", "")))
        elif results and not _ORDER.search(text_of(content)):
            asked.results += [text_of(part.get("content")) for part in results]
        elif item.get("role") == "user":
            text = text_of(content)
            if _ORDER.search(text) or not _ORDER.search(asked.text):
                asked.text, asked.results = text, []


def shell_call(asked: Asked, command: str) -> tuple[str, dict[str, Any]]:
    """Return the contender's shell tool, and the arguments that run a command with it."""
    for tool in asked.body.get("tools") or ():
        function = tool.get("function", tool)
        name = function.get("name", tool.get("type", ""))
        if name not in _SHELLS:
            continue
        schema = function.get("parameters") or function.get("input_schema") or {}
        known = schema.get("properties", {})
        key = "cmd" if "cmd" in known else "command"
        is_list = known.get(key, {}).get("type") == "array"
        arguments: dict[str, Any] = {key: ["bash", "-c", command] if is_list else command}
        for other in schema.get("required", ()):
            arguments.setdefault(other, "run")
        limit = known.get("timeout", {})
        if limit.get("type") in ("number", "integer"):
            is_short = name in ("Bash", "bash") or "millisecond" in limit.get("description", "")
            arguments["timeout"] = _LONGEST * 1000 if is_short else _LONGEST
        if "yield_time_ms" in known:
            arguments["yield_time_ms"] = 30_000
        return name, arguments
    return "", {}


@dataclass
class Answer:
    """A text, streamed in `seconds`, and a call of `tool` behind it if one is named.

    The text before a call is sent only if it takes time.
    """

    text: str = "ok"
    seconds: float = 0.0
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


def _answer(asked: Asked) -> Answer:
    orders = _ORDER.findall(asked.text)
    if not orders or not asked.has_tools:
        return Answer()
    kind, what = orders[-1]
    if kind == "STREAM":
        return Answer(seconds=float(what))
    most = int(what) if kind == "CALLS" else 1
    if len(asked.results) >= most:
        return Answer("done")
    tool, arguments = shell_call(asked, "echo one" if kind == "CALLS" else what)
    return Answer(tool=tool, arguments=arguments) if tool else Answer("there is no shell tool")


def _words(answer: Answer) -> Iterator[str]:
    """Yield a text in pieces, at the rate of a fast model where it is a stream."""
    if not answer.seconds:
        yield answer.text
        return
    began = time.perf_counter()
    for number in range(int(answer.seconds * _RATE)):
        time.sleep(max(0.0, began + number / _RATE - time.perf_counter()))
        yield "word "


# The three protocols ------------------------------------------------------------------------------


def events(asked: Asked, answer: Answer) -> Iterator[str]:
    """Yield the server-sent events of an answer in the protocol of its path."""
    if "messages" in asked.path:
        return _messages(answer)
    return _responses(answer) if "responses" in asked.path else _completions(answer)


def _event(data: dict[str, Any], name: str = "") -> str:
    return f"{f'event: {name}' + chr(10) if name else ''}data: {json.dumps(data)}\n\n"


def _completions(answer: Answer) -> Iterator[str]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        more = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
        return _event({**more, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    if answer.seconds or not answer.tool:
        for word in _words(answer):
            yield chunk({"content": word})
    if answer.tool:
        call = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
        identity = f"call_{time.monotonic_ns()}"
        calls = [{"index": 0, "id": identity, "type": "function", "function": call}]
        yield chunk({"tool_calls": calls})
        yield chunk({}, "tool_calls")
    else:
        yield chunk({}, "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    yield _event({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _responses(answer: Answer) -> Iterator[str]:
    number = iter(range(10_000_000))

    def event(kind: str, **more: Any) -> str:
        return _event({"type": kind, "sequence_number": next(number), **more}, kind)

    response = {"id": "r1", "object": "response", "created_at": 1, "model": "bench", "output": []}
    yield event("response.created", response={**response, "status": "in_progress"})
    items: list[dict[str, Any]] = []
    if answer.seconds or not answer.tool:
        item: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant", "content": []}
        yield event("response.output_item.added", output_index=0, item=item)
        said: list[str] = []
        for word in _words(answer):
            said.append(word)
            place = {"item_id": "m1", "output_index": 0, "content_index": 0}
            yield event("response.output_text.delta", **place, delta=word)
        part = {"type": "output_text", "text": "".join(said), "annotations": []}
        items.append({**item, "status": "completed", "content": [part]})
        yield event("response.output_item.done", output_index=0, item=items[-1])
    if answer.tool:
        identity = f"call_{time.monotonic_ns()}"
        call = {
            "type": "function_call",
            "id": f"f{identity}",
            "call_id": identity,
            "name": answer.tool,
            "arguments": json.dumps(answer.arguments),
            "status": "completed",
        }
        yield event("response.output_item.done", output_index=len(items), item=call)
        items.append(call)
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    whole = {**response, "status": "completed", "output": items, "usage": usage}
    yield event("response.completed", response=whole)


def _messages(answer: Answer) -> Iterator[str]:
    def event(kind: str, **more: Any) -> str:
        return _event({"type": kind, **more}, kind)

    usage = {"input_tokens": 10, "output_tokens": 2}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "bench", "content": []}
    begun = {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield event("message_start", message=begun)
    index = 0
    if answer.seconds or not answer.tool:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for word in _words(answer):
            delta = {"type": "text_delta", "text": word}
            yield event("content_block_delta", index=0, delta=delta)
        yield event("content_block_stop", index=0)
        index = 1
    if answer.tool:
        identity = f"toolu_{time.monotonic_ns()}"
        block = {"type": "tool_use", "id": identity, "name": answer.tool, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = "tool_use" if answer.tool else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": 2})
    yield event("message_stop")


def _whole(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Return an answer that is not streamed, in the protocol of its path.

    Only chat completions have calls then, and the text of the answer; the others say one word.
    """
    if "messages" in asked.path:
        return {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "bench",
            "content": [{"type": "text", "text": "ok"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
    if "responses" in asked.path:
        part = {"type": "output_text", "text": "ok", "annotations": []}
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [part]}
        return {"id": "r1", "object": "response", "status": "completed", "output": [item]}
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool:
        call = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
        identity = f"call_{time.monotonic_ns()}"
        message["tool_calls"] = [{"id": identity, "type": "function", "function": call}]
    reason = "tool_calls" if answer.tool else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
