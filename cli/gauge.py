"""How far a download is: a line that rewrites itself on a terminal, a few lines elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

from ..gateway.formats import size_text

_PAUSE = 0.1  # seconds between two rewritings
_STEP = 25  # percent between two lines where nothing can be rewritten


class Gauge:
    """Called with bytes done and bytes in all, from any one thread."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._next = 0.0  # seconds of the clock, or percent

    def __call__(self, done: int, total: int) -> None:
        """Show it, if enough has changed."""
        percent = 100 * done // max(1, total)
        now = time.monotonic() if self._is_terminal else percent
        if now < self._next and done < total:
            return
        self._next = now + _PAUSE if self._is_terminal else percent - percent % _STEP + _STEP
        text = f"{self._name}: {size_text(done)} of {size_text(total)} ({percent} %)"
        self._stream.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the line that was rewritten."""
        if self._is_terminal and self._next:
            self._stream.write("\n")
            self._stream.flush()
