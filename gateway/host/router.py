"""The routing tables of a process's sessions, and the event bus that their events take."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...machines.policy import RoutesChoice
from ...machines.routes import STEERSMAN, Routes
from ...workflows.settings import Settings
from ...workflows.suggestions import DEFAULT_TABLE
from ..events.contract import Event, TextEvent

Listener = Callable[[Event], None]
"""Called on the publisher's thread for each event, one at a time; must not block."""

_ENDS_TEXT = frozenset({"answer", "turn_started", "turn_ended"})


class EventBus:
    """Passes every event of every session of a process to every listener, in order.

    `follow` is how a client joins a session that runs: the journal up to one entry, then what the bus
    tells, are all of it, without a gap and nothing twice.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, tuple[Listener, ...]] = {}  # by session; of all sessions: ""
        self._lock = threading.Condition()
        self._open: set[str] = set()
        self._expected: dict[str, Callable[[], None]] = {}
        self._seqs: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._streamed: dict[str, tuple[TextEvent, list[str]]] = {}

    def publish(self, event: Event) -> None:
        """Call the followers of the event's session, then all listeners."""
        with self._lock:
            self._note(event)
            for name in (*self._lineage(event["session"]), ""):
                for listener in self._listeners.get(name, ()):
                    listener(event)

    def follow(
        self, session: str, listener: Listener, begin: Callable[[int], None] = lambda _: None
    ) -> Callable[[], None]:
        """Tell a listener of a session and its descendants; return the function that removes it.

        `begin` is called first, with the number of the newest entry of which all was published, 0 if
        there is none. Then the listener gets the text of the answers that stream, with `so_far`, then
        each event from now on; of the session itself only those after that entry.
        """
        with self._lock:
            last = self._seqs.get(session, 0)

            def hear(event: Event) -> None:
                if event["session"] != session or event["seq"] is None or event["seq"] > last:
                    listener(event)

            begin(last)
            for name, (event, pieces) in list(self._streamed.items()):
                if session in self._lineage(name):
                    listener(TextEvent({**event, "delta": "".join(pieces), "so_far": True}))
            return self.subscribe(hear, session)

    def subscribe(self, listener: Listener, session: str = "") -> Callable[[], None]:
        """Tell a listener what comes of a session and its descendants, or of all; return what ends it."""
        with self._lock:
            self._listeners[session] = (*self._listeners.get(session, ()), listener)

        def leave() -> None:
            with self._lock:
                known = self._listeners.pop(session, ())
                if rest := tuple(other for other in known if other is not listener):
                    self._listeners[session] = rest

        return leave

    def expect(self, session: str, started: Callable[[], None]) -> None:
        """Call `started` once when a session has started, before anybody is told; any thread."""
        with self._lock:
            self._expected[session] = started
            self._open.discard(session)

    def wait_for(self, session: str) -> None:
        """Block until a session has started, or its store failed; not for the publisher's thread.

        So `session_started` is the first event of a session that any client receives.
        """
        with self._lock:
            self._lock.wait_for(lambda: session in self._open, 10.0)  # seconds

    def _note(self, event: Event) -> None:
        """Keep what a client that joins has to be told beside the journal, and what has started."""
        session = event["session"]
        if event["seq"] is not None:
            self._seqs[session] = event["seq"]
        if parent := event.get("parent"):
            self._parents[session] = parent
        if event["type"] == "text":
            self._streamed.setdefault(session, (event, []))[1].append(event["delta"])
        elif event["type"] in _ENDS_TEXT:
            self._streamed.pop(session, None)
        elif event["type"] in ("session_started", "error"):
            self._expected.pop(session, lambda: None)()
            self._open.add(session)
            self._lock.notify_all()

    def _lineage(self, session: str) -> list[str]:
        """Return a session and its ancestors."""
        found = [session]
        while found[-1] in self._parents:
            found.append(self._parents[found[-1]])
        return found


def routes_of(settings: Settings, choice: RoutesChoice | None) -> tuple[Routes, str]:
    """Return the routing tables of a session's choice, and the notice about them for its start."""
    is_default = choice is None or choice.table == DEFAULT_TABLE
    if is_default and settings.routing.table == DEFAULT_TABLE and not settings.route:
        return STEERSMAN, ""
    from ...workflows.routing import routes_for

    return routes_for(settings, choice)
