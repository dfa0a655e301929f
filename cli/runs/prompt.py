"""A run in a terminal: a line above for each step that ended, running ones below, and an input line.

Messages go to the run's agents by the routing table; Esc and Ctrl-C stop the run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from typing import Any

from msgspec import Struct, field
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import StdoutProxy

from ...gateway.client import SessionClient
from ...gateway.events.contract import Event, StepEvent, is_aside
from ...gateway.interface import ChatHost, RunSession
from ...gateway.wording.acknowledgement import acknowledgement
from ...gateway.wording.terminal import audited, exposed
from ..question import Questions, answered, asked, waits_for
from ..screen.layout import VisibleEscapes
from ..signals import PromptExit, leave_through
from ..streams import forget
from ..talk import has_utf8, start_notices, talking
from ..wrapping import wrapped
from .watch import RunWatch, elapsed_text, event_line, reason_text

WIDTH = 24
"""Columns of a bar."""
MOST_NOW = 4
SIGNS = {"done": "✓", "failed": "✗", "skipped": "-", "blocked": "-", "interrupted": "!"}
PLAIN_SIGNS = {"done": "ok", "failed": "FAILED", "interrupted": "stopped"}


class _Shown(Struct, kw_only=True):
    """A running step, as it is drawn."""

    name: str
    began: float
    done: int = 0
    failed: int = 0
    total: int | None = None
    now: dict[str, None] = field(default_factory=dict[str, None])

    def take_item(self, event: StepEvent) -> None:
        """Take in the state of one of its items."""
        item, state = str(event.get("item")), event["state"]
        self.done, self.total = event.get("done", 0), event.get("total")
        self.failed += state == "failed"
        if state == "running":
            self.now[item] = None
        else:
            self.now.pop(item, None)


class RunScreen:
    """Turns events into lines above (`write`) and draws the running steps (`picture`); any thread."""

    def __init__(self, write: Callable[[str], None], *, can_utf8: bool) -> None:
        self.questions = Questions()
        self.is_over = False
        self._write = write
        self._can_utf8 = can_utf8
        self._steps: dict[str, _Shown] = {}
        self._children = set[str]()
        self._names: dict[str, str] = {}
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        self.questions.hear(event)
        if is_aside(event):
            return
        with self._lock:
            if line := self._line(event):
                self._write(f"{line}\n")

    def ask_text(self) -> str:
        """Return the text of the oldest open question, with who asks; empty if none is open."""
        question = self.questions.first
        if question is None:
            return ""
        who = self._names.get(question["session"], "")
        return (f"{exposed(who)} asks for\n" if who else "") + asked(question)

    def picture(self) -> str:
        """Draw the running steps."""
        with self._lock:
            return "\n".join(self._drawn(step) for step in self._steps.values())

    def status(self) -> str:
        """Return the bar: the time, the keys, the subagents at work."""
        with self._lock:
            parts = [
                f"running {elapsed_text(time.monotonic() - self._began)}",
                "Esc stops; your messages go to the agents",
            ]
            if self._children:
                parts.append(f"{', '.join(sorted(self._children))} at work")
            return " · ".join(parts)

    def _line(self, event: Event) -> str:
        match event["type"]:
            case "step":
                return self._step_line(event)
            case "child_started":
                self._children.add(event["name"])
                self._names[event.get("id", "")] = event["name"]
            case "child_ended":
                self._children.discard(event["name"])
            case "error" | "notice":
                return event_line(event)
            case "result":
                return event["text"]
            case "accepted" if event["number"] == 1 and event["as"] == "turn":
                return ""  # the run itself
            case "accepted" | "rejected" | "interrupting" | "requeued" | "steered":
                return acknowledgement(event, can_utf8=self._can_utf8)
            case _:
                pass
        return ""

    def _step_line(self, event: StepEvent) -> str:
        name, state, now = event["step"], event["state"], time.monotonic()
        shown = self._steps.get(name)
        if "item" in event:
            if shown is not None:
                shown.take_item(event)
            return event_line(event)
        if state in ("retrying", "unknown"):
            return event_line(event)
        shown = shown or _Shown(name=name, began=now)
        if state == "running":
            self._steps[name] = shown
            shown.done, shown.total = event.get("done", 0), event.get("total")
            return ""
        self._steps.pop(name, None)
        sign = (SIGNS if self._can_utf8 else PLAIN_SIGNS).get(state, state)
        count = f" {event.get('done')} of {event['total']}" if "total" in event else ""
        time_taken = f" ({elapsed_text(now - shown.began)})" if state in ("done", "failed") else ""
        return f"{sign} {name}{count}{time_taken}{reason_text(event)}"

    def _drawn(self, step: _Shown) -> str:
        parts = [f"  {step.name}"]
        if step.total is not None:
            parts.append(bar(step.done, step.total, can_utf8=self._can_utf8))
            parts.append(f"{step.done}/{step.total}")
        if step.failed:
            parts.append(f"{step.failed} failed")
        parts.append(elapsed_text(time.monotonic() - step.began))
        now = list(step.now)[:MOST_NOW]
        return "  ".join([*parts, ", ".join(now)]).rstrip()


def bar(done: int, total: int, *, can_utf8: bool, width: int = WIDTH) -> str:
    """Draw a progress bar."""
    full = width * done // max(1, total)
    on, off = ("█", "░") if can_utf8 else ("#", ".")
    return on * full + off * (width - full)


BETWEEN_WRITES = 0.03
"""Seconds for which lines are collected, so that a burst causes one redraw."""


class LinesAbove(StdoutProxy):
    """Prints lines above the prompt, and loses none of them when the prompt ends.

    `StdoutProxy` hands lines to the event loop of the prompt, which may end before it prints them. Here
    they stay in a queue until they are printed, at the latest when this is closed.
    """

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._printing = threading.Lock()
        super().__init__(sleep_between_writes=BETWEEN_WRITES, raw=True)

    def _write_and_flush(self, loop: asyncio.AbstractEventLoop | None, text: str) -> None:
        self._waiting.append(text)
        if loop is None:
            self._print()
            return
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(partial(run_in_terminal, self._print))

    def _print(self) -> None:
        with self._printing:
            while self._waiting:
                self._output.enable_autowrap()
                self._output.write_raw(self._waiting.popleft())
            self._output.flush()

    def close(self) -> None:
        """Print what is left."""
        super().close()
        self._print()


def run_at_prompt(host: ChatHost, open_it: Callable[[], RunSession]) -> int:
    """Run to the end, or until the person stops it, or leaves one that goes on elsewhere."""
    began = time.monotonic()
    watch = RunWatch()
    screen = RunScreen(_write, can_utf8=has_utf8(sys.stdout))
    watch.on_stop = lambda: _write("Stopping; Ctrl-C again ends it at once.\n")
    proxy: Any = LinesAbove()
    with (
        proxy,
        redirect_stdout(proxy),
        redirect_stderr(proxy),
        talking(host, open_it, (watch.hear, screen.hear)) as conversation,
    ):
        watch.conversation = conversation
        for notice in start_notices(host):
            _write(f"{notice}\n")
        code = _converse(host, watch, conversation, screen)
        if code is None:
            watch.wait(conversation)
            for line in watch.summary(conversation, time.monotonic() - began):
                _write(f"{line}\n")
            conversation.leave()
            return watch.exit_code
        conversation.leave("signal")
        if not isinstance(conversation, SessionClient):
            run = conversation.session
            _write(
                f"Run {run} goes on in `steersman serve`; `steersman attach {run}` follows it.\n"
            )
        return code


def _converse(
    host: ChatHost, watch: RunWatch, conversation: RunSession, screen: RunScreen
) -> int | None:
    """Send what is typed until the run is over (`None`), or until it is left (the exit code)."""

    def message() -> FormattedText:
        lead = f"{picture}\n" if (picture := screen.picture()) else ""
        lead += screen.ask_text()
        return FormattedText([("", audited(lead)), ("bold", "> ")])

    session: PromptSession[str] = PromptSession(
        message=message,
        key_bindings=run_keys(watch, conversation),
        bottom_toolbar=lambda: audited(screen.status()),
        input_processors=[VisibleEscapes()],
        refresh_interval=0.2,
        erase_when_done=True,
    )
    session.app.ttimeoutlen = 0.05
    session.app.timeoutlen = 0.1
    host.event_bus.subscribe(lambda event: session.app.invalidate())
    prompt_exit = PromptExit(session.app, lambda: session.app.exit(exception=EOFError()))

    def end_with_run() -> None:
        try:
            watch.wait(conversation)
        finally:
            prompt_exit.shut()

    with leave_through(prompt_exit.leave):
        threading.Thread(target=end_with_run, daemon=True).start()
        while True:
            try:
                text = session.prompt(pre_run=prompt_exit.opened)
            except (EOFError, KeyboardInterrupt):
                signal_exit = prompt_exit.signal_exit
                return signal_exit.exit_code if signal_exit is not None else None
            if text.strip() and _send(text, watch, conversation, screen):
                return 0


def _send(text: str, watch: RunWatch, conversation: RunSession, screen: RunScreen) -> bool:
    """Say a text, or answer the open question; True if it leaves a run that goes on elsewhere."""
    _write(f"> {text}\n")
    question = screen.questions.first
    if question is not None and answered(conversation, question, text):
        screen.questions.drop(question)
    elif waits_for(question) and not text.startswith("/"):
        _write("A call waits for an answer, so this was not sent: /steer TEXT sends a message.\n")
    elif (reply := conversation.say(text)) is not None and reply.leaves:
        if not isinstance(conversation, SessionClient):
            return True
        watch.stop()
    return False


def run_keys(watch: RunWatch, conversation: RunSession) -> KeyBindings:
    """Make the control keys: Esc and Ctrl-C stop the run, a second Ctrl-C ends the program."""
    keys = KeyBindings()
    is_stopping = False

    def stop(event: KeyPressEvent) -> None:
        nonlocal is_stopping
        is_stopping = True
        watch.stop()

    def control_c(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset(append_to_history=True)
        elif is_stopping:
            forget(1, 2)
            os._exit(130)  # the commands' supervisors notice, and end them
        else:
            stop(event)

    def submit(event: KeyPressEvent, explicit: str) -> None:
        text = event.current_buffer.text
        if text.strip():
            event.current_buffer.reset(append_to_history=True)
            _write(f"> {text}\n")
            conversation.say(text, explicit)

    for name in ("c-c", "c-d", "<sigint>"):  # the last: Ctrl-C while a line is printed above
        keys.add(name)(control_c)
    keys.add("escape", eager=False)(stop)
    keys.add("escape", "enter")(partial(submit, explicit="steer"))
    keys.add("tab")(partial(submit, explicit="queue"))
    return keys


def _write(text: str) -> None:
    width = shutil.get_terminal_size().columns
    try:
        sys.stdout.write("\n".join(wrapped(audited(text).removesuffix("\n"), width)) + "\n")
        sys.stdout.flush()
    except OSError:  # the run goes on to its end without a reader
        forget(1, 2)
