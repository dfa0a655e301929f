"""Runs a protocol of lines on standard input and output, for `steersman acp` and `steersman mcp`.

Three threads: the main one reads lines, so that it receives signals; one runs the protocol; one writes.
Standard output belongs to the protocol: all other output goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TextIO, TypeAlias

from .signals import SignalExit, leave_on_signals
from .streams import Printer, typed_lines

Lines: TypeAlias = asyncio.Queue[str | None]
"""The lines that were read; none at the end of the input."""


def serve_lines(name: str, serve: Callable[[Lines, Printer], Coroutine[Any, Any, None]]) -> int:
    """Serve one client until its input ends, and return the exit code.

    `serve` gets the lines and what writes, on an asyncio loop in a thread of that name.
    """
    output = _own_output()
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

    try:
        with leave_on_signals():
            for line in typed_lines():
                feed(line)
        return 0
    except SignalExit as signal_exit:
        return signal_exit.exit_code
    finally:
        feed(None)
        thread.join()
        printer.close()
        with suppress(OSError):  # the client may be gone
            output.close()


def _own_output() -> TextIO:
    """Return standard output for the protocol alone; other output goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return open(own, "w", encoding="utf-8", errors="replace", closefd=True)
