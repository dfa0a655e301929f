"""The dispatcher: one thread, the asyncio loop's, on which all actors take turns.

An actor with mail enters the ready queue once; each turn handles a batch, so a busy actor cannot
starve the others. When nothing is ready any more, or the budget of one pass is spent, the hooks run:
what a cascade of messages decided is then handed to the journal as one commit.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...machines.errors import SteersmanError

if TYPE_CHECKING:
    from .mailbox import Mailbox


T = TypeVar("T")

BATCH = 32
PASS = 64


class Dispatcher(Protocol):
    """Decides which actor runs next.

    `lock` guards every mailbox; it may be taken again by the thread that holds it, since a signal can
    come in between. `after_pass` hooks run when a pass is over.
    """

    after_pass: list[Callable[[], None]]
    lock: AbstractContextManager[Any]

    def schedule(self, mailbox: Mailbox) -> None:
        """Note that the mailbox has something; any thread."""
        ...


class LoopStopped(SteersmanError):
    """The loop was stopped by another thread: what was to run there does not, or not to its end."""


class LoopThread:
    """The asyncio loop and the thread that runs it: all actors and all ports live there."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._lock, self._is_over = threading.Lock(), False
        self._awaited = set[Future[Any]]()
        self._thread = threading.Thread(target=self._run, name="steersman-loop", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it was not stopped yet."""
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = 30.0) -> T:
        """Run a coroutine on the loop and wait for it; not for the loop's own thread.

        Raises `LoopStopped` if another thread stops the loop before that has ended.
        """
        with self._lock:
            if self._is_over:
                work.close()
                raise LoopStopped("the program is ending")
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
            self._awaited.add(future)
        try:
            return future.result(timeout)
        except CancelledError:
            if self._is_over:
                raise LoopStopped("the program is ending") from None
            raise
        finally:
            self._awaited.discard(future)

    def stop(self) -> None:
        """End the loop, wait a while for its thread, and give its descriptors back."""
        with self._lock:
            self._is_over = True
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5.0)
        for future in list(self._awaited):
            future.cancel()  # whoever waits for it would do so until the time is over
        if not self._thread.is_alive():
            self.loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


class LoopDispatcher:
    """Runs actors on one asyncio loop. `after_pass` hooks run after each pass, on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.after_pass: list[Callable[[], None]] = []
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self._loop = loop
        self._ready: deque[Mailbox] = deque()
        self._is_armed = False
        self._thread = 0  # of the loop, if it is not the one that handles signals

    def schedule(self, mailbox: Mailbox) -> None:
        """Put the mailbox into the ready queue once, and wake the loop."""
        with self.lock:
            if mailbox.is_scheduled:
                return
            mailbox.is_scheduled = True
            self._ready.append(mailbox)
            must_wake = not self._is_armed
            self._is_armed = True
        if must_wake:
            self._wake()

    def _wake(self) -> None:
        """Have a pass run; the loop itself needs no signal for that, which costs it a round."""
        if self._loop.is_closed():
            return
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._pass)
        else:
            self._loop.call_soon_threadsafe(self._pass)

    def _pass(self) -> None:
        if not self._thread and threading.current_thread() is not threading.main_thread():
            self._thread = threading.get_ident()
        try:
            self._run_ready()
            for hook in self.after_pass:
                hook()
        finally:  # whatever a hook raised is the loop's to report; the actors go on
            with self.lock:
                self._is_armed = bool(self._ready)
            if self._is_armed:
                self._wake()

    def _run_ready(self) -> None:
        for _ in range(PASS):
            with self.lock:
                if not self._ready:
                    return
                mailbox = self._ready.popleft()
                mailbox.is_scheduled = False
            if mailbox.owner is not None and not mailbox.is_suspended:
                mailbox.owner.run_batch(BATCH)
                if not mailbox.empty():
                    self.schedule(mailbox)
