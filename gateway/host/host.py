"""Puts a process together: configuration, store, runtime, event bus, and conversations on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack
from pathlib import Path

from ...actors.agent_profile import AgentProfile
from ...actors.runtime import REPLY_TIMEOUT, Runtime, new_session_id
from ...journal.memory import MemoryStore
from ...journal.record import SessionRecord
from ...journal.store import Lease, Store
from ...machines import protocol as m
from ...machines.errors import UnknownSession, UsageError
from ...machines.permission_mode import mode_named
from ...ports.instructions import CHANGED
from ...ports.models.choice import Choice
from ...ports.placement import Placement
from ...ports.process.process import Processes
from ...ports.tools.mcp_offer import McpServer
from ...ports.tools.sandbox import SandboxPolicy
from ...workflows.config import Config
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ..client import SessionClient
from ..control import ControlServer
from ..events.translation import EventPublisher
from ..home.home import open_store
from ..launch_options import LaunchOptions
from ..mail_reader import MailReader
from ..recall import recalled
from ..running import RunPlan
from ..session_info import working_beside
from ..views.saved_queues import goals_left, saved_event
from ..wording.acknowledgement import discarding
from ..wording.first_run import chosen_line, greeting, lacking
from ..wording.redaction import Redactor
from .fitted_profile import REFIT, refit
from .observers import SessionObservers
from .opener import PreparedSession, SessionOpener
from .router import EventBus
from .upkeep import Upkeep


def sandbox_policy(config: Config, paths: Paths, storage: Path) -> SandboxPolicy:
    """Return how commands and MCP servers are confined; `storage` is the folder of large outputs."""
    tools, hidden = config.tools, dict.fromkeys((paths.config, paths.state, storage))
    return SandboxPolicy(
        mode=tools.sandbox, network=tools.network, writable=tools.writable, hidden=tuple(hidden)
    )


class Host:
    """One process's sessions, models and event bus; `store` is that of a home elsewhere."""

    is_cut_off = False  # from the program that runs the sessions: it is this one
    says = "chat"  # the command that says one message

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
        self.notices: list[str] = []
        self.conversations: dict[str, SessionClient] = {}
        if store is None:
            store = open_store(paths) if self.is_kept else MemoryStore()
        tools = config.tools
        storage = storage_of(paths, environ)
        if storage.folder != paths.state:
            storage.make()
        sandbox = sandbox_policy(config, paths, storage.folder)

        def place_remotely(processes: Processes) -> Placement:
            """Return where remote steps run. Raises `UsageError`."""
            placement: Placement = EXTENSIONS.load("ray")(
                launch.cluster, config, environ, processes, self.complain
            )
            return placement

        self.runtime = Runtime(
            store,
            grace=tools.grace,
            output_limit=tools.output_limit,
            storage=storage,
            visible=tools.environment,
            sandbox=sandbox,
            fetch=tools.fetch_options,
            declared=config.tool,
            skills=paths.config / "skills",
            place=config.node.place,
            placing=place_remotely if launch.cluster else None,
        )
        self.observers = SessionObservers(self, environ)
        self.opener = SessionOpener(self, environ, sandbox)
        self.upkeep = Upkeep(self)
        self.endpoint = ControlServer(self, MailReader(self))

    @property
    def event_bus(self) -> EventBus:
        """What publishes the events of all sessions."""
        return self.observers.event_bus

    @property
    def store(self) -> Store:
        """The home's store."""
        return self.runtime.store

    @property
    def is_kept(self) -> bool:
        """Whether what happens here is on disk, and there at the next start."""
        return self.config.auto_queue.persistence.enabled

    is_elsewhere = False

    @property
    def remains(self) -> str:
        """What remains after leaving, as half a sentence."""
        return "everything is saved" if self.is_kept else "nothing is saved"

    @property
    def choice(self) -> Choice | None:
        """The model that was chosen last, and why; none before a session was opened."""
        return self.opener.profiles.choice

    def begin(
        self,
        folder: Path,
        plan: RunPlan | None = None,
        agent: str = "",
        servers: Sequence[McpServer] = (),
        session: str = "",
    ) -> SessionClient:
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
            session = session or new_session_id()
            conversation = self._expected(session, folder)
            self.runtime.open_new(folder, opened.profile, self.observers.of, session=session)
            undoing.pop_all()
        self.event_bus.wait_for(session)
        for notice in opened.notices:
            self.publisher(session).notice(notice)
        if opened.servers is not None:
            opened.servers.attend(session)
        if is_first and plan is None and self.is_kept:
            self._announce_saved(session, folder)
        return self._talk(conversation)

    def resume(
        self, session: str, servers: Sequence[McpServer] = (), *, hears_mail: bool = False
    ) -> SessionClient:
        """Take up a session; nothing in it runs until a command starts it. `servers` as for `begin`.

        Messages that wait in its mailbox are queued before that, or with `hears_mail` said after it.
        Raises `SteersmanError`, also for a session that is finalized.
        """
        if self.store.row(session).state == "finalized":
            reads = f"`steersman sessions show {session}` prints it"
            raise UsageError(f"session `{session}` is finalized", f"{reads}, {m.ANOTHER_CHAT}")
        self._welcome()
        if not hears_mail and self.store.unconsumed(session):
            self.take_in(session)
        opened: list[tuple[PreparedSession, SessionClient]] = []

        def profile_of(record: SessionRecord) -> AgentProfile:
            found = self.opener.existing(record, servers)
            opened.append((found, self._expected(session, Path(record.folder))))
            return found.profile

        record = self.runtime.open_existing(session, profile_of, self.observers.of)
        found, conversation = opened[-1]
        self.event_bus.wait_for(session)
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
        self._talk(conversation)
        asked = self.launch.model
        if asked and asked != record.wanted_model and record.run is None:
            conversation.ask(m.PolicyChange(model=asked))
        self._note_model(conversation, record, found.profile)
        return conversation

    def _note_model(
        self, conversation: SessionClient, record: SessionRecord, profile: AgentProfile
    ) -> None:
        """Put into the record which model answers from now on, and what fits it, if that is another."""
        label = profile.model.name if record.run is None and profile.model else ""
        if profile.is_refit:
            conversation.ask(refit(profile, label=label))
            conversation.publisher.notice(REFIT.format(label))
        elif label and label != record.model and not record.wanted_model:
            conversation.ask(m.PolicyChange(label=label))

    def _expected(self, session: str, folder: Path) -> SessionClient:
        """Return the conversation about a session that is being opened.

        It is there before anybody is told that the session has started, and asks for something.
        """
        conversation = SessionClient(self, session, folder)
        self.event_bus.expect(session, lambda: self.register(conversation))
        return conversation

    def register(self, conversation: SessionClient) -> None:
        """Have this conversation found by its session."""
        self.conversations[conversation.session] = conversation

    def _talk(self, conversation: SessionClient) -> SessionClient:
        self.register(conversation)
        if self.launch.mode:
            conversation.ask(m.PolicyChange(mode=mode_named(self.launch.mode)))
        if self.is_kept:
            self.upkeep.keep_within_budget()
            self.endpoint.mail.read(conversation.session)
        return conversation

    def abandon(self, reason: str, hint: str) -> list[Lease]:
        """Give all sessions up, since another process may own them, and return their leases."""
        leases = self.runtime.abandon(reason, hint)
        self.conversations.clear()
        self.endpoint.mail.forget()
        return leases

    def greet(self, session: str) -> None:
        """Tell a person what they are talking to: a screen the first time, then a line.

        What the model lacks follows, and the end of the conversation of a session that is resumed.
        """
        found = self.runtime.describe(session)
        model = self.choice.line if self.choice is not None else ""
        text = greeting(self.paths, found, model, self.opener.sandbox)
        chosen = list(filter(None, [chosen_line(self.runtime.inspect(session))]))
        self.notices[:0] = [
            text,
            *chosen,
            *lacking(self.choice, self.paths.cache, self.opener.environ),
        ]
        redactor = Redactor(self.opener.environ, self.config.key_variables)
        if last := recalled(self.store, session, redactor):
            self.notices.append(last)
        self.notices += working_beside(self.store, session)

    def tend(self, session: str) -> SessionClient:
        """Own a session's queue without taking the session up: nothing in it can run here."""
        record = self.runtime.open_existing(
            session,
            self.opener.profiles.idle,
            lambda name: (self.publisher(name),),
            is_offline=True,
        )
        conversation = SessionClient(self, session, Path(record.folder), record.wanted_model)
        self.register(conversation)
        return conversation

    def take_in(self, session: str) -> None:
        """Decide about the messages in the mailbox of a session that no process has open.

        They are queued, and nothing runs. Raises `UnknownSession`, or `StoreBusy` if it is open.
        """
        conversation = self.tend(session)
        try:
            wait(self.endpoint.mail.read(session), REPLY_TIMEOUT)
        finally:
            with self.endpoint.mail.ending(session):
                conversation.leave()
                self.conversations.pop(session, None)

    def conversation(self, session: str) -> SessionClient:
        """Return the conversation about a session that is open here. Raises `UnknownSession`."""
        found = self.open_conversation(session)
        if found is None:
            raise UnknownSession(f"session `{session}` is not open here", "try again")
        return found

    @property
    def open_sessions(self) -> list[str]:
        """The ids of the sessions about which there is a conversation here, in order."""
        return sorted(name for name in tuple(self.conversations) if self.open_conversation(name))

    def open_conversation(self, session: str) -> SessionClient | None:
        """Return the conversation about a session, unless it has left that, also for another one."""
        found = self.conversations.get(session)
        return found if found is not None and found.session == session and found.is_open else None

    def publisher(self, session: str) -> EventPublisher:
        """Give a session its voice on the event bus."""
        return self.observers.publisher(session)

    def close(self) -> None:
        """Leave all sessions, end all processes, close the store. Idempotent."""
        self.endpoint.close()
        self.runtime.leave_all()
        self.upkeep.close()
        self.observers.finish()
        for model in self.opener.profiles.dismiss():
            self.runtime.run(model.aclose())
        self.runtime.close()
        self.observers.close()

    def _welcome(self) -> None:
        """Before the first session: be reachable, throw away what was outlived, say what is there."""
        if self.upkeep.has_begun:
            return
        self.upkeep.has_begun = True
        if fault := self.opener.sandbox.notice():
            self.notices.append(fault)
        if not self.is_kept:
            self.notices.append(
                "auto_queue.persistence.enabled is false: session and queue are in memory only, "
                "and are lost when this program ends"
            )
            return
        self.endpoint.listen()
        self.notices += self.upkeep.begin()

    def _announce_saved(self, session: str, folder: Path) -> None:
        """Tell a new session what others left in its folder, to be resumed there."""
        here = self.upkeep.saved_queues.here(folder)
        for run, is_over in ((found.row, found.is_over) for found in here if found.row.workflow):
            if self.launch.is_one_shot:
                continue
            named = f"Run {run.session} of this folder (workflow {run.workflow})"
            if is_over:
                self.note(f"{named} has unread messages: {discarding(run.session, run.run)}")
                continue
            self.note(
                f"{named} was interrupted: "
                f"`steersman run --resume {run.session}` continues where it stopped"
            )
        saved = [found.view() for found in here if not found.row.workflow]
        if saved:
            publisher = self.publisher(session)
            publisher.publish(saved_event(saved, publisher.stamp()))
        if not self.launch.is_one_shot:
            for line in goals_left(self.store, str(folder)):
                self.publisher(session).notice(line)

    def note(self, text: str) -> None:
        """Keep a notice for the start of the session, once."""
        if text not in self.notices:
            self.notices.append(text)

    def complain(self, text: str) -> None:
        """Tell the listeners of every open session what goes wrong around them."""
        for session in tuple(self.conversations):
            self.publisher(session).notice(text)
