"""Brings the journal's entries to the translation: those of live sessions, and those of old ones.

A live session's entries are passed on when they are durable, and everything else is done by a thread of
its own: so no session waits for a collector, and one that is gone costs a notice. A span is sent once, by
the process in which it ends. What was lost, in a crash or for want of a collector, `stored_spans` gives
again, under the same ids.
"""

from __future__ import annotations

import threading
import time
from collections import ChainMap, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from string import Template

from ...actors.environment import Observer, Publication
from ...gateway.trace_context import SessionTraces
from ...gateway.wording.redaction import Redactor
from ...journal import entries as e
from ...journal.codec import decode_entry
from ...journal.record import SessionRecord
from ...journal.store import Store
from ...machines.errors import SteersmanError, UnknownSession, UsageError
from ...ports.models.provider import model_configs
from ...workflows.config import Config
from .otlp import Meters, Sender, as_json
from .spans import SessionTrace, TraceSpan

PAUSE = 0.3
"""Seconds in which spans gather before they are sent."""
METERED = 15.0
"""Seconds between two reports of the metrics."""
AGAIN = 10.0
"""Seconds after which a collector that failed is tried again."""
TIMEOUT = 10.0
METER_TIMEOUT = 2.0
"""Seconds for a request of spans, and for one of metrics, of which the next one tells all again."""
LAST_TIMEOUT = 0.7
"""Seconds for the last requests of a process: too short for the SDK to repeat one that failed."""
FLUSH_TIMEOUT = 1.5
"""Seconds that the end of a process waits for the last requests."""
WAITING = 4_096
"""Spans that are kept for a collector that is gone; the oldest are dropped."""


def headers_of(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of each request; `$NAME` in one is a variable of the environment."""
    given = config.telemetry.headers
    return {name: Template(value).safe_substitute(environ) for name, value in given.items()}


class Translations:
    """Makes the translation of a session, in the place that its parent's journal gives it."""

    def __init__(self, store: Store, config: Config, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor
        self._with_content = config.telemetry.content
        self._models = model_configs(config.models)

    def at(self, place: SessionTraces) -> SessionTrace:
        """Return the translation of a session from its first entry on."""
        content = self._with_content
        return SessionTrace(place, self._models, self._redactor, with_content=content)

    def until(
        self, session: str, seq: int | None, known: Mapping[str, SessionTraces]
    ) -> SessionTrace:
        """Return it as it is after entry `seq`, or the newest; `known` are places of children.

        Raises `StoreError`.
        """
        trace = self.at(known.get(session) or self._place(session))
        for stored in self._store.entries(session, 0, seq):
            trace.follow(stored)
        return trace

    def _place(self, session: str) -> SessionTraces:
        """Look a child's place up in its parent's journal."""
        for first in self._store.entries(session, 0, 1):
            opened = decode_entry(first.data)
            if isinstance(opened, e.SessionOpened) and opened.parent:
                children = self.until(opened.parent, None, {}).children
                return children.get(session, SessionTraces(session=session))
        return SessionTraces(session=session)


_Entry = tuple[str, int, float, e.Entry]


class Telemetry:
    """Exports the sessions of a process. `report` gets the first fault as a sentence."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        store: Store,
        redactor: Redactor,
        report: Callable[[str], None],
    ) -> None:
        self._redactor = redactor
        self._report = report
        headers = headers_of(config, environ)
        self._export = _Export(config.telemetry.endpoint, headers, self._complain)
        self._translations = Translations(store, config, redactor)
        self._traces: dict[str, SessionTrace] = {}
        self._arrived: deque[_Entry] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._has_failed = False
        self._thread: threading.Thread | None = None

    @staticmethod
    def stored_spans(
        store: Store, session: str, config: Config, redactor: Redactor
    ) -> list[TraceSpan]:
        """Return the spans of a session and its children, as far as they have ended.

        What runs has not ended; what a crash has cut off has. Raises `StoreError`.
        """
        translations, spans = Translations(store, config, redactor), list[TraceSpan]()
        waiting = [translations.until(session, 0, {})]
        while waiting:
            trace = waiting.pop()
            with suppress(UnknownSession):  # a child that a crash has come before
                for stored in store.entries(trace.place.session):
                    spans += trace.follow(stored)
            if not store.is_owned(trace.place.session):
                spans += trace.lost()
            waiting += [translations.at(place) for place in trace.children.values()]
        return spans

    as_json = staticmethod(as_json)

    @staticmethod
    def send(
        spans: Sequence[TraceSpan], endpoint: str, config: Config, environ: Mapping[str, str]
    ) -> bool:
        """Send spans, and return whether the collector took all. Raises `UsageError`.

        The configured headers are only sent to the configured collector.
        """
        is_ours = endpoint == config.telemetry.endpoint
        sender = Sender(endpoint, headers_of(config, environ) if is_ours else {})
        return sender.send(spans) == len(spans)

    def observer(self, session: str) -> FeedObserver:
        """Return the observer of a session."""
        return FeedObserver(session, self._put)

    def _put(self, session: str, seq: int, at: float, entry: e.Entry) -> None:
        """Take an entry that is durable; returns at once."""
        with self._changed:
            if self._is_closing:
                return
            self._arrived.append((session, seq, at, entry))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Send what waits, and end the thread; a collector that does not answer is not waited for."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._export.hurry()
            self._thread.join(FLUSH_TIMEOUT)

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            with self._changed:
                wait = self._export.seconds_to_next()
                self._changed.wait_for(lambda: self._arrived or self._is_closing, wait)
                self._changed.wait_for(lambda: self._is_closing, PAUSE)
                arrived, self._arrived = self._arrived, deque()
                is_closing = self._is_closing
            spans = [span for entry in arrived for span in self._translated(*entry)]
            try:
                if any(isinstance(entry, e.TurnStarted) for _, _, _, entry in arrived):
                    self._export.prepare()  # while the model thinks
                self._export.add(spans)
                if is_closing:
                    self._export.finish()
                else:
                    self._export.send_due()
            except UsageError as error:  # without the extra, or with no address
                self._complain(f"{error.message}: {error.hint}")
                self._is_closing = is_closing = True

    def _translated(self, session: str, seq: int, at: float, entry: e.Entry) -> list[TraceSpan]:
        """Translate an entry, after what other processes have written of its session."""
        trace = self._traces.get(session)
        try:
            if trace is None or trace.seq < seq - 1:
                places = ChainMap(*(trace.children for trace in self._traces.values()))
                trace = self._translations.until(session, seq - 1, places)
                self._traces[session] = trace
        except SteersmanError as error:
            self._complain(f"session {session} cannot be traced: {error.message}")
            return []
        spans = trace.take(seq, at, entry) if seq > trace.seq else []
        if isinstance(entry, e.SessionSuspended | e.SessionFinalized):
            del self._traces[session]
        return spans

    def _complain(self, text: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._report(self._redactor.line(f"No telemetry: {text}"))


class _Export:
    """What waits for the collector; used by the thread alone, but for `hurry`."""

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], complain: Callable[[str], None]
    ) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._complain = complain
        self._pending: deque[TraceSpan] = deque(maxlen=WAITING)
        self._sender: Sender | None = None
        self._meters: Meters | None = None
        self._is_down = False
        self._is_hurried = False
        self._next = 0.0  # when a collector that failed is tried again

    def hurry(self) -> None:
        """Have a request that is under way not be repeated; from any thread."""
        self._is_hurried = True
        if self._sender is not None:
            self._sender.close()

    def seconds_to_next(self) -> float | None:
        """Return how long there is nothing to do unless spans come; none for any time."""
        return max(0.0, self._next - time.monotonic()) if self._pending else None

    def prepare(self) -> tuple[Sender, Meters]:
        """Import the SDK, which takes a while. Raises `UsageError` without the extra."""
        if self._sender is None or self._meters is None:
            self._sender = Sender(self._endpoint, self._headers, TIMEOUT)
            self._meters = Meters.to(self._endpoint, self._headers, METERED, METER_TIMEOUT)
        return self._sender, self._meters

    def add(self, spans: list[TraceSpan]) -> None:
        """Take spans. Raises `UsageError` without the extra."""
        for span in spans:
            self.prepare()[1].count(span)
        self._pending += spans

    def send_due(self) -> None:
        """Send what waits, unless a collector that failed is not yet to be tried again."""
        if self._pending and (not self._is_down or time.monotonic() >= self._next):
            self._send(self.prepare()[0])

    def finish(self) -> None:
        """Send what is left, unless the collector is known to be gone."""
        if self._pending and not self._is_down:
            self._send(Sender(self._endpoint, self._headers, LAST_TIMEOUT))
        if self._meters is not None and not self._is_down:
            self._meters.flush()

    def _send(self, sender: Sender) -> None:
        for _ in range(sender.send(list(self._pending))):
            self._pending.popleft()
        if not self._pending:
            self._is_down = False
        elif not (self._is_hurried and sender is self._sender):  # else it has the order to give up
            self._is_down = True
            self._next = time.monotonic() + AGAIN
            self._complain(
                f"the collector at {self._endpoint} does not take it; "
                "`steersman sessions trace ID` sends what is missing later"
            )


class FeedObserver(Observer):
    """Observes one session's entries, and passes them on when they are durable."""

    def __init__(self, session: str, put: Callable[[str, int, float, e.Entry], None]) -> None:
        self._session = session
        self._put = put

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication:
        """Pass an entry on."""
        return partial(self._put, self._session, seq, time, entry)
