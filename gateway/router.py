"""The routing tables of a process's sessions, and the event bus that their events take."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..machines.classification import Keywords
from ..machines.policy import RoutesChoice
from ..machines.routes import STEERSMAN, Routes
from ..workflows.settings import Settings
from ..workflows.suggestions import DEFAULT_TABLE
from .events.contract import Event

Listener = Callable[[Event], None]
"""Called on the loop's thread for each event; must not block."""


class EventBus:
    """Passes every event of every session of a process to every listener, in order."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def publish(self, event: Event) -> None:
        """Call all listeners."""
        for listener in self._listeners:
            listener(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener, and return the function that removes it."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def leave() -> None:
            with self._lock:
                self._listeners = tuple(known for known in self._listeners if known is not listener)

        return leave


class Router:
    """Finds the routing tables of sessions; `words` are the keywords of the configuration."""

    def __init__(self, settings: Settings, words: Keywords) -> None:
        self._settings = settings
        self.words = words

    def routes(self, choice: RoutesChoice | None) -> tuple[Routes, str]:
        """Return the tables of a session's choice, and the notice about them for its start."""
        routing = self._settings.routing
        is_default = choice is None or choice.table == DEFAULT_TABLE
        if is_default and routing.table == DEFAULT_TABLE and not self._settings.route:
            return STEERSMAN, ""
        from ..workflows.routing import routes_for

        return routes_for(self._settings, choice)
