"""A model server on loopback that does what a test tells it to, and remembers what it was asked.

In a test, in the same process::

    with ModelServer([Text("Hello."), Hang()]) as server:
        ...                                   # point a model at server.base_url
        server.requests[0].body["messages"]   # what came, parsed
        server.requests[1].closed.wait(seconds(10))    # the client hung up

As a process of its own, for tests of the whole program::

    cd tests && python -m support.model_server --script FILE --port 0

which prints its port on the first line and serves until its standard input ends, or it is told to
end. FILE is a JSON list of behaviours, each an object whose `do` names the behaviour and whose
other keys are its fields::

    [{"do": "status", "status": 429, "headers": {"Retry-After": "0.1"}},
     {"do": "tools", "calls": [{"tool": "read", "arguments": {"path": "notes.txt"}}]},
     {"do": "text", "text": "It says hello.", "pause": 0.02},
     {"do": "hang", "match": "wait for ever", "times": 0}]

Which behaviour answers: the first not used up whose `match` (a regular expression) is found in the
newest user message; else the next without `match`; the last of these repeats. `times` is how often
a behaviour with `match` answers; 0 is without end.

Instead of a list a test may give a function from what came (`Recorded`) to a behaviour: a model that
reads the conversation. A behaviour with a `Door` waits until the test opens it.

It speaks chat completions at `/v1/chat/completions` and Anthropic's messages at `/v1/messages`,
with the same behaviours, and lists one model at `/v1/models`, with its window if it has one.
Everything waits on sockets, so that it sees at once when a client closes, and ends at once when it is
closed itself.
"""

import argparse
import itertools
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from support.loopback import LoopbackRequest
from support.model_behaviours import (
    Behaviour,
    Cut,
    Door,
    Endless,
    Hang,
    Raw,
    Stall,
    Status,
    Text,
    Tools,
    chat_events,
    message_events,
    shell,
    text_events,
    whole_answer,
)
from support.patience import seconds
from support.readable import readable

__all__ = [
    "Behaviour",
    "Cut",
    "Door",
    "Endless",
    "Hang",
    "Mind",
    "ModelServer",
    "Raw",
    "Recorded",
    "Stall",
    "Status",
    "Text",
    "Tools",
    "load_script",
    "shell",
]

KINDS: dict[str, type[Behaviour]] = {
    kind.__name__.lower(): kind for kind in (Text, Tools, Status, Hang, Stall, Cut, Raw, Endless)
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


Mind = Sequence[Behaviour] | Callable[[Recorded], Behaviour]
"""What a model does: behaviours in their order, or one for each request."""


class ModelServer:
    """Serves on 127.0.0.1 until closed; a context manager."""

    def __init__(
        self,
        behaviours: Mind = (),
        port: int = 0,
        model: str = "test-model",
        window: int = 0,
    ) -> None:
        self.model = model
        self.window = window
        self.requests: list[Recorded] = []
        self._mind = behaviours if callable(behaviours) else None
        listed = () if callable(behaviours) else behaviours
        self._matching = [[one, one.times or -1] for one in listed if one.match]
        self._ordered = [one for one in listed if not one.match]
        self._change = threading.Condition()
        self._start = time.monotonic()
        self._wake, self._woken = socket.socketpair()
        self._http = _Http(("127.0.0.1", port), _Talk)
        self._http.owner = self
        self.port = self._http.server_address[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> "ModelServer":
        """Return the running server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Drop all connections and stop. Idempotent."""
        self._wake.close()
        self._thread.join()
        self._http.server_close()
        self._woken.close()

    def _serve(self) -> None:
        """Take connections until it is closed; `serve_forever` would look for that only now and then."""
        while self._woken not in readable(self._http, self._woken):
            self._http.handle_request()

    def wait_requests(self, count: int, timeout: float = 30.0) -> list[Recorded]:
        """Wait until so many requests have come, and return them."""
        with self._change:
            came = self._change.wait_for(lambda: len(self.requests) >= count, seconds(timeout))
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
            if self._mind is not None:
                return self._mind(request)
            for entry in self._matching:
                if entry[1] and re.search(cast(Behaviour, entry[0]).match, request.prompt):
                    entry[1] -= 1
                    return cast(Behaviour, entry[0])
            if not self._ordered:
                return Status(500, {"error": {"message": "the test has no behaviour left"}})
            return self._ordered.pop(0) if len(self._ordered) > 1 else self._ordered[0]

    def is_left(
        self, client: socket.socket, seconds: float | None, door: Door | None = None
    ) -> bool:
        """Wait; say whether the client hung up, or the server is closed, in this time.

        A door that opens ends the waiting, too.
        """
        watched = [client, self._woken, *([door] if door else ())]
        came = readable(*watched, timeout=seconds)
        if self._woken in came:
            return True
        try:
            return client in came and not client.recv(1, socket.MSG_PEEK)
        except OSError:
            return True


class _Http(ThreadingHTTPServer):
    """The listening socket; `owner` is set before the first request can come."""

    owner: ModelServer
    daemon_threads = False
    block_on_close = True
    timeout = 0
    """Seconds that `handle_request` waits for a connection: it is called when one has come."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that hang up, which is what they are here for."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Left(OSError):
    """The client hung up."""


class _Talk(LoopbackRequest):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def handle_one_request(self) -> None:
        """Wait for a request or for the end, whichever is first."""
        if self.server.owner._woken in readable(self.connection, self.server.owner._woken):
            self.close_connection = True
            return
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer what is asked about the server itself."""
        owner = self.server.owner
        if self.path == "/v1/models":
            more = {"max_model_len": owner.window} if owner.window else {}
            self._json({"object": "list", "data": [{"id": owner.model, "object": "model", **more}]})
        else:
            self._json({"error": {"message": "no such path"}}, 404)

    def do_POST(self) -> None:
        """Record the request and behave."""
        owner = self.server.owner
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        if len(raw) < length:  # the client was ended before it had asked
            self.close_connection = True
            return
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
                self._json(whole_answer(what))
            case Text() | Tools():
                self._answer(what, is_messages)
            case Hang():
                self._wait(None)
            case Stall():
                self._stream(text_events(what.text, is_messages), what.pause)
                self._wait(None)
            case Cut():
                if what.header:
                    self._stream(text_events(what.text, is_messages), what.pause)
                self.close_connection = True
            case Raw():
                self._raw(what)
            case Endless():
                self._flood(what)
            case _:
                raise AssertionError(what)

    def _wait(self, seconds: float | None, door: Door | None = None) -> None:
        if seconds != 0 and self.server.owner.is_left(self.connection, seconds, door):
            raise _Left

    def _answer(self, what: Text | Tools, is_messages: bool) -> None:
        """Stream a whole answer; a door stands behind its text."""
        events = message_events(what) if is_messages else chat_events(what)
        if what.door is not None:
            text = len(list(text_events(what.text, is_messages)))
            self._stream(itertools.islice(events, text), what.pause)
            self._wait(None, what.door)
            self._send(events, what.pause)
        else:
            self._stream(events, what.pause)
        self.wfile.write(b"0\r\n\r\n")

    def _stream(self, events: Iterator[str], pause: float) -> None:
        self._begin("text/event-stream")
        self._send(events, pause)

    def _begin(self, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _send(self, events: Iterator[str], pause: float) -> None:
        for event in events:
            self._wait(pause)
            self._chunk(event.encode())

    def _raw(self, what: Raw) -> None:
        body = what.body.encode()
        self._begin(what.content_type)
        places = [0, *what.splits, len(body)]
        for start, end in itertools.pairwise(places):
            self._wait(0.005 if start else 0)
            if end > start:
                self._chunk(body[start:end])
        if what.is_cut:
            raise _Left
        self.wfile.write(b"0\r\n\r\n")

    def _flood(self, what: Endless) -> None:
        self._begin(what.content_type, what.status)
        for piece in itertools.chain([what.start], itertools.repeat(what.piece)):
            if piece:
                self._chunk(piece.encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        kind = "text/html" if isinstance(value, str) else "application/json"
        self.reply(status, data, *{"Content-Type": kind, **(headers or {})}.items())


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
