"""What the tests of tools share: a session's folder, and a way to call a tool in it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.patience import seconds

from steersman.machines import protocol as m
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.environment import clean_environment
from steersman.ports.tools.place import find_place
from steersman.ports.tools.tool import Tool, ToolContext
from steersman.ports.tools.toolbox import Toolbox

T = TypeVar("T")
LIMIT = 4000


@dataclass
class Bench:
    """Calls tools in `folder`; beside it lies `outside`, which holds a secret."""

    folder: Path
    outside: Path
    fetch: tuple[str, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    """Further fields of a call's context."""
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
            **{"limit": LIMIT, **self.about, **rest},
        )

    def run(self, scenario: Callable[[Toolbox], Awaitable[T]]) -> T:
        """Run a coroutine with a toolbox, at most for a minute."""

        async def bounded() -> T:
            host = ProcessHost()
            try:
                async with asyncio.timeout(seconds(60)):
                    made = Toolbox(host, grace=0.05, output_limit=LIMIT, fetch=self.fetch)
                    return await scenario(made)
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
