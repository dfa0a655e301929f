"""The client of a session: what a program on this machine may say to it and ask of it.

Terminal, scripts, control socket, HTTP, editors and commands all use this. Everything here is a message
to the session, or reads what is durable: no code outside `actors/` touches what a live session holds.
Calls come from a client's own thread, never from the runtime's loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..actors.agent_profile import AgentProfile
from ..actors.inspection import SessionDescription
from ..actors.runtime import REPLY_TIMEOUT, Runtime
from ..actors.work.executor import restore_files
from ..journal.codec import decode
from ..journal.queue_record import ItemRecord
from ..journal.record import SessionRecord
from ..journal.recovery import newest_first, whole_conversation
from ..journal.store import Store
from ..machines import protocol as m
from ..machines.classification import Classification, Keywords, classify
from ..machines.conversation import Attachment, ChatMessage, Picture
from ..machines.disposition import Intent
from ..machines.errors import (
    AdmissionRefused,
    SteersmanError,
    StoreError,
    ToolError,
    UnknownSession,
    UsageError,
)
from ..machines.people import FromPerson
from ..machines.routes import Routes
from ..machines.value import Value
from ..ports.attachment import Ask, attach, no_other, with_pictures
from ..ports.models.choice import Choice
from ..ports.templates import Template
from ..ports.tools.permission import PermissionDecision
from ..workflows.config import Config
from ..workspace.workspace import FileChange
from .events.translation import EventPublisher, queue_view
from .host.router import Router
from .own_commands import OwnCommands
from .views.dump import Traces, dump_live
from .views.saved_queues import SavedQueues
from .wording.redaction import Redactor

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpOffer, McpServers, McpStatus
    from ..ports.tools.mcp_text import ServerTexts

READING = 10.0
"""Seconds that an MCP server has for what a message names of it: messages after that one wait."""


class Speaker(Value):
    """Who speaks: `may` are their rights, none for a person who may do everything."""

    user: str
    may: tuple[str, ...] | None = None


_ANYBODY = Speaker(user="")
_SPEAKER = ContextVar("speaker", default=_ANYBODY)
TYPES = {
    Intent.STEER_WORD: "steer",
    Intent.EXPLICIT_STEER: "steer",
    Intent.INTERRUPT_BARE: "interrupt",
    Intent.INTERRUPT_MORE: "interrupt",
    Intent.EXPLICIT_INTERRUPT: "interrupt",
    Intent.REVERT: "interrupt",
}


class Services(Value):
    """What a session's client has from its program.

    `room` is how many bytes a message may attach. `profile_with` returns what a session's agent is with
    another model. `begin_another` begins a session in the same folder and returns its id; `take_up`
    takes up the one that is named, and is none where the client stays with its session. `templates`
    reads the prompt templates by name. `takes_pictures` says whether the model chosen last does.
    """

    config: Config
    words: Keywords
    router: Router
    saved_queues: SavedQueues
    room: int
    narrator_of: Callable[[str], EventPublisher]
    profile_with: Callable[[SessionRecord, str], tuple[AgentProfile, Choice | None]]
    begin_another: Callable[[], str]
    templates: Callable[[], Mapping[str, Template]]
    takes_pictures: Callable[[], bool]
    take_up: Callable[[str], str] | None


class SessionClient:
    """One session of this process, by messages; `user` is who speaks."""

    def __init__(self, runtime: Runtime, session: str, services: Services, user: str = "") -> None:
        self.session = session
        self.services = services
        self.user = user
        self._runtime = runtime
        self._looking = threading.Lock()
        self._traces: Traces = {}

    @property
    def speaker(self) -> str:
        """Who speaks now: the sender of the command that is carried out, or whose client this is."""
        return _SPEAKER.get().user or self.user

    @property
    def rights(self) -> tuple[str, ...] | None:
        """The rights of who speaks now; none for a person who may do everything."""
        return _SPEAKER.get().may

    def _signed(self, message: m.Message) -> m.Message:
        """Add the rights of who speaks to a message, if they may not do everything."""
        speaker = _SPEAKER.get()
        if speaker.may is None:
            return message
        return FromPerson(message=message, user=speaker.user, may=speaker.may)

    @contextmanager
    def spoken_by(self, user: str, may: tuple[str, ...] | None = None) -> Generator[None]:
        """Let what is done within be the word of this user; empty: of who speaks already.

        `may` are the user's rights; none: those that hold already, at first everything.
        """
        before = _SPEAKER.get()
        token = _SPEAKER.set(
            Speaker(user=user or before.user, may=before.may if may is None else may)
        )
        try:
            yield
        finally:
            _SPEAKER.reset(token)

    # Messages to the session ----------------------------------------------------------------------

    def send_message(
        self,
        text: str,
        explicit: str = "auto",
        client_id: str = "",
        user: str = "",
        to: str = "",
        prompt: Attachment | None = None,
        found: Classification | None = None,
        pictures: Sequence[Picture] = (),
    ) -> None:
        """Send a message of a person; `to` addresses a steer. Events tell what becomes of it.

        `prompt` is what `self.prompt` read of the text, `found` what it was classified as, if it was;
        `pictures` come with it.
        """
        found = found or classify(text, self.services.words, explicit)
        kind: Any = TYPES.get(found.intent, "normal")
        message = m.UserMessage(
            type=kind,
            said=m.Said(
                text=text,
                user=user or self.speaker,
                client_id=client_id,
                attached=(*filter(None, (prompt,)), *self.attached(text, pictures)),
            ),
            intent=found.intent,
            matched=found.matched,
            then=text if found.says_more else "",
            utterance=self._runtime.next_utterance(),
            to=to,
            revert=found.revert,
        )
        self.post(message, text, client_id)

    def side_talk(self, text: str, client_id: str = "", user: str = "") -> None:
        """Ask something beside the work. Events tell what becomes of it."""
        said = m.Said(text=text, user=user or self.speaker, client_id=client_id)
        self.post(m.SideTalk(said=said), text, client_id)

    def post(self, message: m.Message, text: str, client_id: str = "") -> None:
        """Send what carries a person's `text`; a refusal is an event with that text.

        A session whose journal could not be written goes on with it, once there is room again.
        """
        try:
            self._runtime.recover(self.session)
            self._runtime.tell(self.session, self._signed(message))
        except AdmissionRefused as refusal:
            self.reject("mailbox_full", text, client_id, refusal.hint)
        except UnknownSession:  # another process ended it
            self.reject("session_finalized", text, client_id, m.ANOTHER_CHAT)
        except StoreError as fault:
            self.reject("store_failed", text, client_id, fault.hint)

    def reject(self, reason: str, text: str, client_id: str, hint: str = "") -> None:
        """Give a text back to its sender."""
        self.publisher.rejected(reason, text, client_id, hint)

    def ask(self, message: m.Message, timeout: float = REPLY_TIMEOUT) -> dict[str, Any]:
        """Send a message and return the session's reply; `timeout` in seconds. Raises `StoreError`."""
        self._runtime.recover(self.session)
        reply: dict[str, Any] | None = self._runtime.ask(
            self.session, self._signed(message), timeout
        )
        return reply or {"ok": True}

    def begin_edit(self, number: int, editor: str) -> None:
        """Keep a waiting message from starting while a person edits it in the client `editor`."""
        self._tell_edit(m.QueueChange(op="begin_edit", number=number, editor=editor))

    def end_edit(self, editor: str) -> None:
        """Let the messages go that were edited in a client, where its person left that or it is gone."""
        self._tell_edit(m.QueueChange(op="end_edit", editor=editor))

    def _tell_edit(self, change: m.QueueChange) -> None:
        with suppress(AdmissionRefused, UnknownSession):  # a message that is sent says why
            self._runtime.tell(self.session, self._signed(change))

    def interrupt(self, turn: str = "") -> dict[str, Any]:
        """Stop the running turn, or only the one that is named, and all that it started."""
        return self.ask(m.Interrupt(order=self._stop(), turn=turn))

    def begin_interrupt(self) -> None:
        """Do that without waiting for the reply; safe in a signal's handler."""
        self._runtime.tell(self.session, m.Interrupt(order=self._stop()))

    def _stop(self) -> m.StopOrder:
        return m.StopOrder(cause="stop", utterance=self._runtime.next_utterance())

    def answer(self, question: str, choice: str, reason: str = "") -> bool:
        """Answer a question: `choice` is allow, always or deny. False when it is not open."""
        return bool(self.ask(m.Answer(question=question, choice=choice, reason=reason)).get("ok"))

    def attached(self, text: str, pictures: Sequence[Picture] = ()) -> tuple[Attachment, ...]:
        """Return what comes with a text: what it names, and pictures."""
        found = self._named(text)
        if not pictures:
            return found
        return with_pictures(found, pictures, takes_pictures=self.services.takes_pictures())

    def _named(self, text: str) -> tuple[Attachment, ...]:
        """Read what a text names by `@path` or `@server:uri`, as the permissions of the session allow."""
        if "@" not in text:
            return ()
        try:
            found = self.describe()
        except UnknownSession:
            return ()  # the text is given back, and nothing is read for it
        texts = self._server_texts(found)
        read_other = texts.resource if texts is not None else no_other
        largest = self.services.config.tools.attachment_limit
        return attach(
            text,
            found.folder,
            _asking(found),
            self.services.room,
            read_other,
            largest,
            takes_pictures=self.services.takes_pictures(),
        )

    def prompt(self, text: str) -> Attachment | None:
        """Read the prompt of an MCP server that a text begins with: `/server:prompt`; else none."""
        if not text.startswith("/") or self.servers is None:
            return None
        texts = self._server_texts(self.describe())
        room = min(self.services.room, self.services.config.tools.attachment_limit)
        return texts.prompt(text, room) if texts is not None else None

    def _server_texts(self, found: SessionDescription) -> ServerTexts | None:
        """Return what reads from the session's MCP servers; none if it has none."""
        servers = self.servers
        if servers is None:
            return None
        from ..ports.tools.mcp_text import ServerTexts  # most sessions have none

        def run(work: Coroutine[None, None, str]) -> str:
            return self._runtime.run(asyncio.wait_for(work, READING), timeout=None)

        return ServerTexts(servers, run, _asking(found))

    # Questions about the session ------------------------------------------------------------------

    def describe(self) -> SessionDescription:
        """Return what the session goes by, and what was said in it."""
        return self._runtime.describe(self.session)

    def record(self) -> SessionRecord:
        """Return the state after all that was said: through the session, through its queue."""
        self._runtime.inspect(self.session, is_last=True)
        return decode(SessionRecord, self._runtime.inspect(self.session, is_last=True))

    def newest_messages(self) -> Iterator[ChatMessage]:
        """Read the conversation backwards from the journal, as far as is wanted."""
        self.settle()
        return newest_first(self.store, self.session)

    def messages(self, upto: int | None = None) -> list[ChatMessage]:
        """Return the conversation from the journal, up to an entry, also what was compacted."""
        self.settle()
        return list(whole_conversation(self.store, self.session, upto))

    def state(self, session: str = "") -> dict[str, Any]:
        """Return the record as it is now, also of a subagent that is open here, as plain data."""
        return self._runtime.inspect(session or self.session)

    def queue(self, *, is_all: bool = False) -> dict[str, Any]:
        """Return the queue as `{session, state, items}`; `is_all`: with what was replaced."""
        record = decode(SessionRecord, self._runtime.inspect(self.session, is_last=True))
        return {"session": self.session, **queue_view(record.queue, is_all=is_all)}

    def item_of(self, client_id: str) -> ItemRecord | None:
        """Return what a message with this key became; none if it was refused."""
        self._runtime.ask(self.session, m.Inspect(is_last=True, is_of_queue=True))
        queue = self.record().queue
        return queue.items.get(queue.clients.get(client_id, ""))

    def inspect(self) -> dict[str, Any]:
        """Return the session's state as plain data, without secrets or terminal escapes."""
        with self._looking:
            return self.redacted(dump_live(self._runtime, self.session, self._traces))

    def redacted(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take secrets and terminal escapes out of data."""
        shown: dict[str, Any] = self.redactor.data(data)
        return shown

    @cached_property
    def redactor(self) -> Redactor:
        """What takes secrets out of texts and data, with the keys of the configured models."""
        return Redactor(os.environ, self.services.config.key_variables)

    def classify(self, text: str, explicit: str = "auto") -> Classification:
        """Classify a text without sending it."""
        return classify(text, self.services.words, explicit)

    @cached_property
    def own_commands(self) -> OwnCommands:
        """The shell commands of the person, which no model sees."""
        grace = self.services.config.tools.grace
        return OwnCommands(self._runtime, lambda: self.publisher, grace)

    def is_quiet(self) -> bool:
        """Whether nothing runs and no queued item will start automatically."""
        if self.__dict__.get("own_commands") and self.own_commands.running:
            return False
        if not self.is_open:
            return True
        record = self.record()
        return record.is_quiet or self._runtime.is_broken(self.session)

    def publish_all(self) -> None:
        """Block until every event of what the session decided so far has been published."""
        with suppress(UnknownSession):  # another thread has left it
            self._runtime.publish_all(self.session)

    @property
    def is_open(self) -> bool:
        """Whether the session still lives here: another terminal may have finalized it."""
        return self._runtime.is_open(self.session)

    def can_ask(self) -> bool:
        """Whether a person can answer questions."""
        return self.is_open and self.describe().policy.can_ask

    @property
    def servers(self) -> McpServers | None:
        """The session's MCP servers, whose methods run on the runtime's loop; none if it has none."""
        return self._runtime.servers(self.session)

    @property
    def offers(self) -> Mapping[str, McpOffer]:
        """What the session's MCP servers offer, by their names; for any thread."""
        servers = self.servers
        if servers is None:
            return {}
        return {name: servers.status(name).offer for name in servers.names}

    def restart_server(self, name: str) -> McpStatus:
        """End an MCP server of the session and start it again. Raises `ToolError`."""
        servers = self.servers
        if servers is None:
            raise ToolError(f"there is no MCP server `{name}`", "this session has none")
        return self._runtime.run(servers.restart(name), timeout=None)

    # The files that the session changed -----------------------------------------------------------

    @property
    def keeps_files(self) -> bool:
        """Whether anything is kept of the files that the session changes."""
        return self._runtime.workspace(self.session) is not None

    def diff(self, turns: tuple[str, ...] = ()) -> list[FileChange]:
        """Return what turns changed; without any, the newest that changed something."""
        workspace = self._runtime.workspace(self.session)
        return self._runtime.run(workspace.diff(turns)) if workspace is not None else []

    def changed_files(self, turns: tuple[str, ...]) -> list[str]:
        """Name the files that turns changed, and that are not as they were before."""
        workspace = self._runtime.workspace(self.session)
        return self._runtime.run(workspace.changed_files(turns)) if workspace is not None else []

    def changes(self) -> list[str]:
        """Name the files that a run has changed in all its turns, except its own in `.steersman`."""
        try:
            made = self.record().turns_made
            found = self.changed_files(tuple(f"t{number}" for number in range(1, made + 1)))
        except (OSError, SteersmanError):
            return []  # the revert reports what cannot be read
        return [path for path in found if not _is_own(path, self.session)]

    def restore_files(
        self,
        order: m.RestoreFiles,
        hear: Callable[[m.RestoreCounted | m.RestoreEnded], None],
        seconds: float,
    ) -> None:
        """Restore files without the session's journal; `hear` is called with what comes of it."""
        workspace = self._runtime.workspace(self.session)
        self._runtime.run(restore_files(workspace, order, hear), seconds)

    @property
    def storage(self) -> str:
        """The name of the storage that has the copies of files of this program's turns."""
        return self._runtime.shared.storage.name

    # What the program around it does --------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The home's store."""
        return self._runtime.store

    def settle(self) -> None:
        """Block until everything decided so far is durable."""
        self._runtime.settle()

    @property
    def publisher(self) -> EventPublisher:
        """What publishes events of this session that no actor knows of."""
        return self.services.narrator_of(self.session)

    def stop_asking(self) -> None:
        """Stop asking: from now on, every call that needs a question is denied."""
        self._runtime.stop_asking(self.session)

    def change_model(self, profile: AgentProfile) -> None:
        """Let the model of `profile` answer from the next call on."""
        self._runtime.change_model(self.session, profile)

    def reroute(self, routes: Routes) -> None:
        """Go by other routing tables from now on."""
        self._runtime.reroute(self.session, routes)

    def renew(self) -> None:
        """Finalize this session and begin another in its place."""
        before = self.session
        self.session = self.services.begin_another()
        self._runtime.finalize(before, "new")

    def switch(self, session: str) -> None:
        """Take up another session, and leave this one. Raises `SteersmanError`: then it stays."""
        if self.services.take_up is None:
            raise UsageError("another session cannot be resumed here", "`steersman chat --resume`")
        before, self.session = self.session, self.services.take_up(session)
        self._runtime.leave(before)

    def stay(self) -> None:
        """Take up no other session here from now on."""
        self.services = replace(self.services, take_up=None)

    def finalize(self, cause: str = "user") -> None:
        """Finalize the session."""
        self._runtime.finalize(self.session, cause)

    def leave(self, cause: str = "exit") -> None:
        """Stop what runs, keep everything, let go of the session."""
        self._runtime.leave(self.session, cause)


def _is_own(path: str, run: str) -> bool:
    """Whether a file is in a folder of `.steersman` that is named after the run."""
    home, _, rest = path.partition("/")
    return home == ".steersman" and run in rest.partition("/")[0]


def _asking(found: SessionDescription) -> Ask:
    """Return what asks the permission rules of a session."""

    def ask(tool: str, arguments: dict[str, str]) -> PermissionDecision:
        return found.permissions.decide(tool, arguments, found.folder, found.allowed)

    return ask
