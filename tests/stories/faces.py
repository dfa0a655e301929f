"""How a story talks to the program: the same sentences for a screen and for JSON lines.

`types` is what the person does, `shows` what they see. Texts that are shown are looked for on the
screen as they are written, each in a row below the one before. Beside them stands, by its kind and
some fields, the event that says the same to a program; without one, the texts themselves are in
results, notices or the model's words.
"""

import signal
import threading
from contextlib import suppress
from typing import Any, Protocol

from support.driver import Chat, Heard, Process
from support.patience import seconds
from support.served import Followed, Served

from .terminal import Terminal

__all__ = [
    "Attached",
    "Face",
    "Http",
    "Job",
    "Lines",
    "LinesJob",
    "Plain",
    "Screen",
    "ScreenJob",
    "ServedScreen",
]

KEYS = {"auto": "\r", "queue": "\t", "steer": "\x1b\r"}
COMMANDS = {"auto": "{}", "queue": "/queue add {}", "steer": "/steer {}"}


class Face(Protocol):
    """One open chat."""

    def types(self, text: str, by: str = "auto") -> None:
        """Say something: with Enter, or with the key for `queue` or `steer`."""
        ...

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Wait until this is shown, below what was waited for before."""
        ...

    def counts(self, done: int, total: int) -> None:
        """Wait until the progress that is shown is this."""
        ...

    def rests(self) -> None:
        """Wait until nothing runs."""
        ...

    def kill(self) -> None:
        """End it by SIGKILL."""
        ...

    def leaves(self) -> int:
        """Leave as a person does; return the exit code."""
        ...


class _Heard:
    """What all have in common that are told events."""

    def __init__(self, chat: Heard) -> None:
        self.chat = chat
        chat.wait("session_started")

    def types(self, text: str, by: str = "auto") -> None:
        """Send a line."""
        self.chat.send({"text": text, "as": by} if by != "auto" else text)

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Wait for the events, or for the text itself where none is named."""
        for kind, fields in events.items():
            self.chat.wait(kind, **fields)
        for text in () if events else texts:
            self.chat.wait_text(text)

    def counts(self, done: int, total: int) -> None:
        """Wait for the event."""
        self.chat.wait("progress", done=done, total=total, unit="file")

    def rests(self) -> None:
        """Wait for the end of each turn that has begun."""
        self.chat.wait_quiet()


class Lines(_Heard):
    """`chat --json`."""

    chat: Chat

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.chat.kill()

    def leaves(self) -> int:
        """End the input."""
        return self.chat.close()


class Attached(_Heard):
    """`attach --json`, beside the chat that has the session."""

    def __init__(self, owner: Chat, chat: Chat) -> None:
        super().__init__(chat)
        self._owner, self._own = owner, chat

    def kill(self) -> None:
        """End the chat that has the session by SIGKILL."""
        self._owner.kill()
        self._own.ended()

    def leaves(self) -> int:
        """End both inputs."""
        return self._own.close() or self._owner.close()


class Http(_Heard):
    """A device that is paired with `steersman serve`."""

    def __init__(self, web: Served, chat: Followed) -> None:
        super().__init__(chat)
        self._web = web

    def kill(self) -> None:
        """End the server by SIGKILL."""
        self._web.kill()

    def leaves(self) -> int:
        """End the server: nobody leaves a session that is asked over HTTP."""
        self._web.close()
        return 0


class Plain:
    """`chat --plain` with pipes: answers on one, everything else on the other."""

    def __init__(self, program: Process) -> None:
        self._program = program
        self._change = threading.Condition()
        self._unread = dict.fromkeys((program.stdout, program.stderr), b"")
        for stream in self._unread:
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: Any) -> None:
        with suppress(ValueError):  # it was closed
            while piece := stream.read1(1 << 16):
                with self._change:
                    self._unread[stream] += piece
                    self._change.notify_all()

    def types(self, text: str, by: str = "auto") -> None:
        """Write a line."""
        assert self._program.stdin is not None
        self._program.stdin.write((COMMANDS[by].format(text) + "\n").encode())
        self._program.stdin.flush()

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Wait for the texts, each on either pipe, below what was waited for there."""
        for text in texts:
            self._find(text)

    def _find(self, *texts: str) -> str:
        """Wait for one of the texts on either pipe; what is before it there is read."""

        def found() -> tuple[Any, str] | None:
            places = ((stream, text) for text in texts for stream in self._unread)
            return next(
                (place for place in places if place[1].encode() in self._unread[place[0]]), None
            )

        with self._change:
            self._change.wait_for(found, seconds(30))
            place = found()
            assert place, f"none of {texts} was said: {self._unread}"
            stream, text = place
            self._unread[stream] = self._unread[stream].partition(text.encode())[2]
            return text

    def counts(self, done: int, total: int) -> None:
        """Wait for the line."""
        self._find(f"file {done}/{total}")

    def rests(self) -> None:
        """Ask until nothing runs: a pipe is not told when a turn ends."""
        while True:
            self.types("/inspect")
            if self._find("actor session  busy", "actor session  idle").endswith("idle"):
                return

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._program.kill()
        self._program.wait()

    def leaves(self) -> int:
        """End the input."""
        assert self._program.stdin is not None
        self._program.stdin.close()
        return self._program.wait(seconds(30))


class Screen:
    """The chat in a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        terminal.has_bar("idle")

    def types(self, text: str, by: str = "auto") -> None:
        """Type it, and press the key."""
        self.terminal.types(text, KEYS[by])

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Look for the texts."""
        for text in texts:
            self.terminal.shows(text)

    def counts(self, done: int, total: int) -> None:
        """Look at the bar."""
        self.terminal.has_bar(f"(file {done}/{total})")

    def rests(self) -> None:
        """Wait for the bar to say so."""
        self.terminal.has_bar("idle")

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.terminal.kill()

    def leaves(self) -> int:
        """Press Ctrl-D."""
        self.terminal.presses("\x04")
        return self.terminal.ended()


class ServedScreen(Screen):
    """The chat in a terminal whose session is in `steersman serve`."""

    def __init__(self, web: Served, terminal: Terminal) -> None:
        super().__init__(terminal)
        self._web = web

    def kill(self) -> None:
        """End the server by SIGKILL."""
        self._web.kill()
        self.shows("has ended without closing it.")
        assert self.terminal.ended() == 1

    def leaves(self) -> int:
        """Press Ctrl-D, and end the server."""
        code = super().leaves()
        self._web.close()
        return code


class Job(Protocol):
    """One `steersman run`."""

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Wait until this is shown, below what was waited for before."""
        ...

    def counts(self, step: str, done: int, total: int) -> None:
        """Wait until so many items of a step are shown as done."""
        ...

    def presses_control_c(self) -> None:
        """Stop it."""
        ...

    def ended(self) -> int:
        """Wait for its end; return the exit code."""
        ...


class LinesJob:
    """`run --json`."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Wait for the events; a sentence without one is for people only."""
        for kind, fields in events.items():
            self.chat.wait(kind, **fields)

    def counts(self, step: str, done: int, total: int) -> None:
        """Wait for the event of an item."""
        self.chat.wait("step", step=step, done=done, total=total)

    def presses_control_c(self) -> None:
        """Send what a terminal would."""
        self.chat.process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Wait for it."""
        return self.chat.ended()


class ScreenJob:
    """A run in a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def shows(self, *texts: str, **events: dict[str, Any]) -> None:
        """Look for the texts."""
        for text in texts:
            self.terminal.shows(text)

    def counts(self, step: str, done: int, total: int) -> None:
        """Look at the bar."""
        self.terminal.has(f" {done}/{total}")

    def presses_control_c(self) -> None:
        """Press it."""
        self.terminal.presses("\x03")

    def ended(self) -> int:
        """Wait for it."""
        return self.terminal.ended()
