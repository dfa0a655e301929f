"""Waits until a session has said that it is open, so that it is the first thing anybody hears."""

import threading

from .events.contract import Event

__all__ = ["Opening"]


class Opening:
    """Listens on the event bus; `wait` returns when a session has started, or its store failed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: set[str] = set()

    def hear(self, event: Event) -> None:
        """Take note of an event; loop's thread."""
        if event["type"] in ("session_started", "error"):
            with self._changed:
                self._open.add(event["session"])
                self._changed.notify_all()

    def wait(self, session: str, seconds: float = 10.0) -> bool:
        """Block until a session is open; not for the loop's own thread. False when it is not."""
        with self._changed:
            return self._changed.wait_for(lambda: session in self._open, seconds)
