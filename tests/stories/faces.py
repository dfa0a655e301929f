"""How a story talks to the program: the same sentences for a screen and for JSON lines.

`types` is what the person does, `shows` what they see. Texts that are shown are looked for on the
screen as they are written, each in a row below the one before. Beside them stands, by its kind and
some fields, the event that says the same to a program; without one, the texts themselves are in
results, notices or the model's words.
"""

import signal
from typing import Any, Protocol

from support.driver import Chat

from .terminal import Terminal

__all__ = ["Face", "Job", "Lines", "LinesJob", "Screen", "ScreenJob"]

KEYS = {"auto": "\r", "queue": "\t", "steer": "\x1b\r"}


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


class Lines:
    """`chat --json`."""

    def __init__(self, chat: Chat) -> None:
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

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.chat.kill()

    def leaves(self) -> int:
        """End the input."""
        return self.chat.close()


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
