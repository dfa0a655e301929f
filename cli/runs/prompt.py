"""A run in a terminal: finished steps above, running ones below, and an input line.

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

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import StdoutProxy

from ...gateway.conversation import Conversation
from ...gateway.events.contract import QuestionEvent
from ...gateway.interface import ChatHost, RunSession
from ...gateway.wording.terminal import audited
from ..printer import forget
from ..question import answered, asked
from ..screen.layout import VisibleEscapes
from ..signals import PromptExit, leave_through
from ..wrapping import wrapped
from .options import RunOptions
from .screen import RunScreen
from .summary import summary
from .watch import RunWatch


def ask_text(question: QuestionEvent) -> str:
    """Return the text of a question: of a workflow's step, or about an agent's call."""
    if question["kind"] != "ask":
        return asked(question)
    lines = [f"{question['step']} asks: {question['arguments']['text']}"]
    default = question["default"]
    for number, option in enumerate(question["options"], 1):
        lines.append(f"  {number}. {option}{' (default)' if option == default else ''}")
    if default is not None and default not in question["options"]:
        lines.append(f"  (default: {default})")
    return "\n".join(lines) + "\n"


def answer_question(conversation: RunSession, question: QuestionEvent, text: str) -> bool:
    """Answer a question with a text; False if the text is a message."""
    if question["kind"] != "ask":
        return answered(conversation, question, text)
    return conversation.answer(question["id"], text.strip())


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


def run_at_prompt(host: ChatHost, open_it: Callable[[], RunSession], options: RunOptions) -> int:
    """Run to the end, or until the person stops it, or leaves one that goes on elsewhere."""
    began = time.monotonic()
    watch = RunWatch()
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    screen = RunScreen(_write, can_utf8=utf8)
    host.event_bus.subscribe(watch.hear)
    host.event_bus.subscribe(screen.hear)
    watch.on_stop = lambda: _write("Stopping; Ctrl-C again ends it at once.\n")
    proxy: Any = LinesAbove()
    with proxy, redirect_stdout(proxy), redirect_stderr(proxy):
        conversation = open_it()
        watch.conversation = conversation
        for notice in (*host.config.notices, *host.notices):
            _write(f"{notice}\n")
        keys = RunKeys(watch, conversation)
        session: PromptSession[str] = PromptSession(
            message=lambda: _message(screen),
            key_bindings=keys.bindings,
            bottom_toolbar=lambda: audited(screen.status()),
            input_processors=[VisibleEscapes()],
            refresh_interval=0.2,
            erase_when_done=True,
        )
        session.app.ttimeoutlen = 0.05
        session.app.timeoutlen = 0.1
        host.event_bus.subscribe(lambda event: session.app.invalidate())
        prompt_exit = PromptExit(session.app, lambda: session.app.exit(exception=EOFError()))
        with leave_through(prompt_exit.leave):
            threading.Thread(target=_await, args=(watch, prompt_exit), daemon=True).start()
            code = _read(session, watch, conversation, screen, prompt_exit)
        if code is None:
            watch.wait(conversation)
        else:
            conversation.leave("signal")
            if not isinstance(conversation, Conversation):
                run = conversation.session
                _write(
                    f"Run {run} goes on in `steersman serve`; `steersman attach {run}` follows it.\n"
                )
            return code
        seconds = time.monotonic() - began
        for line in summary(watch.ended, conversation.changes(), seconds) if watch.ended else ():
            _write(f"{line}\n")
        conversation.leave()
    return watch.exit_code


class RunKeys:
    """The control keys: Esc and Ctrl-C stop the run, a second Ctrl-C ends the program."""

    def __init__(self, watch: RunWatch, conversation: RunSession) -> None:
        self._watch = watch
        self._conversation = conversation
        self._is_stopping = False
        self.bindings = KeyBindings()
        self.bindings.add("c-c")(self._control_c)
        self.bindings.add("<sigint>")(self._control_c)  # Ctrl-C while a line is printed above
        self.bindings.add("c-d")(self._control_c)
        self.bindings.add("escape", eager=False)(self._escape)
        self.bindings.add("escape", "enter")(self._steer)
        self.bindings.add("tab")(self._queue)

    def _control_c(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset(append_to_history=True)
        elif self._is_stopping:
            forget(1, 2)
            os._exit(130)  # the commands' supervisors notice, and end them
        else:
            self._stop()

    def _escape(self, event: KeyPressEvent) -> None:
        self._stop()

    def _stop(self) -> None:
        self._is_stopping = True
        self._watch.stop()

    def _steer(self, event: KeyPressEvent) -> None:
        self._submit(event, "steer")

    def _queue(self, event: KeyPressEvent) -> None:
        self._submit(event, "queue")

    def _submit(self, event: KeyPressEvent, explicit: str) -> None:
        text = event.current_buffer.text
        if text.strip():
            event.current_buffer.reset(append_to_history=True)
            _write(f"> {text}\n")
            self._conversation.say(text, explicit)


def _await(watch: RunWatch, prompt_exit: PromptExit) -> None:
    """End the prompt when the run has ended."""
    conversation = watch.conversation
    assert conversation is not None
    try:
        watch.wait(conversation)
    finally:
        prompt_exit.shut()


def _read(
    session: PromptSession[str],
    watch: RunWatch,
    conversation: RunSession,
    screen: RunScreen,
    prompt_exit: PromptExit,
) -> int | None:
    """Send each line until the run is over (`None`), or until it is left (the exit code)."""
    while True:
        try:
            text = session.prompt(pre_run=prompt_exit.opened)
        except (EOFError, KeyboardInterrupt):
            signal_exit = prompt_exit.signal_exit
            return signal_exit.exit_code if signal_exit is not None else None
        if not text.strip():
            continue
        _write(f"> {text}\n")
        question = screen.questions.first
        if question is not None and answer_question(conversation, question, text):
            screen.questions.drop(question)
        elif (reply := conversation.say(text)) is not None and reply.leaves:
            if not isinstance(conversation, Conversation):
                return 0
            watch.stop()


def _message(screen: RunScreen) -> FormattedText:
    lead = screen.picture()
    lead = f"{lead}\n" if lead else ""
    if (question := screen.questions.first) is not None:
        lead += ask_text(question)
    return FormattedText([("", audited(lead)), ("bold", "> ")])


def _write(text: str) -> None:
    width = shutil.get_terminal_size().columns
    try:
        sys.stdout.write("\n".join(wrapped(audited(text).removesuffix("\n"), width)) + "\n")
        sys.stdout.flush()
    except OSError:  # the run goes on to its end without a reader
        forget(1, 2)
