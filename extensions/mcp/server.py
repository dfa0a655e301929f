"""`steersman mcp`: an MCP server for one client, by the official SDK, until its input ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ... import __version__
from ...cli.chat_options import work_folder
from ...cli.streams import Lines, Printer, serve_lines
from ...gateway.wording.terminal import audited
from ...machines.errors import SteersmanError, UsageError
from ...workflows.config import load
from ...workflows.extras import how_to_install
from ...workflows.paths import Paths
from .home_tools import Caller, HomeTools, call

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp_types import CallToolResult, Tool

READING = ("list_sessions", "list_queue", "inspect", "why")
"""Tools that change nothing."""
INSTRUCTIONS = (
    "steersman runs agents in sessions. `list_sessions` shows them; `say`, `queue` and `steer` send a "
    "message to one, `stop` stops its turn, `inspect` shows its state. In a session that no program has "
    "open, messages only wait. They carry your name; people see them."
)
_NAME = 40  # characters of a client's name
_PLAIN = re.compile(r"[^\w.-]+")


def serve_mcp(cwd: Path | None, *, may_answer: bool) -> int:
    """Serve an MCP client on standard input and output: it may say, steer, stop, inspect and run.

    Workflows run in `cwd`; with `may_answer` it also answers questions about permissions.
    """
    if find_spec("mcp") is None:
        raise UsageError(
            "`steersman mcp` needs the package `mcp`",
            how_to_install("mcp"),
        )
    environ, folder = os.environ, work_folder(cwd or Path.cwd())
    load(Paths.of(environ), folder, environ)  # reports mistakes in the configuration at once
    tools = HomeTools(environ, folder, may_answer=may_answer)

    async def serve(lines: Lines, printer: Printer) -> None:
        from mcp.server.stdio import stdio_server

        server = _server(tools)
        stdin, stdout = cast("Any", _written(lines)), cast("Any", _Output(printer))
        async with stdio_server(stdin, stdout) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    with closing(tools):
        return serve_lines("mcp", serve)


async def _written(lines: Lines) -> AsyncIterator[str]:
    """Yield the lines of the client, as the SDK reads them."""
    while (line := await lines.get()) is not None:
        if line.strip():
            yield line


class _Output:
    """The lines to the client, as the SDK writes them."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    async def write(self, text: str) -> None:
        """Write a line."""
        self._printer.write(text)

    async def flush(self) -> None:
        """Do nothing: the printer does not wait."""


def _server(tools: HomeTools) -> Server[Any]:
    """Make the server: its tools are functions, whose schemas are those of their annotations."""
    import mcp_types as types
    from mcp.server import Server

    def listed(name: str) -> Tool:
        schema = tools.tools[name].schema
        return types.Tool(
            name=name,
            description=schema.description,
            input_schema=schema.parameters,
            annotations=types.ToolAnnotations(
                read_only_hint=name in READING,
                destructive_hint=name in ("stop", "run", "answer"),
                open_world_hint=False,
            ),
        )

    async def list_tools(context: ServerRequestContext[Any], _: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[listed(name) for name in tools.tools])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        found = tools.tools.get(params.name)
        arguments = params.arguments or {}
        fault = found.fault(arguments) if found is not None else f"there is no tool `{params.name}`"
        if found is None or fault:
            return _result(audited(fault), is_error=True)
        caller = Caller(_user(context), _reporter(context))
        try:
            answer = await asyncio.to_thread(call, found, arguments, caller)
        except asyncio.CancelledError:
            caller.leave()
            raise
        except SteersmanError as error:
            hint = f"; {error.hint}" if error.hint else ""
            return _result(audited(f"{error.message}{hint}"), is_error=True)
        return _result(answer)

    return Server(
        "steersman",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _result(answer: Any, *, is_error: bool = False) -> CallToolResult:
    """Write a result: data as structured content, and as text for clients that know only that."""
    import mcp_types as types

    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    data = cast("dict[str, Any]", answer) if isinstance(answer, dict) else None
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)


def _user(context: ServerRequestContext[Any]) -> str:
    """Return the sender's name of a client: never one that a person has."""
    params = context.session.client_params
    name = _PLAIN.sub("-", params.client_info.name if params is not None else "").strip("-")
    return f"mcp:{name[:_NAME]}" if name else "mcp"


def _reporter(context: ServerRequestContext[Any]) -> Callable[[float, float, str], None]:
    """Return what sends reports of progress, from any thread, to a client that asked for them."""
    loop = asyncio.get_running_loop()

    def report(done: float, total: float, note: str) -> None:
        sending = context.session.report_progress(done, total, audited(note))
        try:
            asyncio.run_coroutine_threadsafe(sending, loop)
        except RuntimeError:  # the client is gone
            sending.close()

    return report
