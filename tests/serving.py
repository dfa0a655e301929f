"""A model server on loopback that does what a test tells it to, and remembers what it was asked.

In a test, in the same process::

    with ModelServer([Text("Hello."), Hang()]) as server:
        ...                                   # point a model at server.base_url
        server.requests[0].body["messages"]   # what came, parsed
        server.requests[1].closed.wait(1)     # the client hung up

As a process of its own, for tests of the whole program::

    python tests/serving.py --script FILE --port 0

which prints its port on the first line and serves until its standard input ends, or it is told to
end. FILE is a JSON list of behaviours, each an object whose `do` names the behaviour and whose other
keys are its fields::

    [{"do": "status", "status": 429, "headers": {"Retry-After": "0.1"}},
     {"do": "tools", "calls": [{"tool": "read", "arguments": {"path": "notes.txt"}}]},
     {"do": "text", "text": "It says hello.", "pause": 0.02},
     {"do": "hang", "match": "wait for ever", "times": 0}]

`GET /requests` then returns what it was asked: a list of {path, headers, body, at, closed_at,
finished}, times in seconds since the server started.

Which behaviour answers: the first not used up whose `match` (a regular expression) is found in the
newest user message; else the next without `match`; the last of these repeats. `times` is how often a
behaviour with `match` answers; 0 is without end.

It speaks chat completions at `/v1/chat/completions` and Anthropic's messages at `/v1/messages`, with
the same behaviours, and lists one model at `/v1/models`. Everything waits on sockets, so that it sees
at once when a client closes, and ends at once when it is closed itself.
"""

import argparse
import json
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, cast

__all__ = [
    "Behaviour",
    "Cut",
    "Hang",
    "ModelServer",
    "Raw",
    "Recorded",
    "Stall",
    "Status",
    "Text",
    "Tools",
    "load_script",
]

USAGE = {"input": 100, "output": 20, "cached": 60, "reasoning": 4}


@dataclass(frozen=True)
class Behaviour:
    """What to do with a request; `pause` seconds lie before the header and before each piece."""

    match: str = field(default="", kw_only=True)
    times: int = field(default=1, kw_only=True)
    pause: float = field(default=0.0, kw_only=True)


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
    """Send `body` as it is, with status 200; `splits` cuts it at these places with a flush between."""

    body: str
    content_type: str = "text/event-stream"
    splits: Sequence[int] = ()


KINDS: dict[str, type[Behaviour]] = {
    kind.__name__.lower(): kind for kind in (Text, Tools, Status, Hang, Stall, Cut, Raw)
}


def load_script(text: str) -> list[Behaviour]:
    """Read behaviours from the JSON form that the module's text describes."""
    return [KINDS[entry.pop("do")](**entry) for entry in json.loads(text)]


@dataclass
class Recorded:
    """One request as it came; times in seconds since the server started."""

    path: str
    headers: dict[str, str]
    body: Any
    at: float
    closed_at: float | None = None
    finished: bool = False
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def prompt(self) -> str:
        """The text of the newest user message."""
        for message in reversed(self.body.get("messages", [])):
            if message["role"] == "user":
                content = message["content"]
                if isinstance(content, str):
                    return content
                texts = [part.get("text", "") for part in content]
                if any(texts):
                    return "\n".join(texts)
        return ""


class ModelServer:
    """Serves on 127.0.0.1 until closed; a context manager."""

    def __init__(
        self, behaviours: Sequence[Behaviour] = (), port: int = 0, model: str = "test-model"
    ) -> None:
        self.model = model
        self.requests: list[Recorded] = []
        self._matching = [[one, one.times or -1] for one in behaviours if one.match]
        self._ordered = [one for one in behaviours if not one.match]
        self._change = threading.Condition()
        self._start = time.monotonic()
        self._wake, self._woken = socket.socketpair()
        self._http = _Http(("127.0.0.1", port), _Talk)
        self._http.owner = self
        self.port = self._http.server_address[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()

    def __enter__(self) -> "ModelServer":
        """Return the running server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Drop all connections and stop. Idempotent."""
        self._wake.close()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self._woken.close()

    def wait_requests(self, count: int, timeout: float = 5.0) -> list[Recorded]:
        """Wait until so many requests have come, and return them."""
        with self._change:
            came = self._change.wait_for(lambda: len(self.requests) >= count, timeout)
            assert came, f"only {len(self.requests)} of {count} requests came"
            return list(self.requests)

    def now(self) -> float:
        """Seconds since the server started."""
        return time.monotonic() - self._start

    def record(self, request: Recorded) -> Behaviour:
        """Remember a request and choose what to do with it."""
        with self._change:
            self.requests.append(request)
            self._change.notify_all()
            for entry in self._matching:
                if entry[1] and re.search(cast(Behaviour, entry[0]).match, request.prompt):
                    entry[1] -= 1
                    return cast(Behaviour, entry[0])
            if not self._ordered:
                return Status(500, {"error": {"message": "the test has no behaviour left"}})
            return self._ordered.pop(0) if len(self._ordered) > 1 else self._ordered[0]

    def is_left(self, client: socket.socket, seconds: float | None) -> bool:
        """Wait; say whether the client hung up, or the server is closed, in this time."""
        readable, _, _ = select.select([client, self._woken], [], [], seconds)
        if self._woken in readable:
            return True
        try:
            return client in readable and not client.recv(1, socket.MSG_PEEK)
        except OSError:
            return True


class _Http(ThreadingHTTPServer):
    """The listening socket; `owner` is set before the first request can come."""

    owner: ModelServer
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that hang up, which is what they are here for."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Left(OSError):
    """The client hung up."""


class _Talk(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def handle_one_request(self) -> None:
        """Wait for a request or for the end, whichever is first."""
        waits = select.select([self.connection, self.server.owner._woken], [], [])[0]
        if self.server.owner._woken in waits:
            self.close_connection = True
            return
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer what is asked about the server itself."""
        owner = self.server.owner
        if self.path == "/v1/models":
            self._json({"object": "list", "data": [{"id": owner.model, "object": "model"}]})
        elif self.path == "/requests":
            names = ("path", "headers", "body", "at", "closed_at", "finished")
            self._json([{n: getattr(one, n) for n in names} for one in owner.requests])
        else:
            self._json({"error": {"message": "no such path"}}, 404)

    def do_POST(self) -> None:
        """Record the request and behave."""
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(self.path, headers, json.loads(raw), owner.now())
        self._behave(owner.record(request), request)

    def _behave(self, what: Behaviour, request: Recorded) -> None:
        try:
            self._wait(what.pause)
            self._do(what, "messages" in self.path)
            request.finished = True
        except OSError:
            self.close_connection = True
        if not request.finished or self.close_connection:
            request.closed_at = self.server.owner.now()
            request.closed.set()

    def _do(self, what: Behaviour, is_messages: bool) -> None:
        match what:
            case Status():
                self._json(what.body, what.status, what.headers)
            case Text(stream=False):
                self._json(_whole(what))
            case Text() | Tools():
                events = _message_events(what) if is_messages else _chat_events(what)
                self._stream(events, what.pause)
                self.wfile.write(b"0\r\n\r\n")
            case Hang():
                self._wait(None)
            case Stall():
                self._stream(_text_events(what.text, is_messages), what.pause)
                self._wait(None)
            case Cut():
                if what.header:
                    self._stream(_text_events(what.text, is_messages), what.pause)
                self.close_connection = True
            case Raw():
                self._raw(what)
            case _:
                raise AssertionError(what)

    def _wait(self, seconds: float | None) -> None:
        if seconds != 0 and self.server.owner.is_left(self.connection, seconds):
            raise _Left

    def _stream(self, events: Iterator[str], pause: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self._wait(pause)
            self._chunk(event.encode())

    def _raw(self, what: Raw) -> None:
        body = what.body.encode()
        self.send_response(200)
        self.send_header("Content-Type", what.content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        places = [0, *what.splits, len(body)]
        for start, end in zip(places, places[1:], strict=False):
            self._wait(0.005 if start else 0)
            if end > start:
                self._chunk(body[start:end])
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        kind = "text/html" if isinstance(value, str) else "application/json"
        for name, content in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, content)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


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


def _text_events(text: str, is_messages: bool) -> Iterator[str]:
    """Yield the begin of an answer, without its end."""
    if is_messages:
        yield from _message_start()
        yield from _message_text(text)
        return
    yield _delta({"role": "assistant", "content": ""})
    for word in _words(text):
        yield _delta({"content": word})


def _chat_events(what: Text | Tools) -> Iterator[str]:
    yield from _text_events(what.text, False)
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


def _whole(what: Text) -> dict[str, Any]:
    message = {"role": "assistant", "content": what.text}
    answer: dict[str, Any] = {"choices": [{"message": message, "finish_reason": what.stop}]}
    return answer | ({"usage": _chat_usage(what.usage)} if what.usage else {})


def _message_start() -> Iterator[str]:
    usage = {
        "input_tokens": USAGE["input"] - USAGE["cached"] - 10,
        "cache_read_input_tokens": USAGE["cached"],
        "cache_creation_input_tokens": 10,
        "output_tokens": 1,
    }
    message = {"role": "assistant", "content": [], "usage": usage}
    yield _event({"type": "message_start", "message": message}, "message_start")
    yield _event({"type": "ping"}, "ping")


def _message_block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[str]:
    start = {"type": "content_block_start", "index": index, "content_block": block}
    yield _event(start, "content_block_start")
    for delta in deltas:
        one = {"type": "content_block_delta", "index": index, "delta": delta}
        yield _event(one, "content_block_delta")


def _message_text(text: str) -> Iterator[str]:
    deltas = [{"type": "text_delta", "text": word} for word in _words(text)]
    yield from _message_block(0, {"type": "text", "text": ""}, deltas)


def _message_events(what: Text | Tools) -> Iterator[str]:
    yield from _text_events(what.text, True)
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
        "usage": {"output_tokens": USAGE["output"]},
    }
    yield _event(last, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def main() -> None:
    """Serve a script until standard input ends."""
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("--script", required=True, type=Path, help="JSON list of behaviours")
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free one")
    given = parser.parse_args()
    with ModelServer(load_script(given.script.read_text("utf-8")), given.port) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
