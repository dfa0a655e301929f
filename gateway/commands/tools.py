"""`/tools`, `/skills` and `/mcp`: the agent's tools, its skills, and the MCP servers of some tools."""

from __future__ import annotations

from typing import Annotated, Any

from ...machines.conversation import ToolRequest
from ...machines.errors import ToolError
from ...ports.tools.mcp_offer import McpStatus
from ...ports.tools.text import counted
from ...workflows.tools import REMOTE, TOOLS
from ..client import SessionClient
from ..wording.formats import one_line
from .command import Argument, Reply, command

SHOWN = 100
"""Characters of a description that are shown to people."""
FEW = 20
"""Resources of a server that are shown, and as many prompts."""


@command(
    "tools",
    "settings",
    "Show the tools of the agent, and what happens to their calls.",
    is_shared=True,
)
def tools(client: SessionClient) -> Reply:
    """Show the tools that the agent has, with the rule that decides about a call without arguments."""
    found = client.describe()
    declared = {tool.name for tool in client.host.config.tool}
    listed: list[dict[str, Any]] = []
    for schema in found.tools:
        decision = found.permit(ToolRequest(call="", tool=schema.name, arguments={}))
        listed.append(
            {
                "name": schema.name,
                "description": schema.description,
                "from": _origin(schema.name, declared),
                "do": decision.do,
                "rule": decision.rule,
                "parameters": schema.parameters,
            }
        )
    data = client.view.redacted({"tools": listed})
    width = max((len(tool["name"]) for tool in listed), default=0)
    lines = [
        f"{tool['do']:<5} {tool['name']:<{width}}  {one_line(tool['description'], SHOWN)}"
        for tool in data["tools"]
    ]
    return Reply(data=data, text="\n".join(lines) or "The agent has no tools.")


def _origin(name: str, declared: set[str]) -> str:
    """Say where a tool comes from: built in, configured, of an MCP server, a package or the program."""
    if name in TOOLS.built_in:
        return "built in"
    if name in declared:
        return "configuration"
    if name.startswith(REMOTE):
        return f"mcp.{name.removeprefix(REMOTE).partition('__')[0]}"
    if name in TOOLS:
        return TOOLS.entry_points.by_name[name].origin
    return "program"


@command("skills", "settings", "Show the skills, and which are left out.", is_shared=True)
def skills(client: SessionClient) -> Reply:
    """Show the skills that a new session here is told of, and why others are left out.

    Example: steersman sessions skills last
    """
    found, faults = client.skills()
    listed = [
        {
            "name": one.name,
            "description": one.description,
            "file": str(one.file),
            "needs": one.needs,
        }
        for one in found
    ]
    data = client.view.redacted({"skills": listed, "left_out": list(faults)})
    width = max((len(one["name"]) for one in data["skills"]), default=0)
    lines = [
        f"{one['name']:<{width}}  {one_line(one['description'], SHOWN)} ({one['file']})"
        for one in data["skills"]
    ]
    lines += [f"left out: {fault}" for fault in data["left_out"]]
    return Reply(
        data=data,
        text="\n".join(lines)
        or "There are no skills. They are files `.steersman/skills/NAME/SKILL.md`.",
    )


@command("mcp", "settings", "Show the session's MCP servers and what they offer.", is_shared=True)
def mcp(client: SessionClient) -> Reply:
    """Show each server: its state, and its tools, resources and prompts."""
    servers = client.parts.servers
    found = [servers.status(name) for name in servers.names] if servers is not None else []
    data = client.view.redacted({"servers": [_view(status) for status in found]})
    text = "\n".join(_drawn(server) for server in data["servers"])
    return Reply(data=data, text=text or "No MCP server is configured: add `[mcp.NAME]`.")


@command("mcp restart", "settings", "Start an MCP server again.")
def restart_server(client: SessionClient, name: Annotated[str, Argument("NAME")]) -> Reply:
    """End a server and start it again; calls of it that are under way fail."""
    try:
        view = client.view.redacted(_view(client.parts.restart_server(name)))
    except ToolError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return Reply(ok=False, data={"name": name}, text=f"{error.message}{hint}")
    return Reply(data=view, text=_drawn(view))


def _view(status: McpStatus) -> dict[str, Any]:
    """Return a server as programs see it."""
    offer = status.offer
    return {
        "name": status.name,
        "state": status.state,
        "program": status.program,
        "protocol": status.protocol,
        "fault": status.fault or None,
        "pid": status.pid or None,
        "tools": [tool.name for tool in offer.tools],
        "resources": [resource.uri for resource in offer.resources],
        "prompts": [prompt.name for prompt in offer.prompts],
        "notes": list(offer.notes),
    }


def _drawn(view: dict[str, Any]) -> str:
    """Draw a server for people."""
    offered = [
        counted(len(view[what]), what.removesuffix("s"))
        for what in ("tools", "resources", "prompts")
        if view[what]
    ]
    head = f"{view['name']}: {view['state']}"
    parts = [part for part in (view["program"].strip(), ", ".join(offered)) if part]
    lines = [f"{head} ({'; '.join(parts)})" if parts else head]
    lines += [f"  {one_line(text, 4 * SHOWN)}" for text in (view["fault"], *view["notes"]) if text]
    if view["tools"]:
        lines.append(f"  {', '.join(view['tools'])}")
    name = view["name"]
    lines += _few([f"@{name}:{uri}" for uri in view["resources"]])
    lines += _few([f"/{name}:{prompt}" for prompt in view["prompts"]])
    return "\n".join(lines)


def _few(names: list[str]) -> list[str]:
    """Draw the first names, a line each, and how many more there are."""
    more = [f"  and {len(names) - FEW} more"] if len(names) > FEW else []
    return [f"  {one_line(name, SHOWN)}" for name in names[:FEW]] + more
