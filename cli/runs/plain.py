"""A run without a terminal: as text (failures at once, the summary at the end), or as JSON lines."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from ...gateway.conversation import Conversation
from ...gateway.events.contract import ChangedEvent, Event
from ...gateway.host.host import Host
from ..json_lines import Lines, preface, speak_utf8
from ..output import document
from ..printer import Printer
from ..signals import SignalExit
from .options import RunOptions
from .summary import failure_line, summary
from .watch import RunWatch


def run_plain(host: Host, open_it: Callable[[], Conversation], options: RunOptions) -> int:
    """Run to the end; print failures to standard error and the summary to standard output."""
    err = Printer(sys.stderr)
    watch = RunWatch()
    host.event_bus.subscribe(watch.hear)
    host.event_bus.subscribe(lambda event: _report(event, err))
    watch.on_stop = lambda: err.write("Stopping; Ctrl-C again ends it at once.\n")
    began = time.monotonic()
    out = Printer(sys.stdout)
    try:
        conversation = open_it()
        watch.conversation = conversation
        for notice in (*host.config.notices, *host.notices):
            err.write(f"{notice}\n")
        try:
            with watch.stopping_on_interrupt():
                watch.wait(conversation)
        except SignalExit as signal_exit:
            conversation.leave("signal")
            return signal_exit.exit_code
        if watch.ended is not None:
            seconds = time.monotonic() - began
            for line in summary(watch.ended, conversation.changes(), seconds):
                out.write(f"{line}\n")
        conversation.leave()
        return watch.exit_code
    finally:
        host.close()
        out.close()
        err.close()


def _report(event: Event, err: Printer) -> None:
    if event["type"] == "step" and (line := failure_line(event)):
        err.write(f"{line}\n")
    elif event["type"] == "error":
        err.write(f"steersman: {event['text']}\n")
    elif event["type"] == "notice":
        err.write(f"{event['text']}\n")


CHUNK = 1 << 16


def run_json(host: Host, open_it: Callable[[], Conversation], options: RunOptions) -> int:
    """Run to the end; events out, messages and answers in, one JSON object a line each.

    The run continues after the end of standard input.
    """
    speak_utf8()
    printer = Printer(sys.stdout)
    watch = RunWatch()
    host.event_bus.subscribe(lambda event: printer.write(document(event, None) + "\n"))
    host.event_bus.subscribe(watch.hear)
    try:
        conversation = open_it()
        lines = Lines(conversation, takes_words=True)
        host.event_bus.subscribe(lines.hear)
        preface(host, conversation)
        watch.conversation = conversation
        threading.Thread(target=_take, args=(lines,), name="lines", daemon=True).start()
        try:
            with watch.stopping_on_interrupt():
                watch.wait(conversation, lines.deny_late)
        except SignalExit as signal_exit:
            conversation.leave("signal")
            return signal_exit.exit_code
        publisher = conversation.publisher
        files = conversation.changes()
        publisher.publish(ChangedEvent(type="changed", **publisher.stamp(), files=files))
        conversation.leave()
        return watch.exit_code
    finally:
        host.close()
        printer.close()


def _take(lines: Lines) -> None:
    """Pass standard input on; at its end, deny the open questions.

    The descriptor is read directly: a waiting thread would hold the lock of Python's buffer until exit.
    """
    if sys.stdin is not None:  # pyright: ignore[reportUnnecessaryComparison]
        rest = b""
        while chunk := os.read(sys.stdin.fileno(), CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            _send(lines, whole)
        _send(lines, [rest])
    lines.deny_the_rest()


def _send(lines: Lines, texts: list[bytes]) -> None:
    for line in texts:
        text = line.decode(errors="replace").rstrip("\r")
        if text.strip():
            lines.take(text)
