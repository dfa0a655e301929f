"""Lines from standard input; a signal always ends the wait for one.

A signal that arrives between Python's last look and the blocking `read` would only be seen with the
next line. So the wait is a `poll` of two descriptors: the input, and a pipe that the interpreter
writes to when a signal comes (`signal.set_wakeup_fd`).
"""

import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator

from .signals import waiting

CHUNK = 1 << 16


def typed_lines() -> Iterator[str]:
    """Yield lines as they come, without their ends; bytes that are no UTF-8 are replaced.

    The first loses its byte order mark. Main thread only. A signal's own exception passes through.
    """
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        return
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
