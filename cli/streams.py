"""The standard streams: lines that are typed or piped in, and texts that are printed in order.

A signal always ends the wait for a line. One that arrives between Python's last look and the blocking
`read` would only be seen with the next line. So the wait is a `poll` of two descriptors: the input, and a
pipe that the interpreter writes to when a signal comes (`signal.set_wakeup_fd`).
"""

import asyncio
import errno
import io
import os
import queue
import select
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TextIO, TypeAlias

from ..gateway.wording.terminal import audited
from .exit_codes import FAILED, HUNG_UP, UNREAD
from .signals import leave_without_output, until_signal, waiting

# Input --------------------------------------------------------------------------------------------


CHUNK = 1 << 16


def typed_lines() -> Iterator[str]:
    """Yield lines as they come, without their ends; bytes that are no UTF-8 are replaced.

    The first loses its byte order mark. Main thread only. A signal's own exception passes through.
    """
    source = sys.stdin.fileno()
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        yield from split_lines(_chunks(source, wake))
    finally:
        signal.set_wakeup_fd(before)
        os.close(wake)
        os.close(waker)


def comes_soon(seconds: float) -> bool:
    """Whether standard input has data, or ends, within so many seconds."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN)
    with waiting():
        return bool(poll.poll(seconds * 1000))


def _chunks(source: int, wake: int) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        with waiting():
            ready = {descriptor for descriptor, _ in poll.poll()}
            if wake in ready:
                os.read(wake, CHUNK)  # the signal's handler runs now, before the next instruction
        if source not in ready:
            continue
        chunk = os.read(source, CHUNK)
        if not chunk:
            return
        yield chunk


def is_in_background() -> bool:
    """Whether a shell runs this program behind another: reading its terminal would stop it."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        return False  # it is no terminal of this session


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines in pieces of a stream, without their ends, as `typed_lines` does."""
    for number, line in enumerate(_split(chunks)):
        text = line.decode(errors="replace").removesuffix("\r")
        yield text if number else text.removeprefix("\ufeff")


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for line in whole:
            yield bytes(rest + line)
            rest.clear()
        rest += last
    if rest:
        yield bytes(rest)


# Output -------------------------------------------------------------------------------------------


def forget(*descriptors: int) -> None:
    """Redirect descriptors to nowhere, so that later writes, also at exit, raise nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


_UNWRITTEN = {errno.EPIPE: UNREAD, errno.EIO: HUNG_UP}  # the latter: the terminal is gone


class Printer:
    """Prints texts in order, from a thread: a slow or blocked reader never holds up the loop.

    When the reader is gone, it asks the program to leave.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        if isinstance(stream, io.TextIOWrapper):  # half a surrogate must not stop the rest
            stream.reconfigure(errors="replace")
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_broken = False
        self._thread = threading.Thread(target=self._run, name="printer", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Print a text; what acts on a terminal is shown instead. Returns at once."""
        self._lines.put(audited(text))

    def close(self) -> None:
        """Print all that is pending; gives a blocked reader two seconds."""
        self._lines.put(None)
        self._thread.join(2.0)

    def _run(self) -> None:
        while (text := self._lines.get()) is not None:
            if self._is_broken:
                continue
            try:
                self._stream.write(text)
                if self._lines.empty():
                    self._stream.flush()
            except (OSError, ValueError) as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._is_broken = True
        if not isinstance(error, BrokenPipeError):
            with suppress(OSError):  # the same terminal, gone
                os.write(2, f"steersman: the output cannot be written: {error}\n".encode())
        with suppress(ValueError):  # closed, or no file at all
            forget(self._stream.fileno())
        leave_without_output(_UNWRITTEN.get(getattr(error, "errno", 0), FAILED))


def printers() -> tuple[Printer, Printer]:
    """Return what prints to standard output and error: one where both are the same, to keep the order."""
    out = Printer(sys.stdout)
    try:
        is_same = os.path.samestat(os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno()))
        is_same = is_same or (sys.stdout.isatty() and sys.stderr.isatty())
    except (OSError, ValueError):  # one is closed, or no file at all
        is_same = False
    return out, out if is_same else Printer(sys.stderr)


# A protocol of lines, for `steersman acp` and `steersman mcp` --------------------------------------
# Three threads: the main one reads lines, so that it receives signals; one runs the protocol; one writes.
# Standard output belongs to the protocol: all other output goes to standard error.


Lines: TypeAlias = asyncio.Queue[str | None]
"""The lines that were read; none at the end of the input."""


def serve_lines(name: str, serve: Callable[[Lines, Printer], Coroutine[Any, Any, None]]) -> int:
    """Serve one client until its input ends, and return the exit code.

    `serve` gets the lines and what writes, on an asyncio loop in a thread of that name.
    """
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    output = open(own, "w", encoding="utf-8", errors="replace", closefd=True)
    printer = Printer(output)
    ready: Future[tuple[asyncio.AbstractEventLoop, Lines]] = Future()

    async def run() -> None:
        lines = Lines()
        ready.set_result((asyncio.get_running_loop(), lines))
        await serve(lines, printer)

    thread = threading.Thread(target=lambda: asyncio.run(run()), name=name)
    thread.start()
    loop, lines = ready.result()

    def feed(line: str | None) -> None:
        with suppress(RuntimeError):  # the protocol has ended
            loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> int:
        for line in typed_lines():
            feed(line)
        return 0

    try:
        return until_signal(read)
    finally:
        feed(None)
        thread.join()
        printer.close()
        with suppress(OSError):  # the client may be gone
            output.close()
