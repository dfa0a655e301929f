"""A tool of an MCP server as one of ours, and one call of it.

A call that is stopped or too late is cancelled as the protocol says. The protocol has no answer to that:
so a server that does not answer the call itself within `grace` is ended, with all its processes, because
only so is it known that nothing continues. A server on the web is only told.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...machines import protocol as m
from ...machines.conversation import ToolSchema
from ...machines.errors import ToolError
from ...ports.awake import wait_awake
from ...ports.tools.mcp_offer import OfferedTool
from ...ports.tools.text import visible
from ...ports.tools.thread_tool import failed
from ...ports.tools.tool import TaskRun, Tool, ToolContext, kept_ends
from .foreign_schema import entries, foreign_fault, given_of
from .task_file import TaskFile

if TYPE_CHECKING:
    from .client import RunningServer
    from .connection import McpAnswer, PendingCall

_NAME = 64  # characters of a name in a message
_LOOK = 5.0  # seconds for the end of a task that a crash cut off
_AGAIN = (
    "Call the tool again with the same arguments: that waits for its end, and begins no second one."
)
_PROGRESS = 200  # characters of a report of progress


class McpTool(Tool):
    """A tool of a server as it was when it was listed; see `Tool`.

    A call goes by what the server offers at that time: a tool that is gone fails, and the arguments are
    checked against the newest schema. `readOnlyHint` decides only whether a call runs alone and the
    folder is looked at around it, not whether it may run; no call counts as idempotent.
    """

    is_idempotent = False

    def __init__(self, server: RunningServer, offered: OfferedTool, name: str) -> None:
        self.server, self.offered = server, offered
        self.schema = ToolSchema(
            name=name, description=offered.description, parameters=_for_models(offered.schema)
        )
        self.is_mutating = not offered.is_read_only

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments; empty if there is none, or only the server knows it."""
        newest = self.server.newest(self.offered.name)
        if newest is None:
            name = visible(self.offered.name, _NAME)
            return f"the server `{self.server.config.name}` no longer has the tool `{name}`"
        fault = foreign_fault(newest.schema, given_of(newest.schema, arguments))
        if fault and newest.schema != self.offered.schema:
            fault += "; the server has changed the arguments of this tool"
        return fault

    def look_up(self, arguments: dict[str, Any], context: ToolContext) -> McpLookUp:
        """Start to ask what became of a call that had become a task."""
        return McpLookUp(self, TaskFile(context, self.schema.name, arguments))

    def start(self, arguments: dict[str, Any], context: ToolContext) -> McpRun:
        """Start a call."""
        return McpRun(self, arguments, context)


def _for_models(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what the APIs of models accept: an object, without alternatives at the top."""
    refused = ("$schema", "allOf", "anyOf", "oneOf", "required")
    kept = {key: value for key, value in schema.items() if key not in refused}
    if not isinstance(kept.get("properties"), dict):
        kept["properties"] = {}
    if required := [name for name in entries(schema.get("required")) if isinstance(name, str)]:
        kept["required"] = required
    return kept


class McpRun(TaskRun):
    """One call of a server's tool; see `ToolRun`."""

    def __init__(self, tool: McpTool, arguments: dict[str, Any], context: ToolContext) -> None:
        self._tool, self._server = tool, tool.server
        self._arguments, self._context = arguments, context
        self._stopping = asyncio.Event()
        self._pending: PendingCall | None = None
        self._file = TaskFile(context, tool.schema.name, arguments)
        self._task = asyncio.create_task(self._run())

    @property
    def pid(self) -> int:
        """Process id of the server; 0 before it runs, and for one on the web."""
        return self._server.pid

    def stop(self) -> None:
        """Begin to stop the call; a second stop has no further effect."""
        self._stopping.set()

    async def _run(self) -> m.ToolResult:
        work = asyncio.create_task(self._answer())
        stopped = asyncio.create_task(self._stopping.wait())
        while True:
            had_time = self._has_time
            await wait_awake((work, stopped), self._server.config.timeout)
            if work.done() or stopped.done() or not (had_time or self._has_time):
                break  # while a person is asked or a task goes on, and right after it, none counts
        stopped.cancel()
        return work.result() if work.done() else await self._cut_off(work)

    @property
    def _has_time(self) -> bool:
        return self._pending is not None and self._pending.has_time

    async def _answer(self) -> m.ToolResult:
        """Make the call, with a server that is started if it does not run; a task is joined anew."""
        task = await asyncio.to_thread(self._file.joined_task)
        while True:
            self._pending = None
            try:
                answer = await self._asked(task)
            except ToolError as error:
                lost = self._pending.lost_task if self._pending is not None else ""
                if lost:
                    task = lost
                    continue
                if task and self._pending is None:  # it cannot be reached
                    await asyncio.to_thread(self._file.note, "told")
                    return failed(ToolError(f"{error.message}; the task may go on. {_AGAIN}"))
                await asyncio.to_thread(self._file.note, "ended")
                return failed(error)
            await asyncio.to_thread(self._file.note, "ended")
            return await _result(answer, self._context)

    async def _asked(self, task: str) -> McpAnswer:
        """Make the call, or join its task. Raises `ToolError`."""
        server = self._server
        async with server.use() as connection:
            if fault := self._tool.fault(self._arguments):
                raise ToolError(fault)
            offered, ask = self._tool.offered, self._context.ask
            newest = server.newest(offered.name) or offered
            given = given_of(newest.schema, self._arguments)
            keep = self._file.keep
            self._pending = connection.call(offered.name, given, self._report, ask, keep, task)
            return await self._pending.wait()

    def _report(self, share: str, message: str) -> None:
        """Show a report of progress as a line of output."""
        if self._context.on_output is not None:
            line = f"{share} {message}".strip().replace("\n", " ")
            self._context.on_output(visible(line, _PROGRESS) + "\n")

    async def _cut_off(self, work: asyncio.Task[m.ToolResult]) -> m.ToolResult:
        """Cancel the call, and end a server of ours that does not answer, so that nothing continues."""
        server, name = self._server, self._server.config.name
        await asyncio.to_thread(self._file.note, "ended")
        status: m.ToolStatus = "killed" if self._stopping.is_set() else "timed_out"
        why = (
            "interrupted" if status == "killed" else f"timed out after {server.config.timeout:g} s"
        )
        killed: tuple[int, ...] = ()
        survivors: tuple[int, ...] = ()
        if self._pending is None:
            text = f"the server `{name}` was not ready yet"
            work.cancel()
            await asyncio.wait((work,))
            await server.abandon()
        elif await self._pending.cancel(server.grace):
            text = f"the server `{name}` has ended the call"
            result = await work  # it may have come before it was cancelled
            if result.status == "ok":
                return result
        elif server.config.url:
            text = f"the server `{name}` was asked to end the call; whether it has is not known"
        else:
            text = (
                f"the server `{name}` did not end the call, and was ended; the next call starts it"
            )
            killed, survivors = await server.end("a call was cut off")
        work.cancel()
        await asyncio.wait((work,))
        return m.ToolResult(
            status=status, text=f"[{why}: {text}]", killed=killed, survivors=survivors
        )


class McpLookUp(TaskRun):
    """Asks what became of a call that a crash cut off; see `ToolRun`."""

    pid = 0

    def __init__(self, tool: McpTool, file: TaskFile) -> None:
        self._server, self._file, self._context = tool.server, file, file.context
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Do nothing: it ends by itself."""

    async def _run(self) -> m.ToolResult:
        task = await asyncio.to_thread(self._file.open_task)
        if not task:
            return failed(ToolError("it was no task"))
        why = "It goes on at the server."
        try:
            async with asyncio.timeout(_LOOK), self._server.use() as connection:
                answer = await connection.outcome(task)
        except (ToolError, TimeoutError):
            answer, why = None, "The server that has it cannot be asked now."
        if answer is None:
            await asyncio.to_thread(self._file.note, "told")
            return m.ToolResult(status="ok", text=f"[{why} {_AGAIN}]")
        await asyncio.to_thread(self._file.note, "ended")
        return replace(await _result(answer, self._context), status="ok")


async def _result(answer: McpAnswer, context: ToolContext) -> m.ToolResult:
    data = answer.text.encode("utf-8", "replace")
    text, spilled = await asyncio.to_thread(kept_ends, data, context)
    return m.ToolResult(
        status="failed" if answer.is_error else "ok",
        text=text or "(no output)",
        bytes=len(data),
        spilled=spilled,
        pictures=answer.pictures,
    )
