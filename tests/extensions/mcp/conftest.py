"""Servers of MCP for one test, and calls of their tools on the bench of the tests of tools."""

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace
from support.mcp_servers import SERVER
from support.patience import seconds
from support.until import looked_until
from tools.conftest import bench

from steersman.extensions.mcp.client import McpClient
from steersman.machines import protocol as m
from steersman.ports.tools.mcp_offer import McpRestart, McpServer, McpStatus
from steersman.ports.tools.toolbox import Toolbox

__all__ = ["LONG", "Play", "Session", "bench", "odd", "play", "program", "with_servers"]

T = TypeVar("T")
LONG = 60.0  # seconds, for what has to come from an MCP server


def odd(*modes: str, name: str = "odd", **settings: Any) -> McpServer:
    """Configure our own server; it is started again without a pause."""
    usual = {
        "command": (sys.executable, "-I", "-S", str(SERVER), *modes),
        "timeout": seconds(LONG),
        "start_timeout": seconds(LONG),
        "restart": McpRestart(backoff=0.0),
    }
    return McpServer(name=name, **{**usual, **settings})


def program(name: str) -> str:
    """Find a server of other people beside this Python or from npm, or skip the test."""
    npm = Path(__file__).resolve().parents[3] / ".venv" / "node_modules" / ".bin"
    found = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), str(npm))))
    if found is None:
        pytest.skip(f"`{name}` is not installed here; `.ci/venv dev` tries to")
    return found


class Session:
    """The servers of one test, and calls of their tools."""

    def __init__(self, bench: Any, servers: McpClient, changes: list[str], limit: int) -> None:
        self.bench, self.servers, self.changes, self.limit = bench, servers, changes, limit

    async def call(self, tool: str, **arguments: Any) -> m.ToolResult:
        """Call a tool by the name that a model knows."""
        return await self.start(tool, **arguments).wait()

    def start(self, tool: str, **arguments: Any) -> Any:
        """Start a call."""
        return self.tool(tool).start(arguments, self.bench.context(limit=self.limit))

    async def begun(self, tool: str) -> Any:
        """Start a call that says that it has begun, and wait until it has."""
        said = asyncio.Event()
        heard = replace(self.bench.context(limit=self.limit), on_output=lambda text: said.set())
        run = self.tool(tool).start({}, heard)
        await said.wait()
        return run

    def tool(self, name: str) -> Any:
        """Return a tool."""
        full = name if name.startswith("mcp__") else f"mcp__odd__{name}"
        return next(tool for tool in self.servers.tools() if tool.schema.name == full)

    async def until(self, is_so: Callable[[McpStatus], bool], name: str = "odd") -> McpStatus:
        """Wait until the status of a server is as wanted."""
        await looked_until(lambda: is_so(self.servers.status(name)))
        return self.servers.status(name)


Play = Callable[..., Any]


@pytest.fixture
def play(bench: Any) -> Play:
    """Run a coroutine with servers, which end after it; `connected` are those to connect before it."""

    def run(
        scenario: Callable[[Session], Awaitable[T]],
        *configs: McpServer,
        grace: float = 0.05,
        limit: int = 4000,
        is_connected: bool = True,
    ) -> T:
        async def work(toolbox: Toolbox) -> T:
            changes: list[str] = []
            servers = McpClient(
                configs,
                toolbox.processes,
                bench.folder,
                bench.context().environment,
                grace=grace,
                on_change=changes.append,
            )
            try:
                for config in configs if is_connected else ():
                    await servers.connect(config.name)
                return await scenario(Session(bench, servers, changes, limit))
            finally:
                await servers.aclose()

        return bench.run(work)

    return run


def with_servers(
    *configs: McpServer, **options: Any
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of a coroutine that takes a session with these servers; see `play` for the options."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(test)
        def played(play: Play, **given: Any) -> None:
            play(lambda session: test(session, **given), *configs, **options)

        own = signature(test)
        taken = [each for name, each in own.parameters.items() if name != "session"]
        first = Parameter("play", Parameter.POSITIONAL_OR_KEYWORD)
        vars(played)["__signature__"] = own.replace(parameters=[first, *taken])
        return played

    return decorate
