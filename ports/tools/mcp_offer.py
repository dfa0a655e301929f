"""What is configured of servers of the Model Context Protocol, and what they offer. Pure values.

Nothing that a server says has authority, and all of it is cut, checked and made visible here before it
goes anywhere: a hostile name, description or schema costs a note, never the other tools.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import field

from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from .foreign_schema import Json, is_within, table
from .text import visible

MOST = 1000
"""Tools of one server, and as many resources and prompts; more are left out."""
_SCHEMA_SIZE, _SCHEMA_DEPTH = 64 << 10, 32  # bytes, and levels
_DESCRIPTION = 8 << 10  # characters
_NOTES = 20
_LONGEST_NAME = 64
_LONGEST_SERVER = 24  # characters of a server's part of a name
_LONGEST_ORIGINAL = 256
_SERVER = lazy_pattern(r"[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*")
_TOOL = lazy_pattern(r"[a-zA-Z0-9_-]+")
_UNSAFE = lazy_pattern(r"[^a-zA-Z0-9-]+")

RESTARTED = "it was restarted"
"""Why a server ended that a person restarts."""

# What is configured -------------------------------------------------------------------------------


class McpRestart(Value):
    """When a server that ended or failed is started again: at most `most` times in `period` seconds.

    The first time it waits `backoff` seconds after the end, and each further time twice as long.
    """

    most: int = 3
    period: float = 60.0
    backoff: float = 0.2


class McpServer(Value):
    """A server that is configured: a command, or a URL with headers.

    `env` is added to the environment. `timeout` and `start_timeout` are seconds: for one call, and for
    the start with the first listing, of which a session waits `wait`. `limit` is the largest number of
    bytes of one message. `is_sandboxed`: where commands run in a sandbox, the server does, too.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    timeout: float = 120.0
    start_timeout: float = 30.0
    wait: float = 3.0
    limit: int = 8 << 20
    is_sandboxed: bool = True
    restart: McpRestart = field(default_factory=McpRestart)


# What a server offers -----------------------------------------------------------------------------


class OfferedTool(Value):
    """A tool as the server describes it, by its own name; `schema` is that of its arguments."""

    name: str
    description: str
    schema: Json
    is_read_only: bool = False


class McpResource(Value):
    """A resource, or with `is_template` a pattern of them, that the server offers."""

    uri: str
    name: str
    description: str = ""
    is_template: bool = False


class McpPrompt(Value):
    """A prompt that the server offers; `arguments` are pairs of a name and whether it is required."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, bool], ...] = ()


class McpOffer(Value):
    """All that a server offers; `notes` are sentences about what was left out, and why."""

    tools: tuple[OfferedTool, ...] = ()
    resources: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    notes: tuple[str, ...] = ()


McpState = Literal["unused", "starting", "ready", "ended"]


class McpStatus(Value):
    """A server as people see it.

    `program` is the name and version that it gives itself, `protocol` the version of the protocol,
    `fault` why it could not start or has ended, `pid` its process id, 0 without one.
    """

    name: str
    state: McpState
    program: str = ""
    protocol: str = ""
    instructions: str = ""
    fault: str = ""
    pid: int = 0
    offer: McpOffer = field(default_factory=McpOffer)


def described(text: Any) -> str:
    """Return a stranger's description as it may be shown, to people and to models."""
    return visible(text, _DESCRIPTION).strip() if isinstance(text, str) else ""


def few(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the first notes, and how many more there are."""
    more = len(notes) - _NOTES
    rest = [f"and {more} more"] if more > 0 else []
    return (*notes[:_NOTES], *rest)


def screened_tools(raw: Iterable[Any], known: Iterable[str]) -> tuple[list[OfferedTool], list[str]]:
    """Return the tools of a listing that can be used, and a note for each of the others.

    `known` are the names that earlier pages had.
    """
    tools: list[OfferedTool] = []
    notes: list[str] = []
    names = set(known)
    for data in raw:
        fault, tool = _tool_fault(data), table(data)
        name = str(tool.get("name") or "")
        called = f"`{visible(name, _LONGEST_NAME)}`" if name else "without a name"
        if not fault and name in names:
            fault = "is listed twice; the first one counts"
        if fault:
            notes.append(f"the tool {called} {fault}")
            continue
        names.add(name)
        tools.append(
            OfferedTool(
                name=name,
                description=described(tool.get("description")) or described(tool.get("title")),
                schema={**tool["inputSchema"], "type": "object"},
                is_read_only=table(tool.get("annotations")).get("readOnlyHint") is True,
            )
        )
    return tools, notes


def _tool_fault(data: Any) -> str:
    """Say why a tool is left out; empty if it can be used."""
    if not isinstance(data, dict):
        return "is left out: it is no object"
    tool = table(data)
    name, schema = tool.get("name"), tool.get("inputSchema")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ORIGINAL:
        return f"is left out: a name has 1 to {_LONGEST_ORIGINAL} characters"
    if not isinstance(schema, dict) or table(schema).get("type", "object") != "object":
        return "is left out: the schema of its arguments is no object"
    if not is_within(schema, size=_SCHEMA_SIZE, depth=_SCHEMA_DEPTH):
        return (
            f"is left out: the schema of its arguments has more than {_SCHEMA_SIZE:,} bytes "
            f"or {_SCHEMA_DEPTH} levels"
        )
    return ""


def for_sdk(tool: OfferedTool) -> Json:
    """Write a tool for the SDK, which is strict, and reads only which arguments are headers."""
    properties = table(tool.schema.get("properties"))
    kept = {name: table(schema) for name, schema in properties.items()}
    return {"name": tool.name, "inputSchema": {"type": "object", "properties": kept}}


# Names --------------------------------------------------------------------------------------------


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return the name by which models know each tool of a server: at most 64 of `[a-zA-Z0-9_-]`.

    A name that had to be changed or cut ends in a digest of the original; the order of the tools does
    not matter. The server's part has no `__`, so that tools of two servers never have the same name.
    """
    prefix = f"mcp__{_word(server, _SERVER, _LONGEST_SERVER)}__"
    room = _LONGEST_NAME - len(prefix)
    originals = sorted(set(tools))
    words = {name: name for name in originals if _TOOL.fullmatch(name) and len(name) <= room}
    taken = set(words)
    for name in originals:
        digits = 6
        while name not in words:
            word = _word(name, _TOOL, room, digits)
            if word not in taken:
                words[name] = word
                taken.add(word)
            digits += 2
    return {name: prefix + words[name] for name in originals}


def _word(name: str, safe: re.Pattern[str], room: int, digits: int = 6) -> str:
    """Return a name as it is, or what can be kept of it with a digest of so many digits."""
    if digits == 6 and safe.fullmatch(name) and len(name) <= room:
        return name
    end = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    begin = _UNSAFE.sub("_", name).strip("_")[: room - digits - 1].rstrip("_")
    return f"{begin}_{end}" if begin else end
