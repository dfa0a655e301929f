"""Which routing tables a session goes by, and what they would do with a message."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..machines.classification import Keywords
from ..machines.policy import RoutesChoice
from ..machines.routes import Routes
from ..workflows.routing import routes_for
from ..workflows.settings import Settings
from .events.contract import Event

# The event bus of one process: sessions publish, faces subscribe ----------------------------------


Listener = Callable[[Event], None]
"""Called on the loop's thread for each event: must hand it on at once and not block."""


class EventBus:
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
                self._listeners = tuple(known for known in self._listeners if known is not listener)

        return leave


class Router:
    """What a process knows of routing: its configuration and its words."""

    def __init__(self, settings: Settings, words: Keywords) -> None:
        self._settings = settings
        self.words = words

    def routes(self, choice: RoutesChoice | None) -> tuple[Routes, str]:
        """Return the tables of a session that chose so, and what its start has to say of them."""
        return routes_for(self._settings, choice)
