"""What is configured of servers of the Model Context Protocol, what they offer, and what a session uses.

The extension `mcp` speaks with them, and makes what implements `McpServers`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from msgspec import field

from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from .tool import Tool

_LONGEST_NAME = 64
_LONGEST_SERVER = 24  # characters of a server's part of a name
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
    `login` is the file that has what a login at `url` granted, empty if none is to be used. `client` is
    the id and the secret of a client that a person registered there.
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
    login: str = ""
    client: tuple[str, str] = ("", "")
    restart: McpRestart = field(default_factory=McpRestart)


# What a server offers -----------------------------------------------------------------------------


class OfferedTool(Value):
    """A tool as the server describes it, by its own name; `schema` is that of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
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


class McpServers(Protocol):
    """The servers of one session, as the session uses them; its coroutines run on the actors' loop.

    Each method that takes a name raises `ToolError` for one that is not known.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers, in the order in which they were given."""
        ...

    async def restart(self, name: str) -> McpStatus:
        """End a server and start it again. Raises `ToolError`."""
        ...

    async def read(self, name: str, uri: str) -> str:
        """Read a resource of a server, as text. Raises `ToolError`, also for binary data."""
        ...

    async def prompt(self, name: str, prompt: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt of a server. Raises `ToolError`."""
        ...

    def tools(self) -> Sequence[Tool]:
        """Return the tools that are known now, of all servers, also of those that have ended since."""
        ...

    def status(self, name: str) -> McpStatus:
        """Return what is known of a server."""
        ...

    async def aclose(self) -> None:
        """End all servers; returns when that is proven. Idempotent."""
        ...


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
