"""What of the events is printed above: the answer, tools folded to a row, and what else is told."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ...gateway.events.contract import Event
from ...gateway.terminal import clean
from ..begun import Begun
from ..plain import PlainFace
from ..wrapping import fitted, wrapped
from .bar import duration
from .look import BAD, DIM, HEAD, Look, Row
from .stream import Stream
from .tool_view import ended_rows, running_row, unfolded_rows

__all__ = ["Transcript"]

ENDS_A_LINE = ("turn_ended", "tool_started", "tool_ended", "question", "interrupted", "steered")
REMEMBERED = 100
"""Calls that can be unfolded by a key; `/show` knows all."""
MOST_RUNNING = 4
"""Rows for calls that run."""
MOST_PRINTED = 4
"""Rows for what a call that runs has printed last."""


class Transcript:
    """Turns events into printed rows, in order; calls come one at a time.

    `width` gives the terminal's columns, `emit` takes rows that are finished.
    """

    def __init__(
        self,
        look: Look,
        width: Callable[[], int],
        emit: Callable[[list[str]], None],
        *,
        shows_queued: bool = True,
    ) -> None:
        self._look = look
        self._width = width
        self._emit = emit
        self._stream = Stream(look)
        self._running: dict[str, tuple[Event, float]] = {}
        self._printed: dict[str, str] = {}
        self._stopped: dict[str, tuple[Event, float]] = {}
        self._asked: dict[str, Event] = {}
        self._ended: deque[tuple[Event, Event]] = deque(maxlen=REMEMBERED)
        self._unfolded = 0
        self._begun = Begun()
        self._thought: list[str] = []
        self._thinking_since = 0.0
        utf8 = look.can_utf8
        self._face = PlainFace(self, self, can_utf8=utf8, has_bar=True, shows_queued=shows_queued)

    def hear(self, event: Event) -> None:
        """Take in an event of the session itself."""
        kind = event["type"]
        begun = self._begun.hear(event)
        if kind == "thinking":
            self._think(clean(str(event.get("delta") or "")))
            return
        if kind == "text" or kind in ENDS_A_LINE:
            self._end_thinking()
        if kind in ENDS_A_LINE:
            self.end_line()
        match kind:
            case "text":
                self._rows(self._stream.feed(clean(event["delta"]), self._width()))
            case "tool_started":
                self._running[event["call"]] = (event, time.monotonic())
            case "output":
                self._printed[event["call"]] = event["text"]
            case "tool_ended":
                self._printed.pop(event["call"], None)
                self._end_call(event)
            case "question":
                self._asked[str(event["id"]).rpartition("-")[2]] = event
            case "turn_started" | "turn_ended":
                self._stopped, self._running = self._running, {}
                self._printed.clear()
                self._asked.clear()
                self._face.hear(event)
                self._begin(begun)
            case _:
                self._face.hear(event)

    def write(self, text: str) -> None:
        """Print lines of plain text, broken between words."""
        style = BAD if text.startswith("error: ") else ""
        lines = wrapped(text.removesuffix("\n").expandtabs(4), self._width())
        self._rows([[(style, line)] for line in lines])

    def end_line(self) -> None:
        """Print the line that is unfinished: something else comes, and belongs below it."""
        self._rows(self._stream.finish(self._width()))

    def live(self, width: int, most: int) -> list[Row]:
        """Return the rows that still change: the unfinished line, thinking, calls that run."""
        rows = self._stream.live(width)[-most:]
        if self._thought:
            seconds = duration(int(time.monotonic() - self._thinking_since))
            sign = self._look.sign("✻")
            rows.append([(DIM, f"{sign} Thinking {self._look.sign('…')} {seconds}")])
        now = time.monotonic()
        calls = [one for one in self._running.values() if one[0]["tool"] != "progress"]
        for call, since in calls[:MOST_RUNNING]:
            rows.append(running_row(call, int(now - since), width, self._look))
            printed = clean(self._printed.get(call["call"], "")).expandtabs(4).split("\n")
            rows += [
                [(DIM, fitted(f"  {line}", width, self._look.sign("…")))]
                for line in printed[-MOST_PRINTED:]
                if line.strip()
            ]
        if more := len(calls) - MOST_RUNNING:
            rows += [[(DIM, f"  and {more} more")]] if more > 0 else []
        return rows

    def unfold(self) -> bool:
        """Print a call whole: the last, and then each time the one before; False for none left."""
        if self._unfolded >= len(self._ended):
            return False
        self._unfolded += 1
        call, end = self._ended[-self._unfolded]
        self._rows(unfolded_rows(call, end, self._width(), self._look))
        return True

    def _begin(self, said: str) -> None:
        """Say whose turn it is, above its answer, where that was said long before."""
        if said:
            words, _, number = said.rpartition("  ")
            words = fitted(" ".join(clean(words).split()), max(8, self._width() - 12), "...")
            self._rows([[], [(HEAD, "> "), ("", words), (DIM, f"  {number}")]])

    def _think(self, text: str) -> None:
        if not self._thought:
            self._thinking_since = time.monotonic()
        self._thought.append(text)

    def _end_thinking(self) -> None:
        """Fold what was thought into a row, and keep it to be unfolded."""
        if not self._thought:
            return
        seconds = duration(time.monotonic() - self._thinking_since)
        self._rows([[(DIM, f"{self._look.sign('✻')} Thought for {seconds}")]])
        call: Event = {"tool": "thinking", "call": "", "arguments": {}}
        self._remember(call, {"output": "".join(self._thought)})
        self._thought = []

    def _end_call(self, end: Event) -> None:
        name: Event = {"tool": end["tool"], "call": end["call"], "arguments": {}}
        asked = self._asked.pop(end["call"], {})
        calls = self._running if end["call"] in self._running else self._stopped
        call, since = calls.pop(end["call"], (name | {**asked, "call": end["call"]}, None))
        if end["tool"] == "progress" and end["status"] in ("ok", "skipped"):
            return
        self._remember(call, end)
        seconds = time.monotonic() - since if since is not None else None
        self._rows(ended_rows(call, end, seconds, self._width(), self._look))

    def _remember(self, call: Event, end: Event) -> None:
        self._ended.append((call, end))
        self._unfolded = 0

    def _rows(self, rows: list[Row]) -> None:
        self._emit([self._look.printed(row) for row in rows])
