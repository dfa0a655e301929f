"""The scripted model: it sees to it that what a person asked for is done, and has faults of its own.

It knows nothing but the conversation that an agent sends. A message names its work as `TASK[m1:3]`:
three steps, each a call of the agent's shell tool that ends by printing `did[m1.2]`. The answer is the
first step of the first message that has no such result; if its call is there, but not its result, it is
careful, as a person would be: it looks whether the step was done before it does it. It says `finished`
when nothing is left. So a call that an agent forgets is made again, and a message that it forgets is
never done.
"""

import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from peer_server import Answer, Asked, PeerServer, messages_of, shell_call, text_of

__all__ = [
    "FINISHED",
    "MOST_REQUESTS",
    "Heard",
    "ScriptedServer",
    "heard_in",
    "next_step",
    "prompt",
]

FINISHED = "finished"
MOST_REQUESTS = 60
"""Answers with a call that the model gives in a case; a loop ends there."""
_TASK = re.compile(r"TASK\[(m\d+):(\d+)\]")
_DID = re.compile(r"did\[(m\d+\.\d+)\]")
_CALL = re.compile(r"step\.sh (m\d+\.\d+) ")
_HANG = 5.0  # seconds
_SLOW_STREAM = 1.5  # the same, of the answer that the fault is to hit


def prompt(mark: str, steps: int) -> str:
    """Write a message of a person."""
    return (
        f"Please do TASK[{mark}:{steps}], one step after another, as you are told, with your shell."
    )


@dataclass
class Heard:
    """What one request told the model: `time` in seconds since the epoch.

    `marks` are the messages of the person, as often as they are there; `did` the results, `called` the
    calls. `answer` is the step that it was answered with, `finished`, or nothing.
    """

    time: float
    marks: list[str] = field(default_factory=list[str])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    did: list[str] = field(default_factory=list[str])
    called: list[str] = field(default_factory=list[str])
    answer: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it for a JSON file."""
        return asdict(self)


def heard_in(asked: Asked) -> Heard:
    """Read a request."""
    heard = Heard(time.time())
    for item in messages_of(asked):
        if item.get("role") != "user":
            continue
        for mark, steps in _TASK.findall(text_of(item.get("content"))):
            heard.marks.append(mark)
            heard.sizes[mark] = int(steps)
    raw = asked.raw.decode(errors="replace")
    heard.did = sorted(set(_DID.findall(raw)))
    heard.called = sorted(set(_CALL.findall(raw)))
    return heard


def next_step(heard: Heard) -> str:
    """Return the step that is to be done next; `finished` if all are."""
    for mark, steps in heard.sizes.items():
        for number in range(1, steps + 1):
            if f"{mark}.{number}" not in heard.did:
                return f"{mark}.{number}"
    return FINISHED


class ScriptedServer(PeerServer):
    """The model of one case. `heard` are the requests that had the person's messages, oldest first.

    `target` is the step whose answer the fault is to meet, `tool` how that one runs; `words` how much of
    a stream comes before the fault. `fault` is what the server does (see `Kind.act`), once, or nothing.
    `met` is called, once, at the moment of the fault if that is a request or a stream.
    """

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.target = self.tool = self.fault = self.when = ""
        self.words = 0
        self.met: Callable[[], None] = lambda: None
        self._is_met = False
        self._hit: Asked | None = None
        super().__init__()

    def answer(self, asked: Asked) -> Answer:
        """Return the next step, or the end."""
        heard = heard_in(asked)
        if not asked.has_tools or not heard.marks:
            return Answer()
        step = heard.answer = next_step(heard)
        is_hit = step == self.target and not self._is_met
        self.heard.append(heard)
        if is_hit and self.when in ("request", "stream"):
            self._hit = asked
        seconds = _SLOW_STREAM if self._hit is asked and self.when == "stream" else 0.0
        if step == FINISHED or len(self.heard) > MOST_REQUESTS:
            return Answer(FINISHED, seconds)
        mode = self.tool if step == self.target else "plain"
        mode = "look" if step in heard.called else mode
        tool, arguments = shell_call(asked, f"sh step.sh {step} {mode}")
        return Answer("Next step.", seconds, tool, arguments) if tool else Answer("no shell")

    def before(self, asked: Asked, talk: BaseHTTPRequestHandler) -> bool:
        """Have the fault that waits for a request."""
        if self._hit is not asked or self.when != "request":
            return False
        self._meet()
        if self.fault == "hang":
            time.sleep(_HANG)
        if self.fault in ("hang", "reset"):
            linger = struct.pack("ii", 1, 0)
            talk.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            talk.close_connection = True
            talk.connection.close()
        elif self.fault:
            _refuse(talk, 200 if self.fault == "garbage" else int(self.fault))
        return bool(self.fault)

    def during(self, asked: Asked, number: int) -> None:
        """Have the fault that waits for words of a stream."""
        if self._hit is asked and self.when == "stream" and number == self.words + 1:
            self._meet()
            if self.fault:
                raise ConnectionAbortedError

    def _meet(self) -> None:
        if not self._is_met:
            self._is_met = True
            self.met()


def _refuse(talk: BaseHTTPRequestHandler, status: int) -> None:
    """Answer with an error, or with what is no answer."""
    text = b"<html>}{ no answer" if status == 200 else b'{"error": {"message": "planted"}}'
    talk.send_response(status)
    talk.send_header("Content-Type", "text/html" if status == 200 else "application/json")
    talk.send_header("Content-Length", str(len(text)))
    if status == 429:
        talk.send_header("Retry-After", "1")
    talk.end_headers()
    talk.wfile.write(text)
