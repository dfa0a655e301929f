"""The MCP servers of sessions: which a session has, their start, and what changes at them while it lives.

A session's agent has the tools that its `tools` name, of the servers that are configured, and those of
the servers that the session was given, by an editor for example. What changes later is a notice to the
session's people; tools that are added or removed count from the agent's next step on. Which tools each
request lists is decided before the first turn (`ports/tools/deferral.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from string import Template
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...actors.runtime import Runtime
from ...gateway.host.opener import Notify
from ...machines.errors import ToolError
from ...ports.tools.deferral import ToolListing
from ...ports.tools.environment import clean_environment
from ...ports.tools.mcp_offer import RESTARTED, McpServer, McpStatus
from ...ports.tools.sandbox import Sandbox, SandboxPolicy
from ...ports.tools.text import visible
from ...workflows.config import Config
from ...workflows.paths import Paths
from ...workflows.settings import McpSettings
from ...workflows.tools import is_of_server
from .call import McpTool
from .client import McpClient

MOST_CHANGES = 20
"""Changes of the tools of one server that a session takes over; further ones are ignored."""
_NAMED = 10  # tools that a notice names
_NAME = 64  # characters of a server's name in a notice


def login_place(name: str, environ: Mapping[str, str]) -> Path:
    """Return the file with what a login at a server granted; it need not exist."""
    return Paths.of(environ).state / "mcp-logins" / f"{quote(name, safe='')}.json"


def mcp_server(name: str, settings: McpSettings, environ: Mapping[str, str]) -> McpServer:
    """Return a configured server, with the values of the variables that it names."""

    def filled(pairs: Mapping[str, str]) -> dict[str, str]:
        return {key: Template(value).safe_substitute(environ) for key, value in pairs.items()}

    return McpServer(
        name=name,
        command=settings.command,
        url=settings.url,
        env=filled(settings.env),
        headers=filled(settings.headers),
        timeout=settings.timeout,
        start_timeout=settings.start_timeout,
        wait=settings.wait,
        is_sandboxed=settings.sandbox,
        login=str(login_place(name, environ)),
        client=(settings.client_id, filled({"": settings.client_secret})[""]),
    )


class ServerFactory:
    """Starts the MCP servers of sessions; `sandbox` is the policy for commands."""

    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        environ: Mapping[str, str],
        sandbox: SandboxPolicy,
        notify: Notify,
    ) -> None:
        self._runtime, self._config, self._environ = runtime, config, environ
        self._sandbox, self._notify = sandbox, notify

    def equip(
        self,
        profile: AgentProfile,
        folder: Path,
        given: Sequence[McpServer] = (),
        *,
        is_patient: bool = False,
    ) -> tuple[AgentProfile, SessionServers | None]:
        """Start the servers of a session, and give its agent their tools; none without servers.

        Blocks as long as each is waited for, with `is_patient` until each has started or failed; `attend`
        adds what is ready later. `given` are servers beside the configured ones; one with the name of a
        configured server is left out, since rules about that name are not about it.
        """
        known = self._config.mcp
        configured = {
            name: settings
            for name, settings in known.items()
            if any(is_of_server(pattern, name) for pattern in profile.server_tools)
        }
        more = {server.name: server for server in given if server.name not in known}
        faults = [
            f"MCP server `{visible(server.name, _NAME)}` is left out: there is another one of that name"
            for server in given
            if more.get(server.name) is not server
        ]
        if not (configured or given):
            return profile, None
        place = self._runtime.shared.storage.outputs / f"mcp-{secrets.token_hex(4)}"
        servers = McpClient(
            [
                *(mcp_server(name, of, self._environ) for name, of in configured.items()),
                *more.values(),
            ],
            self._runtime.shared.processes,
            folder,
            clean_environment(self._environ, self._config.tools.environment),
            grace=self._config.tools.grace,
            sandbox=Sandbox(self._sandbox, folder, place, self._environ),
        )
        listing = ToolListing(self._config.tools.listed)
        found = SessionServers(
            servers, configured, profile, self._runtime, self._notify, faults, listing
        )
        self._runtime.run(found.start(is_patient=is_patient), timeout=None)
        return found.equipped(), found


class _Seen(Struct):
    """What a session has seen of one server: its tools and state, and how often the tools changed."""

    tools: tuple[McpTool, ...] = ()
    state: str = ""
    changes: int = 0
    is_starting: bool = False
    is_late: bool = False
    """Its start was not waited for to the end, and nothing was reported since."""


class SessionServers:
    """The started servers of one session.

    `profile` is the session's agent without their tools, `configured` are those of the configuration, and
    `faults` are sentences for the session's people.
    """

    def __init__(
        self,
        servers: McpClient,
        configured: Mapping[str, McpSettings],
        profile: AgentProfile,
        runtime: Runtime,
        notify: Notify,
        faults: list[str],
        listing: ToolListing,
    ) -> None:
        self._listing = listing
        self._servers, self._configured = servers, configured
        self._profile, self._runtime, self._notify = profile, runtime, notify
        self._session = ""
        self._faults = faults
        self._seen: dict[str, _Seen] = {}

    async def start(self, *, is_patient: bool) -> None:
        """Start all servers side by side, and wait for each as `ServerFactory.equip` says."""
        starts = {
            name: asyncio.create_task(self._servers.connect(name)) for name in self._servers.names
        }

        async def settled(name: str, start: asyncio.Task[McpStatus]) -> None:
            limit = None if is_patient else self._servers.config(name).wait
            await asyncio.wait((start,), timeout=limit)
            seen = self._seen[name] = _Seen()
            if start.done():
                self._started(name, start)
            else:
                seen.is_starting = seen.is_late = True
                self._say(
                    f"MCP server `{name}` is still starting; its tools come when it is ready."
                )
                start.add_done_callback(lambda start: self._started(name, start))
            seen.tools, seen.state = self._chosen(name), self._servers.status(name).state

        await asyncio.gather(*(settled(name, start) for name, start in starts.items()))

    def _started(self, name: str, start: asyncio.Task[McpStatus]) -> None:
        """Report how the start of a server ended; on the loop."""
        is_late, self._seen[name].is_starting = self._seen[name].is_starting, False
        error = None if start.cancelled() else start.exception()
        if self._servers.is_closed:
            return
        if isinstance(error, ToolError):
            hint = f"; {error.hint}" if error.hint else ""
            self._say(f"MCP server `{name}` cannot be used: {error.message}{hint}")
        elif error is not None:
            raise error
        elif not start.cancelled():
            if notes := start.result().offer.notes:  # what was left out of its offer
                first, *others = notes
                more = f", and {len(others)} more: see /mcp" if others else ""
                self._say(f"MCP server `{name}`: {first}{more}")
        if is_late and self._session:
            self._changed(name)

    def equipped(self) -> AgentProfile:
        """Return the profile with the tools of the servers."""
        live, before = self._runtime.sessions.get(self._session), self._profile
        tools = [tool for name in self._servers.names for tool in self._seen[name].tools]
        own = self._listing.of(tools, is_begun=live is not None and bool(live.record.turns))
        names = (tool.schema.name for tool in own)
        return replace(
            before,
            tools=tuple(dict.fromkeys((*before.tools, *names))),
            own_tools=(*before.own_tools, *own),
            servers=self._servers,
        )

    def attend(self, session: str) -> None:
        """Report what failed at the start, and from now on what changes, to the session's people."""

        async def begin() -> None:
            self._session = session
            for fault in self._faults:
                self._say(fault)
            self._servers.on_change = self._changed
            for name in self._servers.names:
                self._changed(name)

        self._runtime.run(begin())

    def close(self) -> None:
        """End the servers of a session that did not come about."""
        self._runtime.run(self._servers.aclose(), timeout=None)

    def _chosen(self, name: str) -> tuple[McpTool, ...]:
        """Return the tools of a server that the session's agent has."""
        tools = [tool for tool in self._servers.tools() if tool.server.config.name == name]
        if (settings := self._configured.get(name)) is None:
            return tuple(tools)
        return tuple(
            tool
            for tool in tools
            if _fits(tool.schema.name, self._profile.server_tools)
            and _fits(tool.offered.name, settings.tools)
        )

    def _changed(self, name: str) -> None:
        """Look at a server at which something has changed; on the loop."""
        seen, status = self._seen[name], self._servers.status(name)
        if seen.is_starting:
            return  # its start is reported as a whole
        before, seen.state = seen.state, status.state
        is_first, seen.is_late = seen.is_late, False
        is_end = status.state == "ended" and before != "ended" and not is_first
        if is_end and status.fault != RESTARTED:
            again = "The next call" if seen.tools else f"`/mcp restart {name}`"  # no tool is known
            self._say(f"MCP server `{name}` ended: {status.fault}. {again} starts it again.")
        tools = self._chosen(name)
        if tools == seen.tools or seen.changes > MOST_CHANGES:
            return
        seen.changes += 1
        if seen.changes > MOST_CHANGES:
            self._say(
                f"MCP server `{name}` has changed its tools {MOST_CHANGES} times: "
                "further changes are ignored."
            )
            return
        done = "is ready" if is_first else "has changed its tools"
        self._say(f"MCP server `{name}` {done}: {_difference(seen.tools, tools)}.")
        seen.tools = tools
        profile = self.equipped()
        self._runtime.adopt_tools(self._session, profile.tools, profile.own_tools)

    def _say(self, text: str) -> None:
        """Report something, as soon as there is a session to report it in."""
        if self._session:
            self._notify(self._session, text)
        else:
            self._faults.append(text)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _difference(before: Sequence[McpTool], after: Sequence[McpTool]) -> str:
    """Name the tools that were added, changed and removed."""
    old = {tool.schema.name: tool for tool in before}
    new = {tool.schema.name: tool for tool in after}
    parts = {
        "added": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and new[name] is not old[name]],
        "removed": [name for name in old if name not in new],
    }
    said: list[str] = []
    for done, names in parts.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        said += [f"{done} `{'`, `'.join(names[:_NAMED])}`{more}"] if names else []
    return "; ".join(said)
