"""The tools: the names that `tools` of an agent may hold.

To add a tool, say `count`:

1. `ports/tools/count.py`: its schema (`declare`), its function, and of both the tool, `COUNT`: a
   `ThreadTool`, or what makes another `Tool` (`ports/tools/tool.py`) of `ToolResources`.
2. Here: a row in `TOOLS`, with its kind.
3. `config.toml`: its name in `tools` of `[agents.assistant]`, and a rule in `[permissions]` if it may
   run without a question.

And its tests, in `tests/tools/test_count.py`. `make docs` adds it to `docs/tools.md`, and
`tests/house/test_registries.py` fails until the module, the page and the tests are there.
"""

import re
from collections.abc import Collection
from typing import Literal

from ..machines import protocol as m
from ..machines.form import FORM
from .plugins import PREFIX, EntryPoints
from .registry import Part, Registry

ToolKind = Literal["read", "edit", "search", "execute", "think", "fetch", "other"]
"""What a tool does: `read`, `edit` and `search` are about the file or folder at their argument `path`,
`fetch` about the address at `url`."""


class ToolPart(Part):
    """A tool; permission rules of the kinds that have a path are about that path.

    A tool of kind `edit` changes the one file at `path`; two sessions never do so at the same time.
    """

    kind: ToolKind = "other"


_PORTS = "steersman.ports.tools"


def _name_fault(name: str) -> str:
    """Say why no plug-in may have a name."""
    if name in TOOLS.built_in or name in RESERVED:
        return "the name is that of a built-in tool"
    return (
        f"names that begin with `{REMOTE}` are for MCP servers" if name.startswith(REMOTE) else ""
    )


TOOLS = Registry(
    "tool",
    {
        "read": ToolPart(place=f"{_PORTS}.file_tools:READ", kind="read"),
        "write": ToolPart(place=f"{_PORTS}.file_tools:WRITE", kind="edit"),
        "edit": ToolPart(place=f"{_PORTS}.file_tools:EDIT", kind="edit"),
        "list": ToolPart(place=f"{_PORTS}.file_tools:LIST", kind="read"),
        "search": ToolPart(place=f"{_PORTS}.searching:SearchTool", kind="search"),
        "survey": ToolPart(place=f"{_PORTS}.survey:SURVEY_TOOL", kind="read"),
        "find_tools": ToolPart(place=f"{_PORTS}.deferral:FIND_TOOLS", kind="think"),
        "call_tool": ToolPart(place=f"{_PORTS}.deferral:CALL_TOOL"),
        "shell": ToolPart(place=f"{_PORTS}.shell:ShellTool", kind="execute"),
        "fetch": ToolPart(place=f"{_PORTS}.fetch:FetchTool", kind="fetch"),
        "delegate": ToolPart(place=f"{_PORTS}.session_tools:DELEGATE", kind="think"),
        "dismiss": ToolPart(place=f"{_PORTS}.session_tools:DISMISS"),
        "progress": ToolPart(place=f"{_PORTS}.session_tools:PROGRESS", kind="think"),
        "defer": ToolPart(place=f"{_PORTS}.session_tools:DEFER"),
    },
    EntryPoints(f"{PREFIX}tools", "tool", gives="FunctionTool", check_name=_name_fault),
)


_UNUSUAL = ("survey", "fetch", "find_tools", "call_tool")
USUAL = tuple(name for name in TOOLS.built_in if name not in _UNUSUAL)
"""The tools of an agent that names none; `survey` belongs to the profile for small models, and the last
two to sessions with MCP servers."""

AGENT_CALLS = ("think", "switch_mode", "other")
"""What the calls of external agents are in rules where no tool here corresponds: kinds of the protocol.

Source: https://agentclientprotocol.com/protocol/tool-calls.
"""
REMOTE = "mcp__"
"""Begins the names of tools that a server offers, which are known while it runs."""
OUTSIDE = "outside"
"""What a call of `shell` is in rules that asks to leave the sandbox, by an argument of this name."""
STEP = "step"
"""What the work of a workflow's step is in holds, by its name, or `NAME-3` of the third item."""
RESERVED = (m.AGENT_TOOL, "command", OUTSIDE, STEP)
"""Tools that no model has: the turn of an external agent, the command of a workflow's step."""


def is_of_server(pattern: str, server: str) -> bool:
    """Whether a pattern of tools can fit those of an MCP server."""
    begin = f"{REMOTE}{server}__"
    literal = re.split(r"[*?[]", pattern, maxsplit=1)[0]
    return pattern.startswith(begin) or (literal != pattern and begin.startswith(literal))


def is_rule_tool(pattern: str, declared: Collection[str] = ()) -> bool:
    """Whether a rule's `tool` can be meant: a pattern, or the name of a tool.

    `declared` are the tools of the configuration.
    """
    return (
        any(sign in pattern for sign in "*?[")
        or pattern in declared
        or pattern in (*AGENT_CALLS, OUTSIDE, STEP, FORM)
        or pattern.startswith(REMOTE)
        or pattern in TOOLS
    )


def kind_of(tool: str) -> ToolKind:
    """Return the kind of a tool; `other` for one that is not listed here."""
    return TOOLS[tool].kind if tool in TOOLS.built_in else "other"
