"""The seam to tools: start a run, wait for its result, stop it.

A run never raises: a failure is a result that the model can read. `stop` may be called at any time and
more than once; `wait` then returns with status `killed` (or with the real result, if that came first)
only when every process that the run started is proven dead.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec import field

from ...machines import protocol as m
from ...machines.conversation import ToolSchema
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ..process.process import Processes
from ..process.running import OutputBuffer
from .arguments import fault_of
from .text import join_ends

_UNSAFE = lazy_pattern(r"[^A-Za-z0-9._-]")


class ToolContext(Value):
    """Where a run takes place: the session and its folder, the call's id, where long output is kept.

    `hidden` are patterns of paths that a search passes over, or not; see `Permissions.hidden`. `wrap`
    puts a command into a sandbox, and may block. `tell` reports to the turn while the run goes on, `ask`
    has a person fill in a form, {server, message, schema}: none comes back where that is declined.
    `path` is the resolved path that the call was allowed for, empty where none was looked at.
    `limit` is how many bytes of the result the model receives. `is_again`: an earlier call of the turn
    with this tool and path failed. `alive` is the file whose time says until when commands ran.
    """

    folder: Path
    call: str
    spill_folder: Path
    session: str = ""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    on_output: Callable[[str], None] | None = None
    path: str = ""
    is_again: bool = False
    hidden: tuple[tuple[str, bool], ...] = ()
    wrap: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple
    tell: Callable[[m.Message], None] | None = None
    ask: Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]] | None = None
    limit: int = 12 << 10
    alive: Path | None = None

    @property
    def spill_file(self) -> Path:
        """Where the whole of a long output goes; the file is not there yet."""
        return self.spill_folder / f"{_UNSAFE.sub('_', self.call)}.txt"


_SPILL = 64 << 20
"""Bytes of a result that are written to a file."""


def kept_ends(data: bytes, context: ToolContext) -> tuple[str, str]:
    """Return what the model receives of a result, and the file with all of a long one, or nothing.

    Blocks while the file is written.
    """
    buffer = OutputBuffer(context.limit // 2, context.spill_file, _SPILL)
    buffer.add(data)
    buffer.close()
    place = str(buffer.spilled or "")
    text = join_ends(buffer.head, buffer.tail, buffer.total, place)
    return (f"{text}\n[{buffer.fault}]" if buffer.fault else text), place


class ToolResources(Value):
    """What a tool is made with: `grace` in seconds; `sandbox` is what a command cannot do in it.

    `sandbox` is empty where there is none. `fetch` are the options of what gets pages.
    """

    processes: Processes
    grace: float
    sandbox: str = ""
    fetch: tuple[str, ...] = ()


class ToolRun(Protocol):
    """One run of a tool."""

    @property
    def pid(self) -> int:
        """Process id of the command that it runs; 0 if none does now."""
        ...

    async def wait(self) -> m.ToolResult:
        """Return the result. May be awaited once."""
        ...

    def stop(self) -> None:
        """Begin to stop it; returns at once."""
        ...


class TaskRun:
    """A run that is a task of this loop, which its class sets; see `ToolRun`."""

    _task: asyncio.Task[m.ToolResult]

    async def wait(self) -> m.ToolResult:
        """Return the result; after a stop nothing that the run started is left."""
        return await asyncio.shield(self._task)


class Tool(Protocol):
    """A tool that the model may call; `is_idempotent` runs may be repeated after a crash."""

    schema: ToolSchema
    is_mutating: bool
    is_idempotent: bool

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments in one sentence; empty if there is none.

        Where a tool knows none of its own, its schema tells.
        """
        return fault_of(self.schema, arguments)

    def look_up(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun | None:
        """Start to ask what became of a call whose end nobody saw; none if the tool cannot tell.

        A result that is not `ok` says that it does not know.
        """
        return None

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start a run on the running asyncio loop. Never raises for a mistake of the model."""
        ...
