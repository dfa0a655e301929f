"""Puts a process together: configuration, store, runtime, event bus, and conversations on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...actors.environment import Observer
from ...actors.leaving import abandon
from ...actors.runtime import REPLY_TIMEOUT, Runtime
from ...journal.memory import MemoryStore
from ...journal.record import SessionRecord
from ...journal.store import Lease, Store
from ...machines import protocol as m
from ...machines.errors import ConfigError, PlugInError, UnknownSession
from ...machines.permission_mode import mode_named
from ...ports.hooks import HookSpec
from ...ports.instructions import CHANGED
from ...ports.models.choice import Choice
from ...ports.models.provider import takes_pictures
from ...ports.placement import Placement
from ...ports.process.leftover import orphaned_commands
from ...ports.process.process import Processes
from ...ports.templates import folders_of, skills_in, skills_text, templates_in
from ...ports.tools.mcp_offer import McpServer
from ...ports.tools.sandbox import SandboxPolicy
from ...ports.tools.tool import Tool
from ...workflows.config import Config
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workflows.providers import is_small
from ...workflows.tools import TOOLS
from ...workflows.trust import is_trusted
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
from ..recall import recalled
from ..running import RunPlan
from ..views.saved_queues import SavedQueues
from ..wording.first_run import greeting, lacking
from ..wording.redaction import Redactor
from .hook_runner import HookObserver, HookRunner
from .offline_writer import Logbook, QueueMirror
from .profile_factory import (
    Opening,
    OwnAgent,
    ProfileFactory,
    attachable,
    instructions_for,
    is_outdated,
)
from .router import EventBus, Router
from .session_servers import ServerFactory, SessionServers

if TYPE_CHECKING:
    from ..library import Agent
    from ..telemetry.feed import Telemetry


class Host:
    """One process's sessions, models and event bus.

    `store` is that of a home elsewhere. `watching` returns what else observes a session that is opened
    from now on; `recorders` observe subagents, too. `opening` opens a session for another program, where
    this one does that; it gets the parameters of `begin`. `evicting` gives a session back, in a node.
    `woken` is called when mail has come, also for sessions that no process owns.
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
        self.watching: Callable[[str], tuple[Observer, ...]] = lambda session: ()
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
            from ..telemetry.feed import Telemetry

            self._telemetry = Telemetry(
                config, environ, store, Redactor(environ, config.key_variables), self._complain
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
        self._profiles = ProfileFactory(
            paths=paths,
            config=config,
            environ=environ,
            launch=launch,
            router=self._router,
            toolbox=self.runtime.shared.toolbox,
            note=self._note,
        )
        self._mail = MailReader(self)
        self._servers = ServerFactory(self.runtime, config, environ, self._sandbox, self._report)
        self.runtime.child_setup.profile_of = self._child_profile
        self.runtime.child_setup.workflow_of = self._profiles.included

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
        return self._profiles.choice

    def _placement(self, processes: Processes) -> Placement:
        """Return where remote steps run. Raises `UsageError`."""
        from ...ports.ray.placement import RayOptions, RayPlacement, address_of

        options = RayOptions(
            address=address_of(self.launch.cluster),
            patience=self.config.ray.patience,
            fence=self.config.ray.fence,
            visible=self.config.tools.environment,
            environ=self._environ,
        )
        return RayPlacement(processes, options, self._complain)

    def introduce(self, name: str, agent: OwnAgent) -> None:
        """Let a name mean an agent that this program brings, from now on."""
        self._profiles.introduce(name, agent)

    def own_agent(self, agent: Agent, loop: asyncio.AbstractEventLoop | None) -> OwnAgent:
        """Return an agent as profiles are made of it; see `own_agent`. Raises `UsageError`."""
        from ..own_agent import own_agent

        return own_agent(agent, self.runtime.shared.toolbox, self.config, loop)

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
        if plan is not None:
            profile = self._profiles.run(plan)
        else:
            name = agent or self.launch.agent or self.config.default_agent
            profile = self._profiles.profile(name)
        profile, broken = self._with_plug_ins(profile)
        is_patient = plan is not None or self.launch.is_one_shot
        profile, running = self._servers.equip(profile, folder, servers, is_patient=is_patient)
        found = instructions_for(self.choice, folder, profile.tools, self.paths.config)
        profile = replace(
            profile, system=profile.system + self._skills(profile, folder) + found.text
        )
        with ExitStack() as undoing:
            if running is not None:
                undoing.callback(running.close)
            session = self.runtime.open_new(folder, profile, self._observers, session=session)
            undoing.pop_all()
        self._opening.wait(session)
        for told in (found.told(), *broken):
            if told:
                self.publisher(session).notice(told)
        if running is not None:
            running.attend(session)
        if is_first and plan is None and self.is_kept:
            self._announce_saved(session, folder)
        return self._talk(session, folder)

    def _markdown(self, folder: Path) -> list[Path]:
        """Return the folders that have the templates and skills of a session in `folder`."""
        return folders_of(self.paths.config, folder, is_trusted=is_trusted(self.paths, folder))

    def _skills(self, profile: AgentProfile, folder: Path) -> str:
        """Return the part of the system prompt about skills; empty for a model that cannot use them."""
        is_able = "read" in profile.tools and m.AGENT_TOOL not in profile.tools
        if not is_able or (self.choice and is_small(self.choice.config.provider)):
            return ""
        return skills_text(skills_in(self._markdown(folder)), folder)

    def resume(
        self, session: str, servers: Sequence[McpServer] = (), *, hears_mail: bool = False
    ) -> Conversation:
        """Take up a session; nothing in it runs until a command starts it. `servers` as for `begin`.

        Messages that wait in its mailbox are queued before that, or with `hears_mail` said after it.
        """
        self._welcome()
        if not hears_mail and self.store.unconsumed(session):
            self.take_in(session)
        running: list[SessionServers] = []
        broken: list[str] = []

        def profile_of(record: SessionRecord) -> AgentProfile:
            profile, faults = self._with_plug_ins(self._profiles.of_record(record))
            broken.extend(faults)
            is_patient = self.launch.is_one_shot or record.run is not None
            place = Path(record.folder)
            profile, found = self._servers.equip(profile, place, servers, is_patient=is_patient)
            running.extend([found] if found is not None else [])
            return profile

        record = self.runtime.open_existing(session, profile_of, self._observers)
        self._opening.wait(session)
        for found in running:
            found.attend(session)
        for fault in broken:
            self.publisher(session).notice(fault)
        if is_outdated(record, self.paths.config):
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

    def _child_profile(self, agent: str, parent: SessionRecord) -> AgentProfile:
        """Return the profile of a subagent, with servers of its own; the parent has said what fails."""
        profile, broken = self._with_plug_ins(self._profiles.child(agent, parent))
        for fault in broken:
            self._complain(fault)
        return self._servers.equip(profile, Path(parent.folder), is_patient=True)[0]

    def _with_plug_ins(self, profile: AgentProfile) -> tuple[AgentProfile, list[str]]:
        """Import the tools of an agent that are plug-ins; return those that cannot be used, too."""
        toolbox = self.runtime.shared.toolbox
        there = (*toolbox.names, m.AGENT_TOOL, *(tool.schema.name for tool in profile.own_tools))
        tools: list[Tool] = []
        faults: dict[str, str] = {}
        for name in profile.tools:
            if name not in there and name in TOOLS:
                from ...ports.tools.function import bound

                try:
                    tools.append(bound(TOOLS.load(name), None, toolbox.resources))
                except PlugInError as error:
                    faults[name] = f"{error.message}; {error.hint}"
        usable = replace(
            profile,
            tools=tuple(name for name in profile.tools if name not in faults),
            own_tools=(*profile.own_tools, *tools),
        )
        return usable, list(faults.values())

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
        leases = abandon(self.runtime, reason, hint)
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
            session, self._profiles.idle, lambda name: (self.publisher(name),), is_offline=True
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
        return (
            *self.watching(session),  # first: a subscriber to an event may ask them about it
            self.publisher(session),
            HookObserver(session, self._hooks),
            *self._recorders(session),
        )

    def _child_observers(self, session: str, parent: str) -> tuple[Observer, ...]:
        hooks = HookObserver(session, self._hooks, is_child=True)
        return (self.publisher(session, parent), hooks, *self._recorders(session))

    def _recorders(self, session: str) -> tuple[Observer, ...]:
        log = self.log.observer(session)
        traced = (self._telemetry.observer(session),) if self._telemetry else ()
        return (log, *traced, *self.recorders)

    def close(self) -> None:
        """Leave all sessions, end all processes, close the store. Idempotent."""
        if self._control is not None:
            control, self._control = self._control, None
            self.runtime.run(control.aclose())
        self._mail.close()
        self.runtime.leave_all()
        self._budget.close()
        self._hooks.drain()
        for model in self._profiles.dismiss():
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

    def _takes_pictures(self, session: str) -> bool:
        """Whether a session's model is known to take pictures; one of a program's own says so."""
        own = self._profiles.own_model(self.store.load(session).row.agent)
        if own is not None:
            return bool(getattr(own, "takes_pictures", False))
        return self.choice is not None and takes_pictures(self.choice.config)

    def _conversation(self, session: str, folder: Path) -> Conversation:
        services = Services(
            config=self.config,
            words=self._router.words,
            router=self._router,
            saved_queues=self.saved_queues,
            room=attachable(self.choice, self.config.tools.attachment_limit),
            narrator_of=self.publisher,
            profile_with=self._profiles.fitted,
            begin_another=lambda: self.begin(folder).session,
            templates=lambda: templates_in(self._markdown(folder)),
            takes_pictures=lambda: self._takes_pictures(session),
            take_up=lambda other: self.resume(other).session,
        )
        conversation = Conversation(self.runtime, session, services)
        self.conversations[session] = conversation
        return conversation
