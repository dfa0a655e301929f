"""A conversation in a terminal that can only print: no cursor, no bar (`TERM=dumb`).

The terminal edits and echoes the line; the agent's answers are printed as they arrive.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from ..gateway.commands.own import kill
from ..gateway.commands.talk import stop
from ..gateway.events.contract import Event, is_aside
from ..gateway.interface import ChatHost, ChatSession
from ..gateway.wording.first_run import opening_notices, ways_on
from .chat_options import ChatOptions
from .plain import PlainInterface, terminal_columns
from .question import Questions, answered, asked, waits_for
from .signals import SignalExit, farewell, throwing
from .streams import Printer, comes_soon, typed_lines
from .talk import StartedTurns, has_utf8, talking

TOGETHER = 0.03
"""Seconds between two lines that no person types: they are pasted."""
AGAIN = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class _Stop(BaseException):
    """Ctrl-C during a turn: it stops the turn, and the chat continues."""


class _Watch:
    """Follows the open questions, and whether a turn runs; prints the questions."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self.questions = Questions()
        self.is_busy = False
        self.own_commands = set[str]()
        self._started_turns = StartedTurns()

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        self.questions.hear(event)
        if is_aside(event):
            return
        started = self._started_turns.hear(event)
        if event["type"] == "turn_started":
            self.is_busy = True
            if started:
                self._printer.write(f"> {started}\n")
        elif event["type"] in ("turn_ended", "session_started"):
            self.is_busy = False
        elif event["type"] == "own_command":
            is_running = event["state"] == "running"
            (self.own_commands.add if is_running else self.own_commands.discard)(event["id"])
        elif event["type"] == "question":
            self._printer.write(asked(event))


def talk_in_lines(host: ChatHost, open_it: Callable[[], ChatSession], options: ChatOptions) -> int:
    """Run a chat until the person leaves."""
    printer = Printer(sys.stdout)
    watch = _Watch(printer)
    interface = PlainInterface(
        printer.write, printer.write, can_utf8=has_utf8(sys.stdout), columns=terminal_columns
    )
    with talking(host, open_it, (interface.hear, watch.hear), (printer,)) as conversation:
        interface.own_key = conversation.own_key
        for notice in opening_notices(host):
            printer.write(f"{notice}\n")
        printer.write(f"{ways_on(host)}\n")
        code = 0
        try:
            _listen(host, conversation, watch, printer)
        except SignalExit as signal_exit:
            code = 0 if signal_exit.exit_code == 128 + signal.SIGINT else signal_exit.exit_code
        conversation.leave("signal" if code else "exit")
        printer.write(f"{farewell(conversation, host.paths, is_kept=host.is_kept)}\n")
    return code


def _listen(host: ChatHost, conversation: ChatSession, watch: _Watch, printer: Printer) -> None:
    with _control_c(host, watch):
        while True:
            try:
                for line in _messages(printer):
                    if line.strip() and _take(conversation, watch, line):
                        return
                return
            except _Stop:
                printer.write("\nCtrl-C again leaves.\n")
                conversation.run(kill() if watch.own_commands else stop())


def _messages(printer: Printer) -> Iterator[str]:
    """Yield what is typed: a line, or the lines of a paste together, once a line comes alone."""
    pasted: list[str] = []
    follows = False
    for line in typed_lines():
        is_pasted, follows = follows, comes_soon(TOGETHER)
        if is_pasted or follows:
            pasted.append(line)
            if not follows:
                printer.write(f"[{len(pasted)} lines pasted: Enter sends them as one message]\n")
            continue
        lines = [*pasted, line] if line.strip() else pasted
        pasted = []
        yield "\n".join(lines)


def _take(conversation: ChatSession, watch: _Watch, line: str) -> bool:
    """Carry out a line; True if it asked to leave."""
    question = watch.questions.first
    if question is not None and answered(conversation, question, line):
        watch.questions.drop(question)
        return False
    waits = waits_for(question) and not conversation.texts.would_stop(line)
    reply = conversation.say(line, "queue" if waits else "auto")
    return reply is not None and reply.leaves


@contextmanager
def _control_c(host: ChatHost, watch: _Watch) -> Generator[None]:
    """Make Ctrl-C stop a running turn; with no turn, or the second time, it leaves the chat.

    So does the signal by which a host says that the session's program has ended.
    """
    last = -AGAIN

    def decide(number: int) -> BaseException:
        nonlocal last
        now = time.monotonic()
        is_again, last = now - last < AGAIN, now
        is_working = (watch.is_busy or bool(watch.own_commands)) and not host.is_cut_off
        return _Stop() if is_working and not is_again else SignalExit(number)

    before = signal.signal(signal.SIGINT, throwing(decide))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
