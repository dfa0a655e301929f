"""A logging proxy between every harness and the one model server; it forces the sampling.

A harness is pointed at `proxy.url_of(attempt)`. Each answer of the model becomes a `Call` of it.
The proxy sets temperature and seed, takes out all other settings of sampling, bounds the output, and
refuses calls beyond the limit. What a client no longer waits for is also ended at the server.
"""

import http.client
import json
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from loopback import Loopback, Talk

OUTPUT = 1024
"""Tokens of an answer, at most."""
_SAMPLING = (
    *("top_p", "top_k", "min_p", "typical_p", "frequency_penalty", "presence_penalty"),
    *("repeat_penalty", "dry_multiplier", "dry_allowed_length", "logit_bias", "reasoning_effort"),
    *("max_completion_tokens", "n", "samplers", "mirostat"),
)
_OVER = {
    "error": {"message": "no more model calls in this attempt", "type": "invalid_request_error"}
}


@dataclass
class Call:
    """One answer of the model; times in seconds, counts in tokens; `cached` is a part of `read`.

    `uses` are the tool calls in it as name and arguments, `malformed` how many calls nobody can run: to
    a tool that was not offered, with arguments that are no object or lack a required one, or printed as
    text. `prompt` is the end of the request, by which a harness may have rejected the answer before.
    """

    seconds: float = 0.0
    status: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    text: str = ""
    uses: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    malformed: int = 0
    prompt: str = ""

    @property
    def said(self) -> str:
        """What makes two answers the same: their tool calls, else their text."""
        return json.dumps(self.uses) if self.uses else self.text.strip()


@dataclass
class Attempt:
    """What one attempt may do, and the calls that it has begun; `is_over`: it wanted one more."""

    key: str
    seed: int
    most_calls: int
    most_tokens: int = OUTPUT
    calls: list[Call] = field(default_factory=list[Call])
    ended: int = 0
    is_over: bool = False
    open: set[socket.socket] = field(default_factory=set[socket.socket])


class Proxy(Loopback):
    """Serves on loopback until closed; a context manager. `server` is the address of the model server."""

    def __init__(self, server: str) -> None:
        self.server = urlsplit(server)
        self._attempts: dict[str, Attempt] = {}
        self.lock = threading.Lock()
        super().__init__(_Talk)

    def begin(self, key: str, seed: int, most_calls: int, most_tokens: int = OUTPUT) -> Attempt:
        """Expect the calls of an attempt, each with an answer of at most so many tokens."""
        self._attempts[key] = attempt = Attempt(key, seed, most_calls, most_tokens)
        return attempt

    def url_of(self, attempt: Attempt) -> str:
        """Return the base address for one attempt, without `/v1`."""
        return f"{self.url}/{attempt.key}"

    def end(self, attempt: Attempt, seconds: float = 20.0) -> None:
        """Expect no more calls; end those that run at the server, and wait for their record."""
        self._attempts.pop(attempt.key, None)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self.lock:
                for sock in attempt.open:
                    with suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)
                if attempt.ended == len(attempt.calls):
                    return
            time.sleep(0.02)

    def of(self, key: str) -> Attempt | None:
        """Return the attempt that a request belongs to."""
        return self._attempts.get(key)


class _Talk(Talk):
    """One connection of a harness."""

    def do_GET(self) -> None:
        """Pass on what a harness asks about the server, for example its models."""
        self._pass(None)

    def do_POST(self) -> None:
        """Pass on a call with the sampling of the benchmark."""
        self._pass(self.body())

    def _pass(self, raw: bytes | None) -> None:
        _, key, *rest = self.path.split("/")
        owner = self.server.owner
        attempt = owner.of(key)
        if attempt is None:
            self.reply(_OVER, 404)
            return
        body: dict[str, Any] = json.loads(raw) if raw else {}
        if raw is None or "completions" not in self.path:
            self._forward("/" + "/".join(rest), raw, body, Call(), None)
            return
        call = Call()
        with owner.lock:
            attempt.is_over = len(attempt.calls) >= attempt.most_calls
            if not attempt.is_over:
                attempt.calls.append(call)
        if attempt.is_over:
            self.reply(_OVER, 400)
            return
        raw = json.dumps(forced(body, attempt)).encode()
        self._forward("/" + "/".join(rest), raw, body, call, attempt)

    def _forward(
        self,
        path: str,
        raw: bytes | None,
        body: dict[str, Any],
        call: Call,
        attempt: Attempt | None,
    ) -> None:
        server, began, came = self.server.owner.server, time.monotonic(), b""
        connection = http.client.HTTPConnection(server.hostname or "", server.port, timeout=600)
        try:
            connection.connect()
            if attempt:
                attempt.open.add(connection.sock)
            connection.request(self.command, path, raw, {"Content-Type": "application/json"})
            select.select([connection.sock, self.connection], [], [])
            if not select.select([connection.sock], [], [], 0)[0]:
                self.close_connection = True  # the harness hung up: so do we
                return
            answer = connection.getresponse()
            call.status = answer.status
            for piece in self._relay(answer):
                came += piece
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            if attempt:
                read_answer(call, came, body)
                call.seconds = time.monotonic() - began
                with self.server.owner.lock:
                    attempt.open.discard(connection.sock)
                    attempt.ended += 1
            connection.close()

    def _relay(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(65536):
            yield piece
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


def forced(body: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    """Return a request with the sampling of the benchmark instead of its own."""
    most = attempt.most_tokens
    limit = min(body.get("max_completion_tokens") or body.get("max_tokens") or most, most)
    kept = {key: value for key, value in body.items() if key not in _SAMPLING}
    return {
        **kept,
        "temperature": 0,
        "seed": attempt.seed,
        "max_tokens": limit,
        "cache_prompt": True,
    }


# What an answer says ------------------------------------------------------------------------------


def _pieces(came: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an answer, streamed or whole."""
    text = came.decode("utf-8", "replace")
    lines = text.splitlines() if "data:" in text[:400] else [text]
    for line in lines:
        with suppress(ValueError):
            found = json.loads(line.removeprefix("data:"))
            if isinstance(found, dict):
                yield found


def read_answer(call: Call, came: bytes, body: dict[str, Any]) -> None:
    """Fill a call with what was answered to a request."""
    uses: dict[int, list[str]] = {}
    for piece in _pieces(came):
        _count(call, piece)
        for choice in piece.get("choices") or ():
            part = choice.get("delta") or choice.get("message") or {}
            call.text += part.get("content") or choice.get("text") or ""
            for number, use in enumerate(part.get("tool_calls") or ()):
                known = uses.setdefault(use.get("index", number), ["", ""])
                function = use.get("function") or {}
                known[0] += function.get("name") or ""
                known[1] += function.get("arguments") or ""
    call.uses = [(name, arguments) for name, arguments in uses.values()]
    call.malformed = malformed(call, body.get("tools") or [])
    call.prompt = newest(body)


def _count(call: Call, piece: dict[str, Any]) -> None:
    """Take the counts of tokens: llama.cpp reports them with `timings`, all others with `usage`."""
    if usage := piece.get("usage"):
        call.read, call.written = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
        call.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    elif timings := piece.get("timings"):
        call.cached = timings.get("cache_n", 0)
        call.read = timings.get("prompt_n", 0) + call.cached
        call.written = timings.get("predicted_n", 0)


def newest(body: dict[str, Any]) -> str:
    """Return the newest message of a request, by which a harness may have rejected the last answer."""
    content = (body.get("messages") or [{}])[-1].get("content") or ""
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content)
    return str(content)[:2000]


def malformed(call: Call, tools: list[dict[str, Any]]) -> int:
    """Count the calls that nobody can run; see `Call`."""
    offered = {tool["function"]["name"]: tool["function"] for tool in tools if "function" in tool}
    bad = sum(not _runs(name, arguments, offered) for name, arguments in call.uses)
    if not call.uses:
        names = "|".join(map(re.escape, offered))
        printed = rf'"(name|tool|function)"\s*:\s*"({names})"|<(function|tool)[=_]({names}|call)'
        any_name = r'"name"\s*:\s*"[^"\n]*"\s*,\s*"(arguments|parameters)"\s*:'
        bad += bool(offered and re.search(f"{printed}|{any_name}", call.text))
    return bad


def _runs(name: str, arguments: str, offered: dict[str, dict[str, Any]]) -> bool:
    if name not in offered:
        return False
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        return False
    required = (offered[name].get("parameters") or {}).get("required") or ()
    return isinstance(given, dict) and all(key in given for key in required)
