"""Puts a process together: configuration, store, runtime, event bus, and conversations on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ...actors.agent_profile import AgentProfile
from ...actors.environment import Observer
from ...actors.runtime import REPLY_TIMEOUT, Runtime
from ...journal.memory import MemoryStore
from ...journal.record import SessionRecord
from ...journal.store import Lease, Store
from ...machines import protocol as m
from ...machines.errors import ConfigError, UnknownSession
from ...machines.permission_mode import mode_named
from ...ports.hooks import HookSpec
from ...ports.instructions import CHANGED
from ...ports.models.choice import Choice
from ...ports.placement import Placement
from ...ports.process.leftover import orphaned_commands
from ...ports.process.process import Processes
from ...ports.templates import templates_in
from ...ports.tools.mcp_offer import McpServer
from ...ports.tools.sandbox import SandboxPolicy
from ...workflows.config import Config
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ..client import Services
from ..control import ControlServer
from ..conversation import Conversation
from ..events.contract import Event
from ..events.translation import EventPublisher
from ..home.home import open_store
from ..home.retention import StorageLimit, queues_folder
from ..home.trash import Trash
from ..launch_options import LaunchOptions
from ..mail_reader import MailReader
from ..outcome import Outcomes
from ..recall import recalled
from ..running import RunPlan
from ..trace_context import Telemetry
from ..views.saved_queues import SavedQueues
from ..wording.first_run import greeting, lacking
from ..wording.redaction import Redactor
from .hook_runner import HookObserver, HookRunner
from .offline_writer import Logbook, QueueMirror
from .opener import PreparedSession, SessionOpener
from .router import EventBus, Opening, Router


class Host:
    """One process's sessions, models and event bus.

    `store` is that of a home elsewhere. `outcomes` has what becomes of the messages of each session that
    is open here. `recorders` observe all sessions, also subagents'. `opening` opens a session for another
    program, where this one does that; it gets the parameters of `begin`. `evicting` gives a session back,
    in a node. `woken` is called when mail has come, also for sessions that no process owns.
    """

    def __init__(
        self,
        paths: Paths,
        config: Config,
        environ: Mapping[str, str],
        launch: LaunchOptions,
        store: Store | None = None,
    ) -> None:
        self.paths = paths
        self.config = config
        self.launch = launch
        self._environ = environ
        self.event_bus = EventBus()
        self._opening = Opening()
        self.event_bus.subscribe(self._opening.receive)
        if store is None:
            is_kept = config.auto_queue.persistence.enabled
            store = open_store(paths) if is_kept else MemoryStore()
        is_debug = launch.is_debug or bool(environ.get("STEERSMAN_DEBUG"))
        self.log = Logbook(paths, environ, config.key_variables, self._complain, is_debug=is_debug)
        self.event_bus.subscribe(self.log.receive)
        self.notices: list[str] = []
        self._control: ControlServer | None = None
        self._is_welcomed = False
        self._mirror: QueueMirror | None = None
        tools = config.tools
        storage = storage_of(paths, environ)
        if storage.folder != paths.state:
            storage.make()
        hidden = tuple(dict.fromkeys((paths.config, paths.state, storage.folder)))
        self._sandbox = SandboxPolicy(
            mode=tools.sandbox, network=tools.network, writable=tools.writable, hidden=hidden
        )
        self.conversations: dict[str, Conversation] = {}
        self.outcomes = WeakValueDictionary[str, Outcomes]()
        self.recorders: tuple[Observer, ...] = ()
        self.opening: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.evicting: Callable[[str], None] | None = None
        self.woken: Callable[[], None] = lambda: None
        self.runtime = Runtime(
            store,
            grace=config.tools.grace,
            output_limit=config.tools.output_limit,
            storage=storage,
            visible=config.tools.environment,
            sandbox=self._sandbox,
            declared=config.tool,
            skills=paths.config / "skills",
            place=config.node.place,
            placing=self._placement if launch.cluster else None,
        )
        specs = [HookSpec(on=hook.on, run=hook.run, timeout=hook.timeout) for hook in config.hooks]
        self._hooks = HookRunner(
            specs, self.runtime, paths.state, self._report, config.key_variables
        )
        self.runtime.child_setup.observers_of = self._child_observers
        self._telemetry: Telemetry | None = None
        if config.telemetry.endpoint:
            redactor = Redactor(environ, config.key_variables)
            self._telemetry = EXTENSIONS.load("opentelemetry")(
                config, environ, store, redactor, self._complain
            )
        queue = config.auto_queue
        self.trash = Trash(paths.state)

        def only_copied(session: str) -> EventPublisher:
            return EventPublisher(session, self._copy, time.time)

        self.saved_queues = SavedQueues(self.runtime, queue.max_queue_size, only_copied, self.trash)
        queues = queues_folder(paths, config)
        if queue.persistence.enabled:
            self._mirror = QueueMirror(queues, self._complain)
            self.event_bus.subscribe(self._copy)
        self._budget = StorageLimit(storage, store, self.trash, config, queues, self._complain)
        self._router = Router(config, queue.keywords)
        self.opener = SessionOpener(
            self.runtime,
            paths,
            config,
            environ,
            launch,
            router=self._router,
            sandbox=self._sandbox,
            note=self._note,
            notify=self._report,
            complain=self._complain,
        )
        self._mail = MailReader(self)

    @property
    def store(self) -> Store:
        """The home's store."""
        return self.runtime.store

    @property
    def is_kept(self) -> bool:
        """Whether what happens here is on disk, and there at the next start."""
        return self.config.auto_queue.persistence.enabled

    @property
    def remains(self) -> str:
        """What remains after leaving, as half a sentence."""
        return "everything is saved" if self.is_kept else "nothing is saved"

    @property
    def choice(self) -> Choice | None:
        """The model that was chosen last, and why; none before a session was opened."""
        return self.opener.profiles.choice

    def _placement(self, processes: Processes) -> Placement:
        """Return where remote steps run. Raises `UsageError`."""
        placement: Placement = EXTENSIONS.load("ray")(
            self.launch.cluster, self.config, self._environ, processes, self._complain
        )
        return placement

    def begin(
        self,
        folder: Path,
        plan: RunPlan | None = None,
        agent: str = "",
        servers: Sequence[McpServer] = (),
        session: str = "",
    ) -> Conversation:
        """Begin a new session of an agent in a folder; with a `plan` it is a workflow's run.

        `servers` are MCP servers that the session has beside the configured ones. `session` is its id; if
        left out, one is made.
        """
        is_first = not self.conversations
        self._welcome()
        opened = self.opener.new(folder, plan, agent, servers)
        with ExitStack() as undoing:
            if opened.servers is not None:
                undoing.callback(opened.servers.close)
            session = self.runtime.open_new(
                folder, opened.profile, self._observers, session=session
            )
            undoing.pop_all()
        self._opening.wait(session)
        for notice in opened.notices:
            self.publisher(session).notice(notice)
        if opened.servers is not None:
            opened.servers.attend(session)
        if is_first and plan is None and self.is_kept:
            self._announce_saved(session, folder)
        return self._talk(session, folder)

    def resume(
        self, session: str, servers: Sequence[McpServer] = (), *, hears_mail: bool = False
    ) -> Conversation:
        """Take up a session; nothing in it runs until a command starts it. `servers` as for `begin`.

        Messages that wait in its mailbox are queued before that, or with `hears_mail` said after it.
        """
        self._welcome()
        if not hears_mail and self.store.unconsumed(session):
            self.take_in(session)
        opened: list[PreparedSession] = []

        def profile_of(record: SessionRecord) -> AgentProfile:
            opened.append(self.opener.existing(record, servers))
            return opened[-1].profile

        record = self.runtime.open_existing(session, profile_of, self._observers)
        self._opening.wait(session)
        for found in opened:
            if found.servers is not None:
                found.servers.attend(session)
            for notice in found.notices:
                self.publisher(session).notice(notice)
        if self.opener.is_outdated(record):
            self.publisher(session).notice(CHANGED)
        if record.imported_from:
            self.publisher(session).notice(
                f"This session was imported from {record.imported_from}. What was allowed, granted "
                "or chosen there does not hold here; you are asked again."
            )
        conversation = self._talk(session, Path(record.folder))
        asked = self.launch.model
        if asked and asked != record.chosen_model and record.run is None:
            conversation.ask(m.PolicyChange(model=asked))
        return conversation

    def _talk(self, session: str, folder: Path) -> Conversation:
        conversation = self._conversation(session, folder)
        if self.launch.mode:
            conversation.ask(m.PolicyChange(mode=mode_named(self.launch.mode)))
        if self.is_kept:
            self._budget.keep()
            self._mail.read(session)
        return conversation

    def is_followed(self, session: str) -> bool:
        """Whether another program follows a session of this one."""
        return self._control is not None and self._control.is_followed(session)

    def abandon(self, reason: str, hint: str) -> list[Lease]:
        """Give all sessions up, since another process may own them, and return their leases."""
        leases = self.runtime.abandon(reason, hint)
        self.conversations.clear()
        self._mail.forget()
        return leases

    def greet(self, session: str) -> None:
        """Tell a person what they are talking to: a screen the first time, then a line.

        What the model lacks follows, and the end of the conversation of a session that is resumed.
        """
        found = self.runtime.describe(session)
        model = self.choice.line if self.choice is not None else ""
        text = greeting(self.paths, found, model, self._sandbox)
        self.notices[:0] = [text, *lacking(self.choice, self.paths.cache, self._environ)]
        redactor = Redactor(self._environ, self.config.key_variables)
        if last := recalled(self.store, session, redactor):
            self.notices.append(last)

    def tend(self, session: str) -> Conversation:
        """Own a session's queue without taking the session up: nothing in it can run here."""
        record = self.runtime.open_existing(
            session,
            self.opener.profiles.idle,
            lambda name: (self.publisher(name),),
            is_offline=True,
        )
        return self._conversation(session, Path(record.folder))

    def take_in(self, session: str) -> None:
        """Decide about the messages in the mailbox of a session that no process has open.

        They are queued, and nothing runs. Raises `UnknownSession`, or `StoreBusy` if it is open.
        """
        conversation = self.tend(session)
        try:
            wait(self._mail.read(session), REPLY_TIMEOUT)
        finally:
            with self._mail.ending(session):
                conversation.leave()
                self.conversations.pop(session, None)

    def conversation(self, session: str) -> Conversation:
        """Return the conversation about a session that is open here. Raises `UnknownSession`."""
        found = self.open_conversation(session)
        if found is None:
            raise UnknownSession(f"session `{session}` is not open here", "try again")
        return found

    @property
    def open_sessions(self) -> list[str]:
        """The ids of the sessions about which there is a conversation here, in order."""
        return sorted(name for name in tuple(self.conversations) if self.open_conversation(name))

    def open_conversation(self, session: str) -> Conversation | None:
        """Return the conversation about a session, unless it has left that, also for another one."""
        found = self.conversations.get(session)
        return found if found is not None and found.session == session and found.is_open else None

    def publisher(self, session: str, parent: str = "") -> EventPublisher:
        """Give a session its voice on the event bus; `parent` is whose child it is."""
        return EventPublisher(session, self.event_bus.publish, time.time, parent)

    def _observers(self, session: str) -> tuple[Observer, ...]:
        outcomes = self.outcomes[session] = Outcomes(session, lambda: self.store)
        return (
            outcomes,  # first: a subscriber to an event may ask about it
            self.publisher(session),
            HookObserver(session, self._hooks),
            *self._recorders(session),
        )

    def _child_observers(self, session: str, parent: str) -> tuple[Observer, ...]:
        hooks = HookObserver(session, self._hooks, is_child=True)
        return (self.publisher(session, parent), hooks, *self._recorders(session))

    def _recorders(self, session: str) -> tuple[Observer, ...]:
        traced = (self._telemetry.observer(session),) if self._telemetry else ()
        return (self.log, *traced, *self.recorders)

    def close(self) -> None:
        """Leave all sessions, end all processes, close the store. Idempotent."""
        if self._control is not None:
            control, self._control = self._control, None
            self.runtime.run(control.aclose())
        self._mail.close()
        self.runtime.leave_all()
        self._budget.close()
        self._hooks.drain()
        for model in self.opener.profiles.dismiss():
            self.runtime.run(model.aclose())
        if self._telemetry is not None:
            self._telemetry.close()
        self.runtime.close()
        self.log.close()
        if self._mirror is not None:
            self._mirror.close()

    def _welcome(self) -> None:
        """Before the first session: be reachable, throw away what was outlived, say what is there."""
        if self._is_welcomed:
            return
        self._is_welcomed = True
        if fault := self._sandbox.notice():
            self.notices.append(fault)
        persistence = self.config.auto_queue.persistence
        if not persistence.enabled:
            self.notices.append(
                "auto_queue.persistence.enabled is false: session and queue are in memory only, "
                "and are lost when this program ends"
            )
            return
        self.listen()
        now = time.time()
        self.notices += self.saved_queues.expire(now, persistence.retention_hours)
        self.notices += orphaned_commands()
        if (self.paths.state / "agents").is_dir():  # an external agent has reported
            from ..views.restore_service import outlived_elsewhere

            self.notices += outlived_elsewhere(self.paths, self.config.restore.retention_hours)
        with suppress(OSError, ConfigError):  # a full disk only makes the home look younger
            self.trash.note_start(now)

    def _announce_saved(self, session: str, folder: Path) -> None:
        """Tell a new session what others left in its folder, to be resumed there."""
        here = self.saved_queues.here(folder)
        for run in (found.row for found in here if found.row.workflow):
            if not self.launch.is_one_shot:
                self._note(
                    f"Run {run.session} of this folder (workflow {run.workflow}) was interrupted: "
                    f"`steersman run --resume {run.session}` continues where it stopped"
                )
        saved = [found.view() for found in here if not found.row.workflow]
        if saved:
            self.publisher(session).saved_queues(saved)

    def listen(self) -> None:
        """Open the control socket; a failure becomes a notice, and the session works without it."""
        if self._control is not None:
            return
        control = ControlServer(self)
        try:
            self.runtime.run(control.start())
        except OSError as error:
            self.notices.append(f"other terminals cannot reach this session: {error}")
        self._control = control
        self._mail.start()

    def _copy(self, event: Event) -> None:
        """Have the queue's readable copy written; loop's thread."""
        if self._mirror is None or event["type"] not in ("queue", "progress"):
            return
        session = event["session"]
        queue = self.runtime.queue_of(session)
        if queue is not None:
            self._mirror.put(session, queue, time.time())

    def _note(self, text: str) -> None:
        """Keep a notice for the start of the session, once."""
        if text not in self.notices:
            self.notices.append(text)

    def _complain(self, text: str) -> None:
        """Tell the listeners of every open session what goes wrong around them."""
        for session in tuple(self.conversations):
            self.publisher(session).notice(text)

    def _report(self, session: str, text: str) -> None:
        """Tell the listeners of a session what goes wrong beside it."""
        self.publisher(session).notice(text)

    def _conversation(self, session: str, folder: Path) -> Conversation:
        services = Services(
            config=self.config,
            words=self._router.words,
            router=self._router,
            saved_queues=self.saved_queues,
            room=self.opener.attachable,
            narrator_of=self.publisher,
            profile_with=self.opener.profiles.fitted,
            begin_another=lambda: self.begin(folder).session,
            templates=lambda: templates_in(self.opener.markdown(folder)),
            takes_pictures=lambda: self.opener.takes_pictures(self.store.load(session).row.agent),
            take_up=lambda other: self.resume(other).session,
        )
        conversation = Conversation(self.runtime, session, services)
        self.conversations[session] = conversation
        return conversation
