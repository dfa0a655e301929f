"""Signals: the first asks to leave in order, the second leaves at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Leaving", "leave_on_signals"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Leaving(BaseException):
    """A signal asks the main thread to leave; everything is saved on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def leave_on_signals() -> Generator[None]:
    """Raise `Leaving` in the main thread at the first signal; a second Ctrl-C ends the process.

    A closing terminal hangs up twice, and a service manager may repeat itself: only a person's
    second Ctrl-C means that it can't wait. Tools die with the process in any case: their
    supervisors see it go.
    """
    count = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            if number == signal.SIGINT:
                os._exit(128 + number)
            return
        raise Leaving(number)

    before = {
        number: signal.signal(number, on_signal)
        for number in SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN  # nohup
    }
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_IGN if count else former)
