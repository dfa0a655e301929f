"""The event bus of one process: sessions publish, faces subscribe."""

import threading
from collections.abc import Callable

from .events.contract import Event

Listener = Callable[[Event], None]
"""Called on the loop's thread for each event: must hand it on at once and not block."""


class Hub:
    """Hands every event of every session to every listener, in order."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def publish(self, event: Event) -> None:
        """Tell all listeners."""
        for listener in self._listeners:
            listener(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener and return how to take it away again."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def leave() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return leave
