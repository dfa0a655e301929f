"""Writes lines from a thread of its own, so that a slow or blocked reader never holds up the loop."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import threading
from typing import TextIO

from ..gateway.wording.terminal import audited


def forget(*descriptors: int) -> None:
    """Redirect descriptors to nowhere, so that later writes, also at exit, raise nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


class Printer:
    """Prints texts in order. When the reader is gone, it asks the program to leave."""

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
            with contextlib.suppress(OSError):  # the same terminal, gone
                os.write(2, f"steersman: the output cannot be written: {error}\n".encode())
        with contextlib.suppress(ValueError):  # closed, or no file at all
            forget(self._stream.fileno())
        is_deaf = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # under nohup
        os.kill(os.getpid(), signal.SIGTERM if is_deaf else signal.SIGHUP)
