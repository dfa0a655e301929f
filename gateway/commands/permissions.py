"""`/permissions`: shows the rules in force, explains a call, and changes the session's allowances."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Annotated

from ...machines import protocol as m
from ...workflows.tools import REMOTE, is_of_server, is_rule_tool
from ..client import SessionClient
from ..views.permission import draw_rules, explained, rules_view
from .command import Argument, Reply, Text, command

Tool = Annotated[str, Argument("TOOL", help="The tool.")]


@command(
    "permissions",
    "settings",
    "Show the permission rules; try a call; allow more, or ask again.",
)
def permissions(client: SessionClient) -> Reply:
    """Show the rules in force."""
    found = client.describe()
    rules = found.permissions
    data = {"rules": rules_view(rules.rules), "allowed": rules_view(found.allowed)}
    text = draw_rules(found.allowed, rules.rules, found.policy.mode, rules.default_yes)
    return Reply(data=client.view.redacted({**data, "yes": rules.default_yes}), text=text)


permissions.verb("list", "Show the rules in force.")(permissions.function)


@permissions.verb("explain", "Say what would happen to a call, and by which rule.")
def explain_permission(client: SessionClient, tool: Tool, text: Text = "") -> Reply:
    """Explain the decision on a call."""
    found = client.describe()
    data, explanation = explained(
        found.permissions, found.allowed, tool, text, found.folder, found.permit
    )
    return Reply(data=client.view.redacted(data), text=explanation)


@permissions.verb("allow", "Run calls like this one without asking.")
def allow(
    client: SessionClient,
    tool: Tool,
    pattern: Annotated[
        str, Argument("PATTERN", is_rest=True, help="Its argument; `*` is anything.")
    ],
) -> Reply:
    """Allow calls of a tool for the rest of a session.

    Example: steersman permissions allow shell "git push*" --session last
    """
    known = _tools(client)
    if not (is_rule_tool(tool, known) and _may_be_offered(client, tool, known)):
        return Reply(ok=False, text=f"There is no tool `{tool}`; there are {', '.join(known)}.")
    is_quoted = len(pattern) > 1 and pattern[0] == pattern[-1] and pattern[0] in "\"'"
    match = pattern[1:-1] if is_quoted else pattern
    answer = client.ask(m.Allow(tool=tool, pattern=match))
    text = f"Allowed for the rest of this session: {tool} {shlex.quote(match)}."
    data = {"tool": tool, "match": match}
    return Reply(ok=bool(answer.get("ok")), data=data, text=text, news=text)


@permissions.verb("forget", "Ask again about what was allowed.")
def forget(
    client: SessionClient,
    number: Annotated[int, Argument("N", help="Its number, as `/permissions` lists it.")],
) -> Reply:
    """Ask again about calls that were allowed for the rest of a session.

    Example: steersman permissions forget 1
    """
    allowed = client.describe().allowed
    if not 0 < number <= len(allowed):
        text = f"Forget which? /permissions numbers them; 1 to {len(allowed)}."
        return Reply(ok=False, text=text)
    rule = allowed[number - 1]
    answer = client.ask(m.Allow(tool=rule.tool, pattern=rule.match, is_given=False))
    text = f"Asked about again: {rule.tool} {shlex.quote(rule.match)}."
    data = {"tool": rule.tool, "match": rule.match}
    return Reply(ok=bool(answer.get("ok")), data=data, text=text, news=text)


def _tools(client: SessionClient) -> tuple[str, ...]:
    """Name the tools that a call here can be of: configured, the agent's own, and MCP servers'."""
    servers = client.parts.servers
    own = [schema.name for schema in client.describe().tools]
    offered = [tool.schema.name for tool in servers.tools()] if servers is not None else []
    return tuple(dict.fromkeys((*client.host.config.tool_names, *own, *offered)))


def _may_be_offered(client: SessionClient, name: str, known: Collection[str]) -> bool:
    """Whether a name of an MCP server's tool is known, or its server has not said yet what it offers."""
    if name in known or not name.startswith(REMOTE) or any(sign in name for sign in "*?["):
        return True
    running = client.parts.servers
    unheard = [
        server
        for server in client.host.config.mcp
        if running is None
        or server not in running.names
        or running.status(server).state in ("unused", "starting")
    ]
    return any(is_of_server(name, server) for server in unheard)
