"""What a client has of a session of this process: what it sees of it, and what comes with a message.

A client sees the conversation, the state, and the files that the session changed. With a message come
files that its text names, pictures, and what MCP servers offer.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..actors.decisions.reverting import resumptions
from ..actors.inspection import SessionDescription
from ..actors.runtime import Runtime
from ..actors.work.executor import restore_files
from ..journal.codec import decode
from ..journal.record import SessionRecord
from ..journal.recovery import newest_first, whole_conversation
from ..machines import protocol as m
from ..machines.conversation import Attachment, ChatMessage, Picture
from ..machines.errors import SteersmanError, ToolError, UnknownSession
from ..ports.attachment import Ask, attach, with_pictures
from ..ports.tools.permission import PermissionDecision
from ..workspace.workspace import FileChange
from .views.dump import Traces, dump_live
from .wording.redaction import Redactor

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpOffer, McpServers, McpStatus
    from ..ports.tools.mcp_text import ServerTexts
    from .client import SessionClient

READING = 10.0
"""Seconds that an MCP server has for what a message names of it: messages after that one wait."""


class SessionView:
    """The conversation and the state of the session that a client is at."""

    def __init__(self, client: SessionClient) -> None:
        self._client, self._runtime = client, client.host.runtime
        self._looking = threading.Lock()
        self._traces: Traces = {}

    def newest_messages(self, session: str = "") -> Iterator[ChatMessage]:
        """Read the conversation, or a subagent's, backwards from the journal, as far as is wanted."""
        self._runtime.settle()
        return newest_first(self._runtime.store, session or self._client.session)

    def messages(self, upto: int | None = None) -> list[ChatMessage]:
        """Return the conversation from the journal, up to an entry, also what was compacted."""
        self._runtime.settle()
        return list(whole_conversation(self._runtime.store, self._client.session, upto))

    def state(self, session: str = "") -> dict[str, Any]:
        """Return the record as it is now, also of a subagent that is open here, as plain data."""
        return self._runtime.inspect(session or self._client.session)

    def inspect(self) -> dict[str, Any]:
        """Return the session's state as plain data, without secrets or terminal escapes."""
        with self._looking:
            return self.redacted(dump_live(self._runtime, self._client.session, self._traces))

    def redacted(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take secrets and terminal escapes out of data."""
        shown: dict[str, Any] = self.redactor.data(data)
        return shown

    @cached_property
    def redactor(self) -> Redactor:
        """What takes secrets out of texts and data, with the keys of the configured models."""
        return Redactor(os.environ, self._client.host.config.key_variables)


class ChangedFiles:
    """The files that a session changed, by the copies of them; calls block, for a client's thread."""

    def __init__(self, runtime: Runtime, session: str) -> None:
        self._runtime, self._session = runtime, session
        self._workspace = runtime.workspace(session)

    @property
    def are_kept(self) -> bool:
        """Whether anything is kept of the files that the session changes."""
        return self._workspace is not None

    def diff(self, turns: tuple[str, ...] = ()) -> list[FileChange]:
        """Return what turns changed; without any, what a revert of the newest would take back."""
        if self._workspace is None:
            return []
        resumed = () if turns else resumptions(self._record())
        return self._runtime.run(self._workspace.diff(turns, resumed))

    def changed_by(self, turns: tuple[str, ...]) -> list[str]:
        """Name the files that turns changed, and that are not as they were before."""
        if self._workspace is None:
            return []
        return self._runtime.run(self._workspace.changed_files(turns))

    def changed_by_run(self) -> list[str]:
        """Name the files that a run has changed in all its turns, except its own in `.steersman`."""
        try:
            made = self._record().turns_made
            found = self.changed_by(tuple(f"t{number}" for number in range(1, made + 1)))
        except (OSError, SteersmanError):
            return []  # the revert reports what cannot be read
        return [path for path in found if not _is_own(path, self._session)]

    def _record(self) -> SessionRecord:
        return decode(SessionRecord, self._runtime.inspect(self._session))

    def restore(
        self,
        order: m.RestoreFiles,
        hear: Callable[[m.RestoreCounted | m.RestoreEnded], None],
        seconds: float,
    ) -> None:
        """Restore files without the session's journal; `hear` is called with what comes of it."""
        self._runtime.run(restore_files(self._workspace, order, hear), seconds)

    @property
    def storage(self) -> str:
        """The name of the storage that has the copies of files of this program's turns."""
        return self._runtime.shared.storage.name


def _is_own(path: str, run: str) -> bool:
    """Whether a file is in a folder of `.steersman` that is named after the run."""
    home, _, rest = path.partition("/")
    return home == ".steersman" and run in rest.partition("/")[0]


class MessageParts:
    """Reads what comes with messages to one session; calls block, for a client's thread."""

    def __init__(self, runtime: Runtime, client: SessionClient, model: str) -> None:
        """`model` is what a person chose in a session whose own is not built here."""
        self._runtime, self._client, self._model = runtime, client, model
        self._session, self._host = client.session, client.host

    def attached(self, text: str, pictures: Sequence[Picture] = ()) -> tuple[Attachment, ...]:
        """Return what comes with a text: what it names, and pictures."""
        found = self._named(text)
        if not pictures:
            return found
        return with_pictures(found, pictures, takes_pictures=self._takes_pictures)

    @property
    def _takes_pictures(self) -> bool:
        agent = self._runtime.store.load(self._session).row.agent
        return self._host.opener.takes_pictures(agent, self._model)

    def _named(self, text: str) -> tuple[Attachment, ...]:
        """Read what a text names by `@path` or `@server:uri`, as the permissions of the session allow."""
        if "@" not in text:
            return ()
        try:
            found = self._runtime.describe(self._session)
        except UnknownSession:
            return ()  # the text is given back, and nothing is read for it
        texts = self._server_texts(found)
        read_other = texts.resource if texts is not None else None
        largest = self._host.config.tools.attachment_limit
        return attach(
            text,
            found.folder,
            _asking(found),
            self._client.room,
            read_other,
            largest,
            takes_pictures=self._takes_pictures,
        )

    def prompt(self, text: str) -> Attachment | None:
        """Read the prompt of an MCP server that a text begins with: `/server:prompt`; else none."""
        if not text.startswith("/") or self.servers is None:
            return None
        texts = self._server_texts(self._runtime.describe(self._session))
        room = min(self._client.room, self._host.config.tools.attachment_limit)
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

    @property
    def servers(self) -> McpServers | None:
        """The session's MCP servers, whose methods run on the runtime's loop; none if it has none."""
        return self._runtime.servers(self._session)

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


def _asking(found: SessionDescription) -> Ask:
    """Return what asks the permission rules of a session."""

    def ask(tool: str, arguments: dict[str, str]) -> PermissionDecision:
        return found.permissions.decide(tool, arguments, found.folder, found.allowed)

    return ask
