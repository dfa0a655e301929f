"""What identifies the traces of a session, for its log and for the extension that exports them.

A turn is a trace. All ids are hashes of ids in the journal: those of a trace of the session and its turn,
those of a span also of the call, step or entry that it is about. So a translation that is repeated, live
or years later, gives the same spans, and a log line can name the span of its turn. A child's turns are in
the trace of the turn that started the child, below the call that it is for.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

from ..actors.environment import Observer
from ..journal import entries as e
from ..machines.value import Value

_PLACES = 1_000  # sessions whose turns the log knows; the oldest are forgotten


class Telemetry(Protocol):
    """What exports the sessions of a process; it is loaded as an extension."""

    def observer(self, session: str) -> Observer:
        """Return what observes a session."""
        ...

    def close(self) -> None:
        """Send what waits, within a bounded time."""
        ...


class TraceContext(Value):
    """What identifies a span: 32 and 16 hexadecimal digits."""

    trace: str
    span: str


class SessionTraces(Value):
    """Where the spans of a session belong: `above` is the span of the parent that they are below."""

    session: str
    above: TraceContext | None = None

    def context(self, turn: str, part: str = "turn") -> TraceContext:
        """Return the span of a turn, or of a part of it, such as the id of a call."""
        trace = self.above.trace if self.above else _digest(32, self.session, turn)
        return TraceContext(trace=trace, span=_digest(16, self.session, turn, part))

    def of_child(self, entry: e.ChildStarted) -> SessionTraces:
        """Return the place of a child; one that no turn has started is in traces of its own."""
        above = self.context(entry.turn, entry.call or "turn") if entry.turn else None
        return SessionTraces(session=entry.session, above=above)


def _digest(length: int, *parts: str) -> str:
    return sha256("/".join(parts).encode()).hexdigest()[:length]


class TurnContexts:
    """The spans of the turns of a process's sessions, for its log."""

    def __init__(self) -> None:
        self._places: dict[str, SessionTraces] = {}
        self._turns: dict[str, str] = {}

    def of(self, session: str, turn: str = "") -> TraceContext | None:
        """Return the span of a turn, or of the one that runs; none if that is not known."""
        place, turn = self._places.get(session), turn or self._turns.get(session, "")
        return place.context(turn) if place is not None and turn else None

    def take(self, session: str, entry: e.Entry, *, is_child: bool) -> None:
        """Follow a session by its next entry."""
        if not is_child:  # the place of a child is known from its parent, if that started it here
            self._places.setdefault(session, SessionTraces(session=session))
        if isinstance(entry, e.TurnStarted):
            self._turns[session] = entry.turn
        elif isinstance(entry, e.TurnEnded | e.Stopped | e.Recovered | e.SessionSuspended):
            self._turns.pop(session, None)
        elif isinstance(entry, e.ChildStarted) and session in self._places:
            self._places[entry.session] = self._places[session].of_child(entry)
            while len(self._places) > _PLACES:
                del self._places[next(iter(self._places))]
