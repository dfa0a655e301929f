"""Where it is drawn: rows that stay above, and below them what is redrawn.

Everything goes out in one thread, the prompt's own loop, and each change is one write: what is below
is taken away, the new rows are written, what is below is drawn again. The terminal is never asked
where its cursor is, and stays as it is set, so no key that is typed meanwhile is lost or echoed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from ..printer import forget

BETWEEN = 0.03
"""Seconds between two drawings without a key press; changes in between are drawn together."""
AT_ONCE = 400
"""Rows that are written before keys are looked at again."""
TICK = 1.0
"""Seconds between two drawings while something goes on that the bar counts."""


class SteadyOutput(Vt100_Output):
    """A terminal that is written to in one piece while it is held; it is asked for nothing."""

    def __init__(self, stream: TextIO, size: Callable[[], Size], term: str | None) -> None:
        super().__init__(stream, size, term=term, enable_cpr=False)
        self._is_held = False

    def hold(self) -> None:
        """Keep what is written until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Write what was kept."""
        self._is_held = False
        self.flush()

    def flush(self) -> None:
        """Write, unless it is held; a terminal that is gone is written to no more."""
        if self._is_held:
            return
        try:
            super().flush()
        except OSError:  # the session goes on to its end without a terminal
            forget(1, 2)


class Canvas:
    """`print` and `changed` may be called from any thread and return at once.

    `is_moving`: whether what is below changes without an event, as elapsed time does.
    """

    def __init__(self, output: SteadyOutput, is_moving: Callable[[], bool]) -> None:
        self.output = output
        self.app: Application[Any] | None = None
        self._is_moving = is_moving
        self._rows: list[str] = []
        self._lock = threading.Lock()
        self._is_due = self._is_ticking = self._is_away = False
        self._last = 0.0

    @property
    def columns(self) -> int:
        """How wide the terminal is."""
        return max(4, self.output.get_size().columns)

    @property
    def lines(self) -> int:
        """How high it is."""
        return self.output.get_size().rows

    def print(self, rows: list[str]) -> None:
        """Write rows above; they hold terminal codes of our own only."""
        if rows:
            with self._lock:
                self._rows += rows
            self.changed()

    def changed(self) -> None:
        """Have what is below drawn again, soon."""
        app = self.app
        loop = app.loop if app is not None else None
        with self._lock:
            if loop is not None and self._is_due:
                return
            self._is_due = True
        if loop is None or loop.is_closed():
            self.drain()
            return
        try:
            loop.call_soon_threadsafe(self._plan)
        except RuntimeError:  # it was closed just now
            self.drain()

    def drain(self) -> None:
        """Write what waits, where nothing is drawn below."""
        with self._lock:
            rows, self._rows, self._is_due = self._rows, [], False
            if rows:
                self.output.write_raw("".join(f"{row}\r\n" for row in rows))
                self.output.flush()

    def step_aside(self, is_away: bool) -> None:
        """While another program has the terminal, nothing is drawn."""
        self._is_away = is_away
        self.changed()

    def _plan(self) -> None:
        app = self.app
        if app is not None and app.loop is not None:
            wait = self._last + BETWEEN - time.monotonic()
            app.loop.call_later(max(0.0, wait), self._draw)

    def _draw(self) -> None:
        """Draw; in the prompt's loop."""
        self._last = time.monotonic()
        with self._lock:
            self._is_due = False
            if self._is_away or self.app is None or not self.app.is_running:
                return
            rows, self._rows = self._rows[:AT_ONCE], self._rows[AT_ONCE:]
            is_more = bool(self._rows)
        self.output.hold()
        try:
            if rows:
                self.app.renderer.erase()
                self.output.write_raw("".join(f"{row}\r\n" for row in rows))
            self._render(self.app)
        finally:
            self.output.release()
        if is_more:
            self.changed()
        elif self._is_moving():
            self._tick_later()

    def _render(self, app: Application[Any]) -> None:
        if app.context is not None:
            app.render_counter += 1  # what is drawn is asked for once each time
            app.context.copy().run(app.renderer.render, app, app.layout)

    def _tick_later(self) -> None:
        if not self._is_ticking and self.app is not None and self.app.loop is not None:
            self._is_ticking = True
            self.app.loop.call_later(TICK, self._tick)

    def _tick(self) -> None:
        self._is_ticking = False
        self._draw()
