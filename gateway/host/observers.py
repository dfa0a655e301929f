"""What follows the sessions of a process: events, outcomes, hooks, the log, traces, copies of queues."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ...actors.environment import Observer
from ...workflows.registry import EXTENSIONS
from ..events.contract import Event
from ..events.translation import EventPublisher
from ..home.retention import queues_folder
from ..outcome import Outcomes
from ..trace_context import Telemetry
from ..wording.redaction import Redactor
from .hook_runner import HookObserver, HookRunner
from .offline_writer import Logbook, QueueMirror
from .router import EventBus

if TYPE_CHECKING:
    from .host import Host


class SessionObservers:
    """Observes each session that is opened here, and its subagents.

    `outcomes` has what becomes of the messages of each session that is open here. `recorders` observe all
    sessions, also subagents'.
    """

    def __init__(self, host: Host, environ: Mapping[str, str]) -> None:
        self._runtime = runtime = host.runtime
        paths, config, complain = host.paths, host.config, host.complain
        is_debug = host.launch.is_debug or bool(environ.get("STEERSMAN_DEBUG"))
        self.event_bus = EventBus()
        keys = config.key_variables
        self._log = Logbook(paths, environ, keys, complain, is_debug=is_debug)
        self.event_bus.subscribe(self._log.receive)
        self.outcomes = WeakValueDictionary[str, Outcomes]()
        self.recorders: tuple[Observer, ...] = ()
        self._hooks = HookRunner(host)
        self._telemetry: Telemetry | None = None
        if config.telemetry.endpoint:
            self._telemetry = EXTENSIONS.load("opentelemetry")(
                config, environ, runtime.store, Redactor(environ, keys), complain
            )
        self._mirror: QueueMirror | None = None
        if config.auto_queue.persistence.enabled:
            self._mirror = QueueMirror(queues_folder(paths, config), complain)
            self.event_bus.subscribe(self.copy_queue)
        runtime.child_setup.observers_of = self._of_child

    def publisher(self, session: str, parent: str = "") -> EventPublisher:
        """Give a session its voice on the event bus; `parent` is whose child it is."""
        return EventPublisher(session, self.event_bus.publish, time.time, parent)

    def report(self, session: str, text: str) -> None:
        """Tell the people of a session what goes wrong beside it."""
        self.publisher(session).notice(text)

    def of(self, session: str) -> tuple[Observer, ...]:
        """Return what observes a session that is opened."""
        outcomes = self.outcomes[session] = Outcomes(session, lambda: self._runtime.store)
        return (
            outcomes,  # first: a subscriber to an event may ask about it
            self.publisher(session),
            HookObserver(session, self._hooks),
            *self._recording(session),
        )

    def _of_child(self, session: str, parent: str) -> tuple[Observer, ...]:
        hooks = HookObserver(session, self._hooks, is_child=True)
        return (self.publisher(session, parent), hooks, *self._recording(session))

    def _recording(self, session: str) -> tuple[Observer, ...]:
        traced = (self._telemetry.observer(session),) if self._telemetry else ()
        return (self._log, *traced, *self.recorders)

    def copy_queue(self, event: Event) -> None:
        """Have the readable copy of a session's queue written; loop's thread."""
        if self._mirror is None or event["type"] not in ("queue", "progress"):
            return
        session = event["session"]
        queue = self._runtime.queue_of(session)
        if queue is not None:
            self._mirror.put(session, queue, time.time())

    def finish(self) -> None:
        """Wait for the hooks that run, and send the traces, when all sessions are left."""
        self._hooks.drain()
        if self._telemetry is not None:
            self._telemetry.close()

    def close(self) -> None:
        """Write what is still to be written, after the runtime has ended."""
        self._log.close()
        if self._mirror is not None:
            self._mirror.close()
