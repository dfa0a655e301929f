"""Follows a run by its events until it has ended, and stops it after a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ...gateway.conversation import Conversation
from ...gateway.events.contract import Event, RunEndedEvent
from ...machines.errors import SteersmanError
from ..following import IdleWaiter
from ..signals import SignalExit, leave_through

LONG, SHORT = 5.0, 0.5
"""Seconds between two checks of a running run, whose record is large, and of one that has ended."""
_CODES = {"succeeded": 0, "failed": 1, "interrupted": 130}


class RunWatch:
    """Follows one run; `ended` is its last event, if it has ended. The first stop calls `on_stop`."""

    def __init__(self) -> None:
        self.idle_waiter = IdleWaiter()
        self.idle_waiter.pause = LONG
        self.ended: RunEndedEvent | None = None
        self.conversation: Conversation | None = None
        self.on_stop: Callable[[], None] = lambda: None
        self._is_stopping = False

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        self.idle_waiter.hear(event)
        if event["type"] == "run_ended" and "parent" not in event:
            self.ended = event
            self.idle_waiter.pause = SHORT
        elif event["type"] == "run_started" and "parent" not in event:
            self.ended = None
            self.idle_waiter.pause = LONG

    def wait(self, conversation: Conversation) -> None:
        """Block until the run has ended and none of its work is left."""
        self.idle_waiter.wait(conversation)

    def stop(self) -> None:
        """Interrupt the run, as a first Ctrl-C does."""
        conversation = self.conversation
        if conversation is None:
            return
        conversation.begin_interrupt()
        if not self._is_stopping:
            self._is_stopping = True
            self.on_stop()

    @contextmanager
    def stopping_on_interrupt(self) -> Generator[None]:
        """Let a first Ctrl-C interrupt the run instead of leaving at once."""

        def way(signal_exit: SignalExit) -> bool:
            if signal_exit.exit_code != 128 + signal.SIGINT or self.conversation is None:
                return False
            self.stop()
            return True

        with leave_through(way):
            yield

    @property
    def exit_code(self) -> int:
        """0: every step succeeded; 1: a step failed; 130: interrupted."""
        if self.idle_waiter.is_broken or self.ended is None:
            return 1
        return _CODES[self.ended["status"]]


def changes_of(conversation: Conversation) -> list[str]:
    """Name the files that a run has changed in all its turns, except its own in `.steersman`."""
    try:
        made = conversation.record().turns_made
        found = conversation.changed_files(tuple(f"t{number}" for number in range(1, made + 1)))
    except (OSError, SteersmanError):
        return []  # the revert reports what cannot be read
    return [path for path in found if not _is_own(path, conversation.session)]


def _is_own(path: str, run: str) -> bool:
    """Whether a file is in a folder of `.steersman` that is named after the run."""
    home, _, rest = path.partition("/")
    return home == ".steersman" and run in rest.partition("/")[0]
