"""The prompt: type while the agent works.

Whole lines go through `StdoutProxy`, above the prompt; the line that is still streaming belongs to
the prompt's own message, or its redraw would wipe it out.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import StdoutProxy

from ..gateway.child_events import is_aside
from ..gateway.conversation import Conversation
from ..gateway.events import Event
from ..gateway.host import Host
from ..gateway.progress import progress_text
from ..gateway.terminal import clean
from .leaving import Leaving, leave_through
from .options import ChatOptions
from .plain import PlainFace
from .printer import forget
from .question import Questions, answered, asked
from .wrapping import wrapped

__all__ = ["Door", "Keys", "Screen", "talk_at_prompt"]

ENDS_A_LINE = ("turn_ended", "tool_started", "tool_ended", "question", "interrupted")
BETWEEN_WRITES = 0.03
"""Seconds for which lines are collected, so that a burst is one redraw; as text is coalesced."""

AGAIN = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class Screen:
    """What the terminal shows besides the input line: finished lines, the unfinished one, the bar."""

    def __init__(self, *, shows_queued: bool = True) -> None:
        self.model = ""
        self.partial = ""
        self.questions = Questions()
        self.is_busy = False
        self.invalidate: Callable[[], None] = lambda: None
        self._started = 0.0
        self._progress: dict[str, Any] | None = None
        self._waiting = self._interrupted = 0
        self._children = set[str]()
        self._state = "open"
        self._lock = threading.Lock()
        utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        self._asides = PlainFace(self, self, can_utf8=utf8, has_bar=True, shows_queued=shows_queued)

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        self.questions.hear(event)
        if is_aside(event):
            return
        with self._lock:
            self._note(event)
            if event["type"] == "text":
                self._stream(clean(event["delta"]))
            else:
                if event["type"] in ENDS_A_LINE:
                    self._finish_line()
                self._asides.hear(event)
        self.invalidate()

    def write(self, text: str) -> None:
        """Print whole lines above the prompt, broken between words."""
        width = shutil.get_terminal_size().columns
        try:
            sys.stdout.write("\n".join(wrapped(text.removesuffix("\n"), width)) + "\n")
            sys.stdout.flush()
        except OSError:  # the session goes on to its end, whoever listens
            forget(1, 2)

    def message(self) -> FormattedText:
        """Return the prompt: the unfinished line, an open question, the sign."""
        lead = f"{self.partial}\n" if self.partial else ""
        if (question := self.questions.first) is not None:
            lead += asked(question)
        return FormattedText([("", lead), ("bold", "> ")])

    def bar(self) -> str:
        """Return the line at the bottom."""
        parts = [self.model]
        if self.is_busy:
            elapsed = int(time.monotonic() - self._started)
            parts.append(f"working {elapsed} s{progress_text(self._progress)}")
        else:
            parts.append("idle")
        if self._children:
            parts.append(f"{', '.join(sorted(self._children))} at work")
        if self._waiting:
            parts.append(f"{self._waiting} {'held' if self._state == 'held' else 'waiting'}")
        if self._interrupted:
            parts.append(f"{self._interrupted} interrupted")
        return " · ".join(parts)

    def _note(self, event: Event) -> None:
        match event["type"]:
            case "session_started":
                self.is_busy = False
                self._waiting = self._interrupted = 0
                self._children.clear()
            case "child_started":
                self._children.add(event["name"])
            case "child_ended" | "side_talk_ended":
                self._children.discard(event["name"])
            case "turn_started":
                self.is_busy, self._started, self._progress = True, time.monotonic(), None
            case "turn_ended":
                self.is_busy = False
            case "progress":
                self._progress = event
            case "queue":
                self._state = event["state"]
                states = [one["state"] for one in event["items"]]
                self._waiting = states.count("pending")
                self._interrupted = states.count("interrupted")
            case _:
                pass

    def _stream(self, delta: str) -> None:
        *whole, self.partial = (self.partial + delta).split("\n")
        width = max(10, shutil.get_terminal_size().columns - 1)
        *rows, last = wrapped(self.partial, width)
        if rows:  # the prompt shows one row only: what fills one is printed above it
            whole += rows
            self.partial = last
        if whole:
            self.write("\n".join(whole) + "\n")

    def _finish_line(self) -> None:
        if self.partial:
            self.write(self.partial + "\n")
            self.partial = ""


class Keys:
    """What the control keys do; `leave` becomes true when the person wants to go."""

    def __init__(self, conversation: Conversation, screen: Screen) -> None:
        self._conversation = conversation
        self._screen = screen
        self._last = 0.0
        self.bindings = KeyBindings()
        self.bindings.add("c-c")(self._control_c)
        self.bindings.add("escape", eager=False)(self._escape)
        self.bindings.add("escape", "enter")(self._steer)
        self.bindings.add("tab")(self._queue)

    def _control_c(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset(append_to_history=True)
            return
        now = time.monotonic()
        is_again = now - self._last < AGAIN
        self._last = now
        if not self._screen.is_busy or is_again:
            event.app.exit(exception=EOFError())
            return
        self._screen.write("Ctrl-C again leaves.\n")
        self._conversation.say("/stop")

    def _escape(self, event: KeyPressEvent) -> None:
        if self._screen.is_busy:
            self._conversation.say("/stop")

    def _steer(self, event: KeyPressEvent) -> None:
        self._submit(event, "steer")

    def _queue(self, event: KeyPressEvent) -> None:
        self._submit(event, "queue")

    def _submit(self, event: KeyPressEvent, explicit: str) -> None:
        text = event.current_buffer.text
        if text.strip():
            event.current_buffer.reset(append_to_history=True)
            self._screen.write(f"> {text}\n")
            is_command = text.lstrip().startswith("/") and self._conversation.would_stop(text)
            self._conversation.say(text, "auto" if is_command else explicit)


class Door:
    """How a signal leaves the prompt: the prompt ends itself, in its own loop.

    An exception through that loop would have its tasks cancelled, and the prompt then waits for ever
    for a line that was about to be printed, if the terminal has not yet said where its cursor is.
    """

    def __init__(self, prompt: Application[str]) -> None:
        self.leaving: Leaving | None = None
        self._prompt = prompt

    def leave(self, leaving: Leaving) -> bool:
        """Have the prompt end; False where none is open. In a signal's handler."""
        loop = self._prompt.loop
        if loop is None or not self._prompt.is_running:
            return False
        self.leaving = leaving
        loop.call_soon_threadsafe(self._end, leaving)
        return True

    def _end(self, leaving: Leaving) -> None:
        renderer, future = self._prompt.renderer, self._prompt.future
        while renderer.waiting_for_cpr:  # a terminal that is going away does not answer
            renderer.report_absolute_cursor_row(1)
        if future is not None and not future.done():
            self._prompt.exit(exception=leaving)


def talk_at_prompt(host: Host, open_it: Callable[[], Conversation], options: ChatOptions) -> int:
    """Talk until the person leaves."""
    screen = Screen(shows_queued=host.config.auto_queue.show_queue_on_input)
    host.hub.subscribe(screen.hear)
    proxy: Any = StdoutProxy(sleep_between_writes=BETWEEN_WRITES, raw=True)
    with proxy, redirect_stdout(proxy), redirect_stderr(proxy):
        conversation = open_it()
        _greet(host, screen)
        keys = Keys(conversation, screen)
        session: PromptSession[str] = PromptSession(
            message=screen.message,
            key_bindings=keys.bindings,
            bottom_toolbar=screen.bar,
            refresh_interval=0.5,
            erase_when_done=True,
        )
        session.app.ttimeoutlen = 0.05
        session.app.timeoutlen = 0.1
        screen.invalidate = session.app.invalidate
        door = Door(session.app)
        with leave_through(door.leave):
            code = _read(session, conversation, screen, door)
        conversation.leave("signal" if code else "exit")
        return code


def _greet(host: Host, screen: Screen) -> None:
    if host.choice is not None:
        screen.write(f"{host.choice.line}\n")
        screen.model = host.choice.name
    for notice in (*host.config.notices, *host.notices):
        screen.write(f"{notice}\n")
    screen.write("/help lists the commands. Ctrl-D leaves; everything is saved.\n")


def _read(
    session: PromptSession[str], conversation: Conversation, screen: Screen, door: Door
) -> int:
    while True:
        try:
            if door.leaving is not None:
                raise door.leaving
            text = session.prompt()
        except (EOFError, KeyboardInterrupt):
            return 0
        except OSError:
            forget(1, 2)
            return 128 + signal.SIGHUP
        except Leaving as leaving:
            return leaving.exit_code
        if not text.strip():
            continue
        screen.write(f"> {text}\n")
        question = screen.questions.first
        if question is not None and answered(conversation, question, text):
            screen.questions.drop(question)
            continue
        waits = question is not None and not conversation.would_stop(text)
        reply = conversation.say(text, "queue" if waits else "auto")
        if reply is not None and reply.leaves:
            return 0
