"""What a server says of its tools, cut, checked and made visible before it goes anywhere.

Nothing of it has authority: a hostile name, description or schema costs a note, never the other tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...machines.json_shape import is_object
from ...ports.models.loose_json import table
from ...ports.tools.mcp_offer import OfferedTool
from ...ports.tools.text import visible
from .foreign_schema import Json, is_within

MOST = 1000
"""Tools of one server, and as many resources and prompts; more are left out."""
_SCHEMA_SIZE, _SCHEMA_DEPTH = 64 << 10, 32  # bytes, and levels
_DESCRIPTION = 8 << 10  # characters
_NOTES = 20
_LONGEST_NAME = 64
_LONGEST_ORIGINAL = 256


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
    if not is_object(data):
        return "is left out: it is no object"
    name, schema = data.get("name"), data.get("inputSchema")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ORIGINAL:
        return f"is left out: a name has 1 to {_LONGEST_ORIGINAL} characters"
    if not is_object(schema) or schema.get("type", "object") != "object":
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
