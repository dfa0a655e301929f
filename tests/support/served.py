"""`steersman serve` as a program of its own, and a client of it that speaks plain HTTP."""

import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple

from support.driver import Event, Heard, Place
from support.event_kinds import check_events
from support.patience import seconds


class Answer(NamedTuple):
    """What came back: the status, the parsed body, the headers."""

    status: int
    data: Any
    headers: dict[str, str]


class Served:
    """A program that serves a place; `program` is its process, `address` its host and port.

    `trusted` is what a client of an encrypted one trusts.
    """

    def __init__(self, place: Place, *options: str, trusted: ssl.SSLContext | None = None) -> None:
        self.place = place
        self._trusted = trusted
        self.program: subprocess.Popen[str] = place.start("serve", "--foreground", *options)
        assert self.program.stdout is not None
        said = self.program.stdout.readline()
        scheme = "http" if trusted is None else "https"
        assert f"{scheme}://" in said, self.program.communicate(timeout=seconds(30))
        self.address = said.split("://")[1].strip()
        self.token = ""

    @classmethod
    def at(cls, place: Place, address: str) -> "Served":
        """SessionReach a program that serves in the background, as a paired device."""
        web = cls.__new__(cls)
        web.place, web._trusted, web.token = place, None, ""
        web.address = address.removeprefix("http://")
        web.pair()
        return web

    def pair(self, name: str = "test", scope: str = "approve") -> str:
        """Pair a program, and return its token; later requests bear it."""
        ran = self.place.run("devices", "pair", name, "--scope", scope, "--token")
        assert ran.returncode == 0, ran.stderr
        self.token = ran.stdout.strip()
        return self.token

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request; a path without a leading slash is one of the interface."""
        data = None if body is None else json.dumps(body)
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        place = path if path.startswith("/") else f"/api/v1/{path}"
        with closing(self._connection()) as connection:
            connection.request(method, place, data, bearer | (headers or {}))
            answer = connection.getresponse()
            said = answer.read()
        is_json = "json" in (answer.getheader("content-type") or "")
        found = json.loads(said) if is_json else said.decode()
        return Answer(answer.status, found, {k.lower(): v for k, v in answer.getheaders()})

    def _connection(self) -> http.client.HTTPConnection:
        if self._trusted is None:
            return http.client.HTTPConnection(self.address, timeout=seconds(30))
        return http.client.HTTPSConnection(self.address, timeout=seconds(30), context=self._trusted)

    def begin(self, **more: str) -> str:
        """Begin a session in the place's folder, and return its id."""
        answer = self.ask("POST", "sessions", {"folder": str(self.place.folder), **more})
        assert answer.status == 201, answer
        return str(answer.data["id"])

    def events(self, session: str, after: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the ids and the events of a session's stream; an id is empty where there is none."""
        headers = {"Authorization": f"Bearer {self.token}", "Last-Event-ID": str(after)}
        with closing(self._connection()) as connection:
            connection.request("GET", f"/api/v1/sessions/{session}/events", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield from _streamed(answer)

    def until(self, session: str, kind: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the events of a session after an entry, up to the next one of a kind."""
        check_events([kind])
        found: list[dict[str, Any]] = []
        for _, event in self.events(session, after):
            found.append(event)
            if event["type"] == kind:
                return found
        raise AssertionError(f"the stream ended before `{kind}`: {found}")

    def page(self, session: str) -> list[dict[str, Any]]:
        """Return all events of a session's journal."""
        found: list[dict[str, Any]] = []
        upto = self.ask("GET", f"sessions/{session}").data["seq"]
        for after in range(0, upto, 1000):
            path = f"sessions/{session}/events?after={after}&upto={min(upto, after + 1000)}"
            found += self.ask("GET", path).data["events"]
        return found

    def kill(self) -> None:
        """End it as a power cut would."""
        self.program.kill()
        self.program.communicate()

    def close(self) -> str:
        """End it in order; return what it said on standard error."""
        if self.program.poll() is None:
            self.program.send_signal(signal.SIGTERM)
        try:
            return self.program.communicate(timeout=seconds(60))[1]
        finally:
            self.program.kill()


def _streamed(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Event]]:
    """Yield the ids and the events of a stream; an id is empty where there is none."""
    number = ""
    event: Event | None = None
    while line := answer.readline():
        field, _, value = line.decode().rstrip("\r\n").partition(": ")
        if field == "id":
            number = value
        elif field == "data":
            event = json.loads(value)
        elif line in (b"\n", b"\r\n") and event is not None:
            yield number, event
            number, event = "", None


class Followed(Heard):
    """A session's stream as a client hears it; what it sends are requests, one for each line."""

    def __init__(self, web: Served, session: str) -> None:
        super().__init__()
        self._web, self._name = web, session
        self._follow()

    def _follow(self) -> None:
        threading.Thread(target=self._read, args=(self._name,), daemon=True).start()

    def _read(self, session: str) -> None:
        last = ""
        with suppress(OSError, http.client.HTTPException):
            for _, event in self._web.events(session):
                if event["type"] == "answer" and last != "text":  # it was not followed then
                    self.hear({**event, "type": "text", "delta": event["text"]})
                last = event["type"]
                self.hear(event)
        if session == self._name:
            self.hear(None)

    def send(self, *lines: str | bytes | Event) -> None:
        """Say something; a command that takes up another session leads to that."""
        for line in lines:
            said = line if isinstance(line, dict) else {"text": line}
            answer = self._web.ask("POST", f"sessions/{self._name}/messages", said)
            assert answer.status in (200, 202, 409), answer
            if (answer.data.get("data") or {}).get("left") == self._name:
                self._name = answer.data["session"]
                self.hear(answer.data)
                self._follow()


class Follower(threading.Thread):
    """A client that follows one session for as long as it is let, over ends of the server, too.

    `numbered` are the events of entries that were told whole, in order; `times` has when each message
    was seen as accepted, by its text, in seconds of the monotonic clock.
    """

    def __init__(self, address: str, token: str, session: str) -> None:
        super().__init__(name=f"follow-{session}", daemon=True)
        self.session = session
        self.numbered: list[dict[str, Any]] = []
        self.times: dict[str, float] = {}
        self.ended = 0
        self.pieces = 0
        self.change = threading.Condition()
        self._address = address
        self._token = token
        self._last = ""
        self._is_over = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self.start()

    def run(self) -> None:
        """Read, and come back whenever the stream ends."""
        while not self._is_over.wait(0.02):
            with suppress(OSError, http.client.HTTPException, AttributeError):
                self._read()

    def _read(self) -> None:
        self._connection = http.client.HTTPConnection(self._address, timeout=seconds(60))
        headers = {"Authorization": f"Bearer {self._token}"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        with closing(self._connection):
            path = f"/api/v1/sessions/{self.session}/events"
            self._connection.request("GET", path, headers=headers)
            answer = self._connection.getresponse()
            if answer.status != 200:
                return
            told = list[dict[str, Any]]()
            for number, event in _streamed(answer):
                self._take(number, event, told)

    def _take(self, number: str, event: dict[str, Any], told: list[dict[str, Any]]) -> None:
        if event["type"] == "accepted" and event.get("text"):
            self.times.setdefault(event["text"], time.monotonic())
        if event["seq"] is None:
            self.pieces += 1
            return
        told.append(event)
        if number:
            with self.change:
                self.numbered += told
                self.ended += sum(event["type"] == "turn_ended" for event in told)
                self._last = number
                self.change.notify_all()
            told.clear()

    def wait(self, is_so: Callable[[], bool], limit: float = 60) -> bool:
        """Wait until something is so, which is asked whenever events have come."""
        with self.change:
            return self.change.wait_for(is_so, seconds(limit))

    def stop(self) -> None:
        """End it."""
        self._is_over.set()
        if self._connection is not None and self._connection.sock is not None:
            with suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self.join(seconds(30))
