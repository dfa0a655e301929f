"""A run without a terminal: prints failures at once and the outcome at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from ...gateway.conversation import Conversation
from ...gateway.events.contract import Event
from ...gateway.host import Host
from ...gateway.terminal import clean
from ..leaving import Leaving
from ..printer import Printer
from .options import RunOptions
from .summary import failure_line, summary
from .watch import RunWatch, changes_of


def run_plain(host: Host, open_it: Callable[[], Conversation], options: RunOptions) -> int:
    """Run to the end."""
    err = Printer(sys.stderr)
    watch = RunWatch()
    host.hub.subscribe(watch.hear)
    host.hub.subscribe(lambda event: _tell(event, err))
    watch.on_stop = lambda: err.write("Stopping; Ctrl-C again ends it at once.\n")
    began = time.monotonic()
    out = Printer(sys.stdout)
    try:
        conversation = open_it()
        watch.conversation = conversation
        for notice in (*host.config.notices, *host.notices):
            err.write(f"{clean(notice)}\n")
        try:
            with watch.stopping_on_interrupt():
                watch.wait(conversation)
        except Leaving as leaving:
            conversation.leave("signal")
            return leaving.exit_code
        if watch.ended is not None:
            seconds = time.monotonic() - began
            for line in summary(watch.ended, changes_of(conversation), seconds):
                out.write(f"{clean(line)}\n")
        conversation.leave()
        return watch.exit_code
    finally:
        host.close()
        out.close()
        err.close()


def _tell(event: Event, err: Printer) -> None:
    if event["type"] == "step" and (line := failure_line(event)):
        err.write(f"{clean(line)}\n")
    elif event["type"] == "error":
        err.write(clean(f"error: {event['text']}\n"))
    elif event["type"] == "notice":
        err.write(clean(f"{event['text']}\n"))
