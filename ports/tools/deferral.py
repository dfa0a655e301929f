"""Tools that no request lists: `find_tools` finds them, and `call_tool` calls them.

The schemas of hundreds of tools would cost more in each request than most conversations, and a list that
changes loses what the model's server has kept of all that follows it. So where there are MCP servers, a
request lists these two, and tools of servers only if they were there before the first turn and take no
more than `tools.listed` tokens together. What comes, changes or goes afterwards changes no request.

A call of `call_tool` becomes the call that it means (`meant`) before anything else sees it: rules,
questions and the journal know only the tool itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from ...machines import protocol as m
from ...machines.context import CHARACTERS
from ...machines.conversation import ToolRequest, ToolSchema, as_told
from ...machines.json_shape import is_object, parse_json
from .arguments import declare
from .thread_tool import StopFlag, ThreadTool, refusing
from .tool import Tool, ToolContext, ToolRun

FIND, CALL = "find_tools", "call_tool"

_SHOWN = 5  # tools of which a result has the schema
_ROOM = 12_000  # characters of these, but for the first
_NAMED = 50  # further names
_WORD = re.compile(r"[^\W_]+")

_FIND = declare(
    FIND,
    "Find more tools, of connected services, by words of their name or purpose. Look here before you say "
    "that no tool can do something. Without words: names only.",
    (),
    words={"type": "string", "description": "such as: create issue"},
)
_CALL = declare(
    CALL,
    "Call a tool that find_tools has found.",
    ("name", "arguments"),
    name={"type": "string", "minLength": 1},
    arguments={"type": "object", "description": "as its parameters say"},
)


def found(tools: Sequence[ToolSchema], words: str) -> str:
    """Return the result of `find_tools`: the tools that fit best, then the names of others."""
    if not tools:
        return "No connected service has a tool."
    wanted = set(_WORD.findall(words.casefold()))
    ranks = {tool.name: _rank(tool, wanted) for tool in tools}
    exact = [tool for tool in tools if tool.name == words.strip()]
    fitting = [tool for tool in tools if ranks[tool.name]]
    best = exact or sorted(fitting, key=lambda tool: -ranks[tool.name])
    lines = list[str]()
    for tool in best[:_SHOWN]:
        line = json.dumps(as_told(tool), ensure_ascii=False)
        if lines and sum(map(len, lines)) + len(line) > _ROOM:
            break
        lines.append(line)
    others = [tool.name for tool in (best[len(lines) :] if best else tools)]
    if best:
        lines.append(f"Call one with {CALL}.")
    elif wanted:
        lines.append("No tool has these words.")
    if others:
        more = f", and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        lines.append(f"There are also: {', '.join(others[:_NAMED])}{more}.")
    return "\n".join(lines)


def _rank(tool: ToolSchema, wanted: set[str]) -> int:
    """Count the words that a tool has, those of its name thrice; a word may be the beginning of one."""
    name, said = (_WORD.findall(text.casefold()) for text in (tool.name, tool.description))

    def has(words: list[str], word: str) -> bool:
        return any(word.startswith(other) or other.startswith(word) for other in words)

    return sum(3 * has(name, word) + has(said, word) for word in wanted)


def meant(request: ToolRequest) -> ToolRequest:
    """Return the call that a call of `call_tool` means; one that means none is as it was."""
    if request.tool != CALL:
        return request
    name, given = request.arguments.get("name"), request.arguments.get("arguments", {})
    if isinstance(given, str):  # as some models write it
        with suppress(ValueError):
            given = parse_json(given)
    if not isinstance(name, str) or not name or not is_object(given):
        return request
    return replace(request, tool=name, arguments=given)


class DeferredTool(Tool):
    """A tool that no request lists."""

    def __init__(self, tool: Tool) -> None:
        self.tool, self.schema = tool, tool.schema
        self.is_mutating, self.is_idempotent = tool.is_mutating, tool.is_idempotent

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments."""
        return self.tool.fault(arguments)

    def look_up(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun | None:
        """Ask what became of a call."""
        return self.tool.look_up(arguments, context)

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start a run."""
        return self.tool.start(arguments, context)


class ToolListing:
    """Which tools of servers the requests of a session list: all, if they take at most `most` tokens.

    What is listed stays, also when its server has gone: its calls say so.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._listed: tuple[Tool, ...] = ()
        self._there: Sequence[Tool] = ()

    def of(self, tools: Sequence[Tool], *, is_begun: bool) -> tuple[Tool, ...]:
        """Return what the session's agent has when these are there; `is_begun`: a request was made."""
        self._there = tools
        if not is_begun:
            tokens = sum(len(str(as_told(tool.schema))) for tool in tools) // CHARACTERS
            self._listed = tuple(tools) if tokens <= self._most else ()
        listed = {tool.schema.name for tool in self._listed}
        more = (DeferredTool(tool) for tool in tools if tool.schema.name not in listed)
        return (self.find_tools, CALL_TOOL, *self._listed, *more)

    @property
    def find_tools(self) -> ThreadTool:
        """The tool that finds those that are there when it is called."""
        return ThreadTool(_FIND, self._find)

    def _find(
        self, arguments: dict[str, Any], context: ToolContext, stop: StopFlag
    ) -> m.ToolResult:
        text = found([tool.schema for tool in self._there], arguments.get("words", ""))
        return m.ToolResult(status="ok", text=text)


FIND_TOOLS = ToolListing(0).find_tools
"""Finds nothing: sessions with servers have one of their own."""
CALL_TOOL = refusing(_CALL, f"Error: name a tool that {FIND} has found")
"""A call that means no other; those that do are made as such."""
