"""`run --json`: the events of a run, one JSON object a line; lines in are said to it."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable

from ...gateway.conversation import Conversation
from ...gateway.events.contract import ChangedEvent
from ...gateway.host import Host
from ..json_lines import Lines, preface, speak_utf8
from ..leaving import Leaving
from ..printer import Printer
from .options import RunOptions
from .watch import RunWatch, changes_of

CHUNK = 1 << 16


def run_json(host: Host, open_it: Callable[[], Conversation], options: RunOptions) -> int:
    """Run to the end, telling what happens; the end of the input ends nothing."""
    speak_utf8()
    printer = Printer(sys.stdout)
    watch = RunWatch()
    host.hub.subscribe(lambda event: printer.write(json.dumps(event, ensure_ascii=False) + "\n"))
    host.hub.subscribe(watch.hear)
    try:
        conversation = open_it()
        lines = Lines(conversation, takes_words=True)
        host.hub.subscribe(lines.hear)
        preface(host, conversation)
        watch.conversation = conversation
        threading.Thread(target=_take, args=(lines,), name="lines", daemon=True).start()
        try:
            with watch.stopping_on_interrupt():
                watch.wait(conversation)
        except Leaving as leaving:
            conversation.leave("signal")
            return leaving.exit_code
        changed = changes_of(conversation)
        narrator = conversation.narrator
        narrator.publish(ChangedEvent(type="changed", **narrator.stamp(), files=changed))
        conversation.leave()
        return watch.exit_code
    finally:
        host.close()
        printer.close()


def _take(lines: Lines) -> None:
    """Pass on the input; at its end, stop asking questions.

    It is read past Python's own buffer, whose lock a thread that waits would hold to the very end.
    """
    if sys.stdin is not None:  # pyright: ignore[reportUnnecessaryComparison]
        rest = b""
        while chunk := os.read(sys.stdin.fileno(), CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            _say(lines, whole)
        _say(lines, [rest])
    lines.deny_the_rest()


def _say(lines: Lines, said: list[bytes]) -> None:
    for line in said:
        text = line.decode(errors="replace").rstrip("\r")
        if text.strip():
            lines.take(text)
