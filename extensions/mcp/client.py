"""Servers of the Model Context Protocol: their tools as ours, by the names `mcp__SERVER__tool`.

    McpClient ── one RunningServer for each McpServer that is configured
                     └── McpConnection (`mcp_connection.py`, where the SDK is), while the server runs

`McpClient` belongs to whatever has a folder and a time of its own, as a session has, and to the asyncio
loop on which it is used. `connect` starts a server and lists what it offers; `tools` gives that without
waiting; `aclose` ends everything. A server that has ended is started again when one of its tools is
called, as its `McpRestart` allows. The SDK is imported, in a thread, when the first server is connected.

A form that a server has the person fill in is a question of the session. Its requests to sample and to
list folders are refused: nothing is offered.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...machines.errors import ToolError
from ...ports.process.host import ProcessHost
from ...ports.process.process import Processes
from ...ports.tools.mcp_offer import (
    RESTARTED,
    McpOffer,
    McpServer,
    McpState,
    McpStatus,
    OfferedTool,
    tool_names,
)
from ...ports.tools.sandbox import Sandbox
from ...workflows.extras import how_to_install
from .call import McpTool
from .screening import few

if TYPE_CHECKING:
    from .connection import McpConnection

_RELIST = 1.0  # seconds between two listings that a server asks for

Ended = tuple[tuple[int, ...], tuple[int, ...]]
"""Process ids of a server that was ended: those that are dead, and any that still run."""


class RunningServer:
    """One server that is configured: its connection while it runs, its offer, its restarts."""

    def __init__(self, config: McpServer, servers: McpClient) -> None:
        self.config = config
        self.grace = servers.grace
        self.tools: tuple[McpTool, ...] = ()
        self._servers = servers
        self._offer = McpOffer()
        self._connection: McpConnection | None = None
        self._opening: asyncio.Task[McpConnection] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._is_stale = False
        self._is_listed = asyncio.Event()
        self._is_listed.set()
        self._endings: set[asyncio.Task[Ended]] = set()
        self._failures: deque[float] = deque(maxlen=config.restart.most + 1)
        self._users = 0
        self._fault = ""
        self._is_legacy = False
        self._is_closed = False

    @property
    def pid(self) -> int:
        """Process id of the server, 0 if it has none."""
        return self._connection.pid if self._connection is not None else 0

    def status(self) -> McpStatus:
        """Return what people may want to know of it."""
        state: McpState = "ended" if self._fault else "unused"
        program = protocol = instructions = ""
        if self._connection is not None:
            state = "ready"
            program, protocol, instructions = self._connection.about
        elif self._opening is not None:
            state = "starting"
        return McpStatus(
            name=self.config.name,
            state=state,
            program=program,
            protocol=protocol,
            instructions=instructions,
            fault=self._fault,
            pid=self.pid,
            offer=self._offer,
        )

    def newest(self, name: str) -> OfferedTool | None:
        """Return a tool as the server offers it now; none if it no longer does."""
        return next((tool for tool in self._offer.tools if tool.name == name), None)

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[McpConnection, None]:
        """Yield the connection, for one call; a server that does not run is started.

        Raises `ToolError`.
        """
        self._users += 1
        try:
            yield await self.ready()
        finally:
            self._users -= 1

    async def ready(self, *, is_forced: bool = False) -> McpConnection:
        """Return the connection, with a listing that is not out of date. Raises `ToolError`.

        `is_forced`: a person asks, so that earlier failures do not count.
        """
        if self._is_closed:
            raise ToolError(f"the server `{self.config.name}` was closed")
        if is_forced:
            self._failures.clear()
        await self._is_listed.wait()
        if self._connection is not None:
            return self._connection
        opening = self._opening = self._opening or asyncio.create_task(self._open())
        await asyncio.wait((opening,))
        if opening.cancelled():
            raise ToolError(f"the server `{self.config.name}` was stopped while it started")
        return opening.result()

    async def abandon(self) -> None:
        """End a server that is still starting, unless a call waits for it; also what it was to follow."""
        if self._opening is not None and not self._users:
            self._opening.cancel()
            await asyncio.wait((self._opening, *self._endings))

    async def end(self, why: str) -> Ended:
        """End the server, if it runs; the next call starts it again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return (), ()
        self._fault = why
        self._servers.on_change(self.config.name)
        return await connection.end(self.grace)

    async def aclose(self) -> None:
        """End the server and do not start it again. Idempotent."""
        self._is_closed = True
        tasks = [task for task in (self._opening, self._relisting) if task is not None]
        for task in tasks:
            task.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close(self.grace)
        if waiting := [*tasks, *self._endings]:
            await asyncio.wait(waiting)

    # Starting and ending --------------------------------------------------------------------------

    async def _open(self) -> McpConnection:
        """Start the server as its rule allows, and list what it offers. Raises `ToolError`."""
        self._servers.on_change(self.config.name)
        try:
            if self._endings:  # two of it might get into each other's way
                await asyncio.wait(self._endings)
            await self._wait_for_turn()
            connection = await self._start()
        except ToolError as error:
            self._fault = error.message
            raise
        finally:
            self._opening = None
            self._servers.on_change(self.config.name)
        return connection

    async def _wait_for_turn(self) -> None:
        """Wait as the rule of restarts says. Raises `ToolError` when there were too many."""
        rule, now = self.config.restart, asyncio.get_running_loop().time()
        recent = [at for at in self._failures if now - at < rule.period]
        if len(recent) > rule.most:
            left = rule.period - (now - recent[0])
            raise ToolError(
                f"the server `{self.config.name}` ended {len(recent)} times within {rule.period:g} s, "
                f"so it is not started again for {left:.0f} s; at last: {self._fault}",
                "do without it meanwhile",
            )
        if recent:
            pause = rule.backoff * 2 ** (len(recent) - 1)
            await asyncio.sleep(max(0.0, recent[-1] + pause - now))

    async def _start(self) -> McpConnection:
        """Start the server within its time; one that ends at the newest question is asked the older."""
        config, loop = self.config, asyncio.get_running_loop()
        program = config.command[0] if config.command else ""
        if not config.url and "/" not in program:
            if shutil.which(program, path=self._environment().get("PATH")) is None:
                self._failures.append(loop.time())
                raise ToolError(f"there is no program `{program}`", "install it first")
        try:
            kind = await asyncio.to_thread(_connection_type)
        except ImportError:
            hint = how_to_install("mcp")
            raise ToolError("the package `mcp` is missing", hint) from None
        deadline = loop.time() + config.start_timeout
        while True:
            connection = kind(
                config, is_legacy=self._is_legacy, on_end=self._over, on_change=self._changed
            )
            try:
                await self._begin(connection, deadline)
            except ToolError:
                if not connection.is_fatally_asked or loop.time() >= deadline:
                    self._is_legacy = False
                    if not connection.needs_login:  # after one it is started at once
                        self._failures.append(loop.time())
                    raise
                self._is_legacy = True
            else:
                self._is_legacy = connection.is_legacy
                return connection

    async def _begin(self, connection: McpConnection, deadline: float) -> None:
        """Open a connection and list the offer; what was begun is ended if that fails."""
        servers, command = self._servers, self.config.command
        try:
            async with asyncio.timeout_at(deadline):
                if servers.sandbox is not None and self.config.is_sandboxed and command:
                    command = await asyncio.to_thread(servers.sandbox.wrap, command)
                await connection.open(
                    servers.processes, servers.folder, self._environment(), command
                )
                self._take(await connection.offer())
                self._connection, self._fault = connection, ""
        except TimeoutError:
            limit = self.config.start_timeout
            raise ToolError(
                f"the server `{self.config.name}` was not ready within {limit:g} s", connection.hint
            ) from None
        finally:
            if self._connection is not connection:
                await asyncio.wait((self._end_later(connection),))

    def _environment(self) -> dict[str, str]:
        return {**self._servers.environment, **self.config.env}

    def _end_later(self, connection: McpConnection) -> asyncio.Task[Ended]:
        """End a connection also if the caller is cancelled meanwhile."""
        ending = asyncio.create_task(connection.end(self.grace))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        return ending

    def _over(self, connection: McpConnection) -> None:
        """Note that the server has ended without having been asked to."""
        if connection is not self._connection:
            return
        self._connection, self._fault = None, connection.fault
        if not connection.needs_login:
            self._failures.append(asyncio.get_running_loop().time())
        self._end_later(connection)  # of one that cannot be talked to, the process may run
        self._servers.on_change(self.config.name)

    # Listing --------------------------------------------------------------------------------------

    def _take(self, offer: McpOffer) -> None:
        """Take a new offer: each tool that is not the same as before is a new `McpTool`."""
        names = tool_names(self.config.name, (tool.name for tool in offer.tools))
        known = {tool.schema.name: tool for tool in self.tools}
        tools: list[McpTool] = []
        for offered in offer.tools:
            name = names[offered.name]
            tool = known.get(name)
            is_same = tool is not None and tool.offered == offered
            tools.append(tool if tool and is_same else McpTool(self, offered, name))
        self._offer, self.tools = offer, tuple(tools)

    def _changed(self) -> None:
        """List the tools again, as often as the server says so, and at most once a second."""
        self._is_stale = True
        if self._relisting is None and not self._is_closed:
            self._is_listed.clear()
            self._relisting = asyncio.create_task(self._relist())
            self._relisting.add_done_callback(self._relisted)

    async def _relist(self) -> None:
        while self._is_stale and (connection := self._connection) is not None:
            self._is_stale = False
            self._is_listed.clear()
            try:
                async with asyncio.timeout(self.config.start_timeout):
                    tools, notes = await connection.tools()
            except (ToolError, TimeoutError) as error:
                tools = list(self._offer.tools)
                notes = [f"the tools cannot be listed again: {error}"]
            if connection is self._connection:
                self._take(replace(self._offer, tools=tuple(tools), notes=few(notes)))
                self._servers.on_change(self.config.name)
            self._is_listed.set()
            await asyncio.sleep(_RELIST)

    def _relisted(self, task: asyncio.Task[None]) -> None:
        self._relisting = None
        self._is_listed.set()


class McpClient:
    """The configured servers of one session; see the top of the module.

    `environment` is what their processes get, without secrets. `grace` is in seconds. `on_change`,
    which may be replaced, is called with the name of a server, on the loop, when what `tools` or `status`
    return of it has changed. `sandbox` is theirs alone, and cleared at the end.
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        processes: Processes,
        folder: Path,
        environment: Mapping[str, str],
        *,
        grace: float,
        on_change: Callable[[str], None] = lambda name: None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.processes, self.folder, self.environment = processes, folder, environment
        self.grace, self.on_change, self.sandbox = grace, on_change, sandbox
        self.is_closed = False
        self._servers = {config.name: RunningServer(config, self) for config in servers}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers, in the order in which they were given."""
        return tuple(self._servers)

    def config(self, name: str) -> McpServer:
        """Return what is configured of a server. Raises `ToolError`."""
        return self._server(name).config

    async def connect(self, name: str) -> McpStatus:
        """Start a server that does not run, and list what it offers. Raises `ToolError`.

        Earlier failures do not count. Several may be connected at the same time.
        """
        server = self._server(name)
        await server.ready(is_forced=True)
        return server.status()

    async def restart(self, name: str) -> McpStatus:
        """End a server and start it again. Raises `ToolError`."""
        await self._server(name).end(RESTARTED)
        return await self.connect(name)

    async def read(self, name: str, uri: str) -> str:
        """Read a resource of a server, as text. Raises `ToolError`, also for binary data."""
        async with self._server(name).use() as connection:
            return await connection.read(uri)

    async def prompt(self, name: str, prompt: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt of a server. Raises `ToolError`."""
        async with self._server(name).use() as connection:
            return await connection.prompt(prompt, arguments)

    def tools(self) -> tuple[McpTool, ...]:
        """Return the tools that are known now, of all servers, also of those that have ended since."""
        return tuple(tool for server in self._servers.values() for tool in server.tools)

    def status(self, name: str) -> McpStatus:
        """Return what is known of a server. Raises `ToolError`."""
        return self._server(name).status()

    async def aclose(self) -> None:
        """End all servers; returns when that is proven. Idempotent."""
        self.is_closed = True
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))
        if self.sandbox is not None:
            await asyncio.to_thread(self.sandbox.clear)

    def _server(self, name: str) -> RunningServer:
        if name not in self._servers:
            known = "`, `".join(self._servers)
            raise ToolError(f"there is no MCP server `{name}`", f"known are `{known}`")
        return self._servers[name]


def _connection_type() -> type[McpConnection]:
    from .connection import McpConnection

    return McpConnection


async def statuses(
    servers: Sequence[McpServer],
    folder: Path,
    environment: Mapping[str, str],
    *,
    grace: float,
    sandbox: Sandbox | None,
) -> list[McpStatus]:
    """Start servers side by side and end them again; return what each is, or why it cannot be used."""
    processes = ProcessHost()
    client = McpClient(servers, processes, folder, environment, grace=grace, sandbox=sandbox)

    async def tried(name: str) -> McpStatus:
        try:
            return await client.connect(name)
        except ToolError as error:
            why = f"{error.message}; {error.hint}" if error.hint else error.message
            return McpStatus(name=name, state="ended", fault=why)

    try:
        return list(await asyncio.gather(*map(tried, client.names)))
    finally:
        await client.aclose()
        await processes.aclose()
