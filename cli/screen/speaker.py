"""Says what was typed, from a thread of its own: typing never waits for an answer.

What is said keeps its order. What must not wait, a stop or an answer, goes past all that.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class Speaker:
    """Runs what it is given, in order; `close` waits for what is on its way."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
        self._thread.start()

    def later(self, work: Work) -> None:
        """Do it after all that was given before."""
        self._work.put(work)

    def now(self, work: Work) -> None:
        """Do it at once."""
        threading.Thread(target=work, name="speaker-now", daemon=True).start()

    def close(self, seconds: float = 2.0) -> None:
        """Take no more, and give what is on its way so long."""
        self._work.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
