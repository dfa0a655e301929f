"""What comes with a message: files that its text names, pictures, and what MCP servers offer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

from ..actors.inspection import SessionDescription
from ..actors.runtime import Runtime
from ..machines.conversation import Attachment, Picture
from ..machines.errors import ToolError, UnknownSession
from ..ports.attachment import Ask, attach, with_pictures
from ..ports.tools.permission import PermissionDecision

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpOffer, McpServers, McpStatus
    from ..ports.tools.mcp_text import ServerTexts
    from .client import Services

READING = 10.0
"""Seconds that an MCP server has for what a message names of it: messages after that one wait."""


class MessageParts:
    """Reads them for one session of this process; calls block, for a client's thread."""

    def __init__(self, runtime: Runtime, session: str, services: Services) -> None:
        self._runtime, self._session, self._services = runtime, session, services

    def attached(self, text: str, pictures: Sequence[Picture] = ()) -> tuple[Attachment, ...]:
        """Return what comes with a text: what it names, and pictures."""
        found = self._named(text)
        if not pictures:
            return found
        return with_pictures(found, pictures, takes_pictures=self._services.takes_pictures())

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
        largest = self._services.config.tools.attachment_limit
        return attach(
            text,
            found.folder,
            _asking(found),
            self._services.room,
            read_other,
            largest,
            takes_pictures=self._services.takes_pictures(),
        )

    def prompt(self, text: str) -> Attachment | None:
        """Read the prompt of an MCP server that a text begins with: `/server:prompt`; else none."""
        if not text.startswith("/") or self.servers is None:
            return None
        texts = self._server_texts(self._runtime.describe(self._session))
        room = min(self._services.room, self._services.config.tools.attachment_limit)
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
