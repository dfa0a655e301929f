"""What the tests of tools share: a session's folder, a way to call a tool in it, servers of MCP."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.mcp_servers import SERVER
from support.patience import seconds

from steersman.machines import protocol as m
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.environment import clean_environment
from steersman.ports.tools.mcp import McpServers
from steersman.ports.tools.mcp_offer import McpRestart, McpServer, McpStatus
from steersman.ports.tools.place import find_place
from steersman.ports.tools.tool import Tool, ToolContext
from steersman.ports.tools.toolbox import Toolbox

T = TypeVar("T")
LIMIT = 4000
LONG = 60.0  # seconds, for what has to come from an MCP server


@dataclass
class Bench:
    """Calls tools in `folder`; beside it lies `outside`, which holds a secret."""

    folder: Path
    outside: Path
    pieces: list[str] = field(default_factory=list)

    def context(self, **rest: Any) -> ToolContext:
        """Make the context of one call."""
        environment = clean_environment(os.environ)
        spill = self.outside / "spill"
        return ToolContext(
            folder=self.folder,
            call="t1.s1.c1",
            spill_folder=spill,
            environment=environment,
            on_output=self.pieces.append,
            **{"limit": LIMIT, **rest},
        )

    def run(self, scenario: Callable[[Toolbox], Awaitable[T]]) -> T:
        """Run a coroutine with a toolbox, at most for a minute."""

        async def bounded() -> T:
            host = ProcessHost()
            try:
                async with asyncio.timeout(seconds(60)):
                    return await scenario(Toolbox(host, grace=0.05, output_limit=LIMIT))
            finally:
                await host.aclose()

        return asyncio.run(bounded())

    def call(self, name: str, /, may_leave_folder: bool = False, **arguments: Any) -> m.ToolResult:
        """Call one tool and return its result; it was allowed to leave the folder where it leads now."""
        path = str(find_place(arguments["path"], self.folder).path) if may_leave_folder else ""

        async def scenario(toolbox: Toolbox) -> m.ToolResult:
            context = self.context(path=path)
            return await tool_of(toolbox, name).start(arguments, context).wait()

        return self.run(scenario)


def tool_of(toolbox: Toolbox, name: str) -> Tool:
    """Give a tool that is known to exist."""
    tool = toolbox.get(name)
    assert tool is not None
    return tool


@pytest.fixture
def bench(tmp_path) -> Bench:
    """A fresh folder with a way out: a symlink `exit` to the folder outside."""
    folder, outside = tmp_path / "work", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    (folder / "exit").symlink_to(outside)
    (folder / "leak.txt").symlink_to(outside / "secret.txt")
    return Bench(folder, outside)


# Servers of MCP -----------------------------------------------------------------------------------


def odd(*modes: str, name: str = "odd", **settings: Any) -> McpServer:
    """Configure our own server; it is started again without a pause."""
    usual = {
        "command": (sys.executable, "-I", "-S", str(SERVER), *modes),
        "timeout": seconds(LONG),
        "start_timeout": seconds(LONG),
        "restart": McpRestart(backoff=0.0),
    }
    return McpServer(name=name, **{**usual, **settings})


class Session:
    """The servers of one test, and calls of their tools."""

    def __init__(self, bench: Any, servers: McpServers, changes: list[str], limit: int) -> None:
        self.bench, self.servers, self.changes, self.limit = bench, servers, changes, limit

    async def call(self, tool: str, **arguments: Any) -> m.ToolResult:
        """Call a tool by the name that a model knows."""
        return await self.start(tool, **arguments).wait()

    def start(self, tool: str, **arguments: Any) -> Any:
        """Start a call."""
        return self.tool(tool).start(arguments, self.bench.context(limit=self.limit))

    def tool(self, name: str) -> Any:
        """Return a tool."""
        full = name if name.startswith("mcp__") else f"mcp__odd__{name}"
        return next(tool for tool in self.servers.tools() if tool.schema.name == full)

    async def until(self, is_so: Callable[[McpStatus], bool], name: str = "odd") -> McpStatus:
        """Wait until the status of a server is as wanted."""
        while not is_so(self.servers.status(name)):
            await asyncio.sleep(0)
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
            servers = McpServers(
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
