"""Signals: the first closes the session in order, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..gateway.client import SessionClient
from ..gateway.interface import ChatSession
from ..gateway.wording.acknowledgement import discarding
from ..journal.revert_record import OVER
from ..journal.store import SessionRow
from ..machines.errors import StoreError, UnknownSession
from ..workflows.paths import Paths

if TYPE_CHECKING:
    from prompt_toolkit.application import Application


def farewell(conversation: ChatSession, paths: Paths, *, is_kept: bool = True) -> str:
    """Return the last line of a chat: what was saved, and how to continue.

    The session has been released. `is_kept` is false if nothing is on disk. Empty for a session
    elsewhere: what became of it depends on its program.
    """
    if not isinstance(conversation, SessionClient):
        return ""
    if not is_kept:
        return "Nothing is saved: auto_queue.persistence.enabled is false."
    try:
        row = conversation.store.row(conversation.session)
    except (StoreError, UnknownSession):  # a fault was reported when it happened
        return ""
    return saved_line(row, paths)


def _typed(paths: Paths, command: str) -> str:
    """Return a command that is about something of a home; empty if a shell would look in another one.

    Such a home is that of the tour, which is deleted, or one that a program was given by its caller.
    """
    return command if Paths.of(os.environ) == paths else ""


def saved_line(row: SessionRow, paths: Paths) -> str:
    """Return what of a session that no program has open is saved, and how to continue."""
    if row.state == "finalized":
        show = _typed(paths, f"steersman sessions show {row.session}")
        return f"Session {row.session} is finalized" + (f"; `{show}` prints it." if show else ".")
    how = "run" if row.workflow else "chat"
    resume = _typed(paths, f"steersman {how} --resume {row.session}")
    stopped = row.count_interrupted(is_owned=False)
    counts = ((stopped, "interrupted"), (row.waiting, "waiting"), (row.offered, "offered"))
    parts = [f"{count} {word}" for count, word in counts if count]
    all_but_last = f"{', '.join(parts[:-1])} and " if parts[1:] else ""
    left = f", with {all_but_last}{parts[-1]}" if parts else ""
    if row.run in OVER:
        show = _typed(paths, f"steersman sessions show {row.session}")
        rest = f"{discarding(row.session, row.run)}." if row.waiting else ""
        return " ".join(filter(None, (f"Saved{left}.", show and f"`{show}` prints it.", rest)))
    return f"Saved{left}." + (f" Continue with: {resume}" if resume else "")


TWICE = 0.05
"""Seconds within which a second signal is a repetition: some senders signal a process and its group."""
GRACE = 0.5
"""Seconds after which a signal is raised wherever the main thread is: it may wait for another program."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_lost_output = 0
"""The exit code once the output cannot be written any more."""


def leave_without_output(exit_code: int) -> None:
    """Ask the program to leave, with this exit code, as a signal does; any thread."""
    global _lost_output
    _lost_output = exit_code
    is_deaf = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # under nohup
    os.kill(os.getpid(), signal.SIGTERM if is_deaf else signal.SIGHUP)


_ways: list[Callable[[SignalExit], bool]] = []


class SignalExit(SystemExit):
    """Raised in the main thread by a signal; everything is saved on the way out.

    It is a `SystemExit` because the prompt runs an asyncio loop, which passes only that and
    `KeyboardInterrupt` on: any other exception that a signal raises in a callback is logged and lost.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.exit_code = _lost_output or 128 + number
        super().__init__(self.exit_code)


class _Thrown:
    """What signals raise in the main thread: where it waits, since elsewhere it may hold a lock.

    An exception between the taking of a lock and the block that gives it back leaves the lock taken, and
    closing in order needs it.
    """

    def __init__(self) -> None:
        self.is_waiting = False
        self._kept: BaseException | None = None
        self._is_due = False

    def handler(
        self, decide: Callable[[int], BaseException | None]
    ) -> Callable[[int, FrameType | None], None]:
        """Return a signal's handler: what `decide` returns is raised in time."""

        def on_signal(number: int, frame: FrameType | None) -> None:
            if self._is_due:
                self._is_due = False
                self.raise_kept()
            elif (exception := decide(number)) is not None:
                self._kept = exception
                if self.is_waiting:
                    self.raise_kept()
                timer = threading.Timer(GRACE, self._insist, (exception, number))
                timer.daemon = True
                timer.start()

        return on_signal

    def raise_kept(self) -> None:
        """Raise what a signal left, if it left anything."""
        if (kept := self.take()) is not None:
            raise kept

    def take(self) -> BaseException | None:
        """Return what a signal left, for the caller to act on."""
        kept, self._kept = self._kept, None
        return kept

    def _insist(self, exception: BaseException, number: int) -> None:
        if self._kept is exception:
            self._is_due = True
            os.kill(os.getpid(), number)


_thrown = _Thrown()
throwing = _thrown.handler
"""Returns a handler for `signal.signal`: what a function makes of a signal's number is raised where the
main thread waits, or after `GRACE`."""


@contextmanager
def waiting() -> Generator[None]:
    """Let signals be raised in this block, in which the main thread waits and holds no lock."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _thrown.is_waiting = True
    try:
        _thrown.raise_kept()
        yield
    finally:
        _thrown.is_waiting = False


@contextmanager
def leave_on_signals() -> Generator[None]:
    """Raise `SignalExit` in the main thread, where it waits, at the first signal.

    A closing terminal hangs up twice, and a service manager may repeat itself: only a person's
    second Ctrl-C ends the process at once. Tools die with it in any case: their supervisors
    notice its end.
    """
    count, began = 0, 0.0

    def decide(number: int) -> SignalExit | None:
        nonlocal count, began
        count, now = count + 1, time.monotonic()
        if count > 1 and now - began < TWICE:
            return None
        began = now
        if count > 1:
            if number == signal.SIGINT:
                os._exit(128 + number)
            return None
        signal_exit = SignalExit(number)
        return None if _ways and _ways[-1](signal_exit) else signal_exit

    def on_lost(lost: sys.UnraisableHookArgs) -> None:
        """Send the signal again: an exception raised in a finalizer does not propagate."""
        nonlocal count
        if not isinstance(lost.exc_value, SignalExit):
            unraisable(lost)
            return
        count = 0
        threading.Timer(TWICE, os.kill, (os.getpid(), lost.exc_value.number)).start()

    unraisable, sys.unraisablehook = sys.unraisablehook, on_lost
    before = {
        number: signal.signal(number, throwing(decide))
        for number in SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN  # nohup
    }
    try:
        yield
        _thrown.raise_kept()
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_IGN if count else former)
        sys.unraisablehook = unraisable
        _thrown.take()


def until_signal(work: Callable[[], int]) -> int:
    """Return the exit code of `work`, or of the signal that ended it."""
    try:
        with leave_on_signals():
            return work()
    except SignalExit as signal_exit:
        return signal_exit.exit_code


@contextmanager
def leave_through(way: Callable[[SignalExit], bool]) -> Generator[None]:
    """Hand a signal to `way` instead of raising it in the main thread.

    `way` runs in the signal's handler, and at once for a signal that came before; if it returns False,
    the exception is raised.
    """
    _ways.append(way)
    try:
        kept = _thrown.take()
        if kept is not None and not (isinstance(kept, SignalExit) and way(kept)):
            raise kept
        yield
    finally:
        _ways.remove(way)


class PromptExit:
    """Ends a prompt from outside: after a signal, or when there is nothing more to ask.

    `end` ends it, in its loop; `opened` belongs into its `pre_run`. An exception through that loop would
    cancel its tasks in the middle of a drawing; one before it would leave a loop half made. So what comes
    before the prompt is open ends it as soon as it is.
    """

    def __init__(self, prompt: Application[Any], end: Callable[[], None]) -> None:
        self.signal_exit: SignalExit | None = None
        self._prompt = prompt
        self._end = end
        self._is_shut = False

    @property
    def exit_code(self) -> int:
        """The signal's, but 0 after one as Ctrl-C sends it: that asks to leave, as Ctrl-D does."""
        code = self.signal_exit.exit_code if self.signal_exit is not None else 0
        return 0 if code == 128 + signal.SIGINT else code

    def leave(self, signal_exit: SignalExit) -> bool:
        """Take a signal; in its handler, for `leave_through`."""
        self.signal_exit = signal_exit
        self.shut()
        return True

    def shut(self) -> None:
        """End the prompt, now or when it opens; from any thread."""
        self._is_shut = True
        loop = self._prompt.loop
        if loop is not None and self._prompt.is_running:
            loop.call_soon_threadsafe(self.opened)

    def opened(self) -> None:
        """End the prompt if that was asked for; in its loop."""
        future = self._prompt.future
        if self._is_shut and future is not None and not future.done():
            self._end()
