"""`steersman serve`: one session over HTTP, for programs on this machine that hold the token.

`POST /messages` takes one line of `chat --json`, `GET /events` sends what it prints as
server-sent events, `GET /inspect` the session's state. Only loopback is served: nothing is encrypted.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from ..gateway.conversation import Conversation
from ..gateway.events.contract import Event
from ..gateway.interface import ChatHost, ChatSession
from ..machines.errors import UsageError
from .chat import chat
from .json_lines import Lines, preface
from .options import ChatOptions
from .output import show
from .signals import SignalExit

LOOPBACK = ("127.0.0.1", "localhost")
LARGEST = 1 << 20
"""Maximum size of a message in bytes."""
KEPT = 20_000
"""Number of events that are kept for later streams."""
CONNECTIONS = 64
"""Connections at a time."""
HEADER_SECONDS = 10.0
"""Seconds in which a client has to send its request with the token."""
BEAT = 15.0
"""Seconds after which an idle stream sends a sign of life."""


class EventLog:
    """The latest events, for streams that connect at any time; `hear` must not block.

    `run` names this life of the program: event ids begin with it, since numbers restart with it.
    """

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        self.lines: list[str] = []
        self.gone = 0
        self.change = threading.Condition()
        self.saying = threading.Lock()

    def hear(self, event: Event) -> None:
        """Keep an event; loop's thread."""
        with self.change:
            self.lines.append(json.dumps(event, ensure_ascii=False))
            if len(self.lines) > KEPT:
                self.gone += KEPT // 2
                del self.lines[: KEPT // 2]
            self.change.notify_all()

    def count_of(self, last: str) -> int:
        """Return how many events a client has that saw this id last; 0 if another run gave it."""
        run, _, count = last.partition("-")
        return int(count) if run == self.run and count.isdecimal() else 0

    def after(self, count: int) -> list[tuple[int, str]]:
        """Return the events after the first `count`, numbered; waits up to `BEAT` seconds for one."""
        with self.change:
            self.change.wait_for(lambda: self.gone + len(self.lines) > count, BEAT)
            first = max(count - self.gone, 0)
            return list(enumerate(self.lines[first:], self.gone + first + 1))


class Server(ThreadingHTTPServer):
    """A thread for each connection, of which there are at most about `CONNECTIONS`.

    One whose client has not shown the token is closed after `HEADER_SECONDS`, and the oldest of those
    at once when there are too many: so clients that say nothing keep no others out.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *rest: Any) -> None:
        self._mutex = threading.Lock()
        self._open: set[socket.socket] = set()
        self._strangers: dict[socket.socket, float] = {}
        """When each came, oldest first; seconds of the monotonic clock."""
        super().__init__(*rest)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, or close it if there are too many."""
        with self._mutex:
            is_full = len(self._open) >= CONNECTIONS
            if is_full and self._strangers:
                self._drop(next(iter(self._strangers)))
            elif is_full:
                self.shutdown_request(request)
                return
            self._open.add(request)
            self._strangers[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and forget it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._mutex:
                self._open.discard(request)
                self._strangers.pop(request, None)

    def let_in(self, request: socket.socket) -> None:
        """Let a connection stay as long as it likes: its client has shown the token."""
        with self._mutex:
            self._strangers.pop(request, None)

    def service_actions(self) -> None:
        """Close the connections whose request has not come in time; every half second."""
        with self._mutex:
            for request, came in list(self._strangers.items()):
                if time.monotonic() - came >= HEADER_SECONDS:
                    self._drop(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hung up; its thread ends."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def _drop(self, request: socket.socket) -> None:
        """Wake the thread that reads from a connection: it finds its end."""
        self._strangers.pop(request, None)
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class RequestHandler(BaseHTTPRequestHandler):
    """Answers one request; refuses it without the token, or from a page of another origin."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "steersman", ""
    timeout = 60.0

    def __init__(
        self,
        *rest: Any,
        token: str,
        log: EventLog,
        lines: Lines,
        inspect: Callable[[], dict[str, Any]],
        done: threading.Event,
    ) -> None:
        self._token, self._log, self._lines, self._done = token, log, lines, done
        self._inspect = inspect
        super().__init__(*rest)

    def do_GET(self) -> None:
        """Stream the events, or send the state."""
        if not self._is_authorized():
            return
        match self.path.partition("?")[0]:
            case "/events":
                self._stream()
            case "/inspect":
                self._answer(200, self._inspect())
            case _:
                self._answer(404, {"error": "there are /events, /inspect and /messages"})

    def do_POST(self) -> None:
        """Take one message, command or answer; its outcome is an event."""
        if not self._is_authorized():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/messages":
            self._answer(404, {"error": "messages are posted to /messages"})
        elif not length.isdecimal() or int(length) > LARGEST:
            self._answer(413, {"error": f"a message has a length, of at most {LARGEST} bytes"})
        else:
            said = self.rfile.read(int(length)).decode(errors="replace")
            with self._log.saying:
                leaves = self._lines.take(said)
            self._answer(202, {"ok": True})
            if leaves:
                self._done.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a path may be private."""

    def _is_authorized(self) -> bool:
        port = self.connection.getsockname()[1]
        hosts = [f"{name}:{port}" for name in LOOPBACK]
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in hosts:
            return self._refuse(403, "this is not the host that was asked for")
        if origin is not None and origin.removeprefix("http://") not in hosts:
            return self._refuse(403, "pages of elsewhere may not ask")
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return self._refuse(401, "send the header `Authorization: Bearer TOKEN`")
        cast("Server", self.server).let_in(self.connection)
        return True

    def _refuse(self, status: int, why: str) -> bool:
        self._answer(status, {"error": why})
        return False

    def _answer(self, status: int, data: Mapping[str, Any]) -> None:
        body = json.dumps(data, ensure_ascii=False, default=str).encode()
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        count = self._log.count_of(self.headers.get("Last-Event-ID", ""))
        try:
            while not self._done.is_set():
                fresh = self._log.after(count)
                for count, line in fresh:
                    self.wfile.write(f"id: {self._log.run}-{count}\ndata: {line}\n\n".encode())
                if not fresh:
                    self.wfile.write(b": alive\n\n")
        except OSError:  # the client went
            return


def serve(options: ChatOptions, environ: Mapping[str, str], host: str, port: int) -> int:
    """Serve one session until a signal, or until a client ends it. Raises `UsageError`."""
    if host not in LOOPBACK:
        raise UsageError(
            f"`--host {host}`: only this machine is served, since nothing is encrypted",
            "leave it out, and use a tunnel (`ssh -L`) from other machines",
        )
    return chat(options, environ, partial(_serve, port=port))


def _serve(
    host: ChatHost, open_it: Callable[[], ChatSession], options: ChatOptions, *, port: int
) -> int:
    """The interface of `serve`: open the session, answer requests, close the session."""
    log, done, token = EventLog(), threading.Event(), secrets.token_urlsafe(32)
    host.event_bus.subscribe(log.hear)
    conversation = open_it()
    assert isinstance(conversation, Conversation)  # only sessions of this process are served
    lines = Lines(conversation)
    host.event_bus.subscribe(lines.hear)
    preface(host, conversation)
    handler = partial(
        RequestHandler,
        token=token,
        log=log,
        lines=lines,
        inspect=conversation.inspect,
        done=done,
    )
    try:
        server = Server(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(f"port {port}: {error.strerror}", "choose another --port") from None
    show(f"session {conversation.session} at http://127.0.0.1:{server.server_address[1]}")
    show(f"token {token}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done.wait()
    except SignalExit as signal_exit:
        conversation.leave("signal")
        return signal_exit.exit_code
    finally:
        server.shutdown()
        server.server_close()
    conversation.leave()
    return 0
