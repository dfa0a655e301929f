"""A run without a terminal: as text (failures at once, the summary at the end), or as JSON lines."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from ...gateway.client import SessionClient
from ...gateway.events.contract import ChangedEvent, Event
from ...gateway.host.host import Host
from ..json_lines import Lines, talking_json
from ..streams import CHUNK, Printer, split_lines
from ..talk import start_notices, talking
from .watch import RunWatch, event_line, summary


def run_plain(host: Host, open_it: Callable[[], SessionClient]) -> int:
    """Run to the end; print failures to standard error and the summary to standard output."""
    err, out = Printer(sys.stderr), Printer(sys.stdout)
    watch = RunWatch()
    watch.on_stop = lambda: err.write("Stopping; Ctrl-C again ends it at once.\n")
    began = time.monotonic()

    def report(event: Event) -> None:
        if line := event_line(event):
            err.write(f"{line}\n")

    with talking(host, open_it, (watch.hear, report), (out, err)) as conversation:
        watch.conversation = conversation
        for notice in start_notices(host):
            err.write(f"{notice}\n")
        with watch.stopping_on_interrupt():
            watch.wait(conversation)
        if watch.ended is not None:
            seconds = time.monotonic() - began
            for line in summary(watch.ended, conversation.changes(), seconds):
                out.write(f"{line}\n")
        conversation.leave()
    return watch.exit_code


def run_json(host: Host, open_it: Callable[[], SessionClient]) -> int:
    """Run to the end; events out, messages and answers in, one JSON object a line each.

    The run continues after the end of standard input.
    """
    watch = RunWatch()
    with talking_json(host, open_it, watch.hear, takes_words=True) as (conversation, lines):
        watch.conversation = conversation
        threading.Thread(target=_take, args=(lines,), name="lines", daemon=True).start()
        with watch.stopping_on_interrupt():
            watch.wait(conversation, lines.deny_late)
        publisher = conversation.publisher
        files = conversation.changes()
        publisher.publish(ChangedEvent(type="changed", **publisher.stamp(), files=files))
        conversation.leave()
    return watch.exit_code


def _take(lines: Lines) -> None:
    """Pass standard input on; at its end, deny the open questions.

    The descriptor is read directly: a waiting thread would hold the lock of Python's buffer until exit.
    """
    if sys.stdin is not None:  # pyright: ignore[reportUnnecessaryComparison]
        for line in split_lines(iter(partial(os.read, sys.stdin.fileno(), CHUNK), b"")):
            if line.strip():
                lines.take(line)
    lines.deny_the_rest()
