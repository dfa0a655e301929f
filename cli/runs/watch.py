"""Follows a run by its events until it has ended, and stops it after a signal.

Without a terminal it is told in lines of text, failures at once and the summary at the end, or of JSON.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from ...gateway.events.contract import ChangedEvent, Event, RunEndedEvent, StepEvent
from ...gateway.interface import ChatHost, RunSession
from ...gateway.views.saved_queues import call_line
from ...gateway.wording.formats import call_words, shortened
from ...gateway.wording.terminal import clean
from ...machines.steps import UNDECIDED
from ..exit_codes import DONE, FAILED, OF_RUNS, UNANSWERED
from ..json_lines import Lines, talking_json
from ..signals import SignalExit, leave_through
from ..streams import CHUNK, is_in_background, printers, split_lines
from ..talk import IdleWaiter, start_notices, talking

LONG, SHORT = 5.0, 0.5
"""Seconds between two checks of a running run, whose record is large, and of one that has ended."""


class RunWatch:
    """Follows one run; `ended` is its last event, if it has ended. The first stop calls `on_stop`."""

    def __init__(self) -> None:
        self.idle_waiter = IdleWaiter()
        self.idle_waiter.pause = LONG
        self.ended: RunEndedEvent | None = None
        self.conversation: RunSession | None = None
        self.on_stop: Callable[[], None] = lambda: None
        self._is_stopping = False
        self._has_unanswered = False
        self.is_reverted = False

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        self.idle_waiter.hear(event)
        if event["type"] == "tool_ended" and event.get("unanswered"):
            self._has_unanswered = True
        if event["type"] == "reverted" and event["scope"] == "turn" and "parent" not in event:
            self.is_reverted = bool(event["restored"])
        if event["type"] == "run_ended" and "parent" not in event:
            self.ended = event
            self.idle_waiter.pause = SHORT
        elif event["type"] == "run_started" and "parent" not in event:
            self.ended = None
            self.idle_waiter.pause = LONG

    def wait(self, conversation: RunSession, between: Callable[[], None] = lambda: None) -> None:
        """Block until the run has ended, none of its work is left, and `ended` is known.

        `between` is called now and then meanwhile.
        """
        self.idle_waiter.wait(conversation, between)
        conversation.publish_all()

    def summary(self, conversation: RunSession, seconds: float) -> list[str]:
        """Return the lines about how the run ended, after so long; none if it has not."""
        if self.ended is None:
            return []
        changed = conversation.changes()
        return summary(self.ended, changed, seconds, is_reverted=self.is_reverted)

    def stop(self) -> None:
        """Interrupt the run, as a first Ctrl-C does."""
        conversation = self.conversation
        if conversation is None:
            return
        conversation.begin_interrupt()
        if not self._is_stopping:
            self._is_stopping = True
            self.on_stop()

    @contextmanager
    def stopping_on_interrupt(self) -> Generator[None]:
        """Let a first Ctrl-C interrupt the run instead of leaving at once."""

        def way(signal_exit: SignalExit) -> bool:
            if signal_exit.exit_code != 128 + signal.SIGINT or self.conversation is None:
                return False
            self.stop()
            return True

        with leave_through(way):
            yield

    @property
    def exit_code(self) -> int:
        """How the run ended: every step succeeded, one failed, or it was interrupted.

        A question of an agent that nobody could answer counts as one of a step: its work may be missing.
        """
        if self.idle_waiter.is_broken or self.ended is None:
            return FAILED
        has_failed = self.ended["status"] == "failed"
        if has_failed and any(step.get("unanswered") for step in self.ended["steps"]):
            return UNANSWERED
        return OF_RUNS[self.ended["status"]] or (UNANSWERED if self._has_unanswered else DONE)


MOST_FILES = 8


def elapsed_text(seconds: float) -> str:
    """Write a duration: `12.3 s`, `3 min 5 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


_FAILURES = {"failed": "failed", "unknown": "unknown", "retrying": "retrying", "blocked": "not run"}


def event_line(event: Event) -> str:
    """Return a line for a failed, repeated, lost or blocked step, a refusal, an error or a notice."""
    match event["type"]:
        case "step" if event["state"] in _FAILURES:
            name = event.get("item")
            item = "" if name is None else f" {name}"
            return f"{_FAILURES[event['state']]}: {event['step']}{item}{reason_text(event)}"
        case "tool_ended" if event.get("unanswered"):
            call = " ".join((event["tool"], *call_words(event.get("arguments", {}))))
            return f"refused: {clean(shortened(call))}: {clean(event.get('reason') or '')}"
        case "recovered" if event["unknown"] and "parent" in event:  # its agent was told
            calls = ", ".join(map(call_line, event["unknown"]))
            return f"outcome unknown, not run again: {calls}"
        case "error":
            hint = f"\n  {event['hint']}" if event["hint"] else ""
            return f"steersman: {event['text']}{hint}"
        case "notice":
            return event["text"]
        case _:
            return ""


def reason_text(event: StepEvent) -> str:
    """Return the first line of why a step ended as it did, behind a colon; empty for no reason."""
    reason = event.get("reason", "").splitlines()[:1]
    return f": {clean(reason[0])}" if reason else ""


def summary(
    ended: RunEndedEvent, changed: list[str], seconds: float, *, is_reverted: bool = False
) -> list[str]:
    """Return the result of a run, the files that it changed, and the next steps."""
    run, status = ended["run"], ended["status"]
    counts = [
        f"{step['step']} {step['state']}"
        + (f" ({step.get('done')} of {step['total']})" if "total" in step else "")
        for step in ended["steps"]
    ]
    lines = [
        f"Run {run} {status} after {elapsed_text(seconds)}: {', '.join(counts) or 'nothing ran'}."
    ]
    if reason := ended.get("reason"):
        lines.append(clean(reason.splitlines()[0]))
    if changed:
        names = ", ".join(changed[:MOST_FILES]) + (", …" if len(changed) > MOST_FILES else "")
        noun = "file" if len(changed) == 1 else "files"
        lines.append(f"Changed {len(changed)} {noun}: {names}")
        lines.append(f"`steersman sessions revert {run}` brings everything back.")
    if is_reverted:
        lines.append("Its changes were reverted: it cannot be resumed.")
    elif status == "interrupted":
        lines.append(f"`steersman run --resume {run}` continues where it stopped.")
    elif ended.get("reason", "").startswith(UNDECIDED):
        lines.append(f"`steersman run --resume {run}` says how it goes on.")
    elif status == "failed":
        lines.append(
            f"When the cause is repaired, `steersman run --resume {run}` repeats the failed work."
        )
    if output := ended.get("output"):
        lines += ["", *clean(output).splitlines()]
    return lines


# Without a terminal -------------------------------------------------------------------------------


def run_plain(host: ChatHost, open_it: Callable[[], RunSession]) -> int:
    """Run to the end; print failures to standard error and the summary to standard output."""
    out, err = printers()
    watch = RunWatch()
    watch.on_stop = lambda: err.write("Stopping; Ctrl-C again ends it at once.\n")
    began = time.monotonic()

    def report(event: Event) -> None:
        if line := event_line(event):
            err.write(f"{line}\n")

    with talking(host, open_it, (watch.hear, report), (out, err), err.write) as conversation:
        watch.conversation = conversation
        for notice in start_notices(host):
            err.write(f"{notice}\n")
        with watch.stopping_on_interrupt():
            watch.wait(conversation)
        for line in watch.summary(conversation, time.monotonic() - began):
            out.write(f"{line}\n")
        conversation.leave()
    return watch.exit_code


def run_json(host: ChatHost, open_it: Callable[[], RunSession]) -> int:
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
    chunks = iter(partial(os.read, sys.stdin.fileno(), CHUNK), b"")
    for line in split_lines(() if is_in_background() else chunks):
        if line.strip():
            lines.take(line)
    lines.deny_the_rest()
