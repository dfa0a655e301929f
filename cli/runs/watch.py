"""Follows a run by its events until it has ended, and stops it after a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ...gateway.events.contract import Event, RunEndedEvent
from ...gateway.interface import RunSession
from ..exit_codes import FAILED, OF_RUNS
from ..following import IdleWaiter
from ..signals import SignalExit, leave_through

LONG, SHORT = 5.0, 0.5
"""Seconds between two checks of a running run, whose record is large, and of one that has ended."""


class RunWatch:
    """Follows one run; `ended` is its last event, if it has ended. The first stop calls `on_stop`."""

    def __init__(self) -> None:
        self.idle_waiter = IdleWaiter()
        self.idle_waiter.pause = LONG
        self.ended: RunEndedEvent | None = None
        self.conversation: RunSession | None = None
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

    def wait(self, conversation: RunSession, between: Callable[[], None] = lambda: None) -> None:
        """Block until the run has ended, none of its work is left, and `ended` is known.

        `between` is called now and then meanwhile.
        """
        self.idle_waiter.wait(conversation, between)
        conversation.publish_all()

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
        """How the run ended: every step succeeded, one failed, or it was interrupted."""
        if self.idle_waiter.is_broken or self.ended is None:
            return FAILED
        return OF_RUNS[self.ended["status"]]
