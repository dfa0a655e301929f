"""The display of a run: one line per finished step, and the running ones with their items."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import Struct, field

from ...gateway.events.contract import Event, StepEvent, is_aside
from ...gateway.wording.acknowledgement import acknowledgement
from ...gateway.wording.terminal import clean
from ..question import Questions
from .summary import elapsed_text, failure_line

WIDTH = 24
"""Columns of a bar."""
MOST_NOW = 4
SIGNS = {"done": "✓", "failed": "✗", "skipped": "-", "blocked": "-", "interrupted": "!"}
PLAIN_SIGNS = {"done": "ok", "failed": "FAILED", "interrupted": "stopped"}


class _Shown(Struct, kw_only=True):
    """A running step, as it is drawn."""

    name: str
    began: float
    done: int = 0
    failed: int = 0
    total: int | None = None
    now: dict[str, None] = field(default_factory=dict[str, None])


class RunScreen:
    """Turns events into lines above (`write`) and draws the running steps (`picture`); any thread."""

    def __init__(self, write: Callable[[str], None], *, can_utf8: bool) -> None:
        self.questions = Questions()
        self.is_over = False
        self._write = write
        self._can_utf8 = can_utf8
        self._steps: dict[str, _Shown] = {}
        self._children: dict[str, str] = {}
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        self.questions.hear(event)
        if is_aside(event):
            return
        with self._lock:
            for line in self._lines(event):
                self._write(f"{line}\n")

    def picture(self) -> str:
        """Draw the running steps."""
        with self._lock:
            return "\n".join(self._drawn(step) for step in self._steps.values())

    def status(self) -> str:
        """Return the bar: the time, the keys, the subagents at work."""
        with self._lock:
            parts = [
                f"running {elapsed_text(time.monotonic() - self._began)}",
                "Esc stops; your messages go to the agents",
            ]
            if self._children:
                parts.append(f"{', '.join(sorted(self._children))} at work")
            return " · ".join(parts)

    def _lines(self, event: Event) -> list[str]:
        match event["type"]:
            case "step":
                return self._step(event)
            case "child_started":
                self._children[event["name"]] = event["task"]
                return []
            case "child_ended":
                self._children.pop(event["name"], None)
                return []
            case "error":
                return [f"steersman: {event['text']}"]
            case "notice" | "result":
                return [event["text"]] if event["text"] else []
            case "accepted" if event["number"] == 1 and event["as"] == "turn":
                return []  # the run itself
            case "accepted" | "rejected" | "interrupting" | "requeued" | "steered":
                return [found] if (found := acknowledgement(event, can_utf8=self._can_utf8)) else []
            case _:
                return []

    def _step(self, event: StepEvent) -> list[str]:
        name, state = event["step"], event["state"]
        if state not in ("running", "retrying", "unknown"):
            self.questions.drop_those_of(name)
        now = time.monotonic()
        if "item" in event:
            self._item(event)
            line = failure_line(event)
            return [line] if line else []
        if state == "running":
            shown = self._steps.setdefault(name, _Shown(name=name, began=now))
            shown.done, shown.total = event.get("done", 0), event.get("total")
            return []
        if state in ("retrying", "unknown"):
            return [failure_line(event)]
        shown = self._steps.get(name) or _Shown(name=name, began=now)
        self._steps.pop(name, None)
        return [self._ended(event, elapsed_text(now - shown.began))]

    def _item(self, event: StepEvent) -> None:
        shown = self._steps.get(event["step"])
        if shown is None:
            return
        item = str(event.get("item"))
        shown.done, shown.total = event.get("done", 0), event.get("total")
        shown.failed += event["state"] == "failed"
        if event["state"] == "running":
            shown.now[item] = None
        else:
            shown.now.pop(item, None)

    def _ended(self, event: StepEvent, seconds: str) -> str:
        state = event["state"]
        sign = (SIGNS if self._can_utf8 else PLAIN_SIGNS).get(state, state)
        count = f" {event.get('done')} of {event['total']}" if "total" in event else ""
        why = f": {clean(reason.splitlines()[0])}" if (reason := event.get("reason")) else ""
        time_taken = f" ({seconds})" if state in ("done", "failed") else ""
        return f"{sign} {event['step']}{count}{time_taken}{why}"

    def _drawn(self, step: _Shown) -> str:
        parts = [f"  {step.name}"]
        if step.total is not None:
            parts.append(bar(step.done, step.total, can_utf8=self._can_utf8))
            parts.append(f"{step.done}/{step.total}")
        if step.failed:
            parts.append(f"{step.failed} failed")
        parts.append(elapsed_text(time.monotonic() - step.began))
        now = list(step.now)[:MOST_NOW]
        return "  ".join([*parts, ", ".join(now)]).rstrip()


def bar(done: int, total: int, *, can_utf8: bool, width: int = WIDTH) -> str:
    """Draw a progress bar."""
    full = width * done // max(1, total)
    on, off = ("█", "░") if can_utf8 else ("#", ".")
    return on * full + off * (width - full)
