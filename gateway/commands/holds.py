"""`/hold` and `/holds`: calls that wait for a person, whether they are allowed or not."""

from __future__ import annotations

import shlex
from typing import Annotated

from ...machines import protocol as m
from ...ports.tools.permission import hold as held
from ...ports.tools.text import counted
from ...workflows.tools import is_rule_tool
from ..client import SessionClient
from ..views.permission import rules_view
from .command import Argument, Reply, command


@command("holds", "settings", "Show which tool calls wait for a person.", is_shared=True)
def holds(client: SessionClient) -> Reply:
    """Show the holds of the configuration and of the session.

    Example: steersman sessions holds last
    """
    own = [held(*one) for one in client.record().holds]
    found = [*client.describe().permissions.holds, *own]
    lines = [f"{rule.tool} {shlex.quote(rule.match)}  ({rule.source})" for rule in found]
    data = {"holds": [{**row, "do": "hold"} for row in rules_view(found)]}
    text = "\n".join(lines) or "Nothing is held. `/hold TOOL [PATTERN]` holds such calls."
    return Reply(data=client.view.redacted(data), text=text)


@command("hold", "settings", "Have calls of a tool wait for you, allowed or not; `off` ends that.")
def hold(
    client: SessionClient,
    tool: Annotated[str, Argument("TOOL|off", help="The tool, or `off`.")],
    pattern: Annotated[
        str, Argument("PATTERN", is_rest=True, help="Its argument; all calls if left out.")
    ] = "*",
) -> Reply:
    """Hold calls of a tool for the rest of a session: each waits for a person before it runs.

    You let it run, change its arguments, answer in its place or deny it. `off` ends what this session
    holds; what the configuration holds stays.

    Example: steersman sessions hold last shell "git push*"
    """
    chosen = client.record().holds
    if tool == "off":
        client.ask(m.PolicyChange(holds=()))
        text = f"{counted(len(chosen), 'hold')} ended." if chosen else "This session held nothing."
        return Reply(data={"holds": []}, text=text, news=text if chosen else "")
    known = tuple(schema.name for schema in client.describe().tools)
    if not is_rule_tool(tool, (*client.host.config.tool_names, *known)):
        return Reply(ok=False, text=f"There is no tool `{tool}`; there are {', '.join(known)}.")
    is_quoted = len(pattern) > 1 and pattern[0] == pattern[-1] and pattern[0] in "\"'"
    match = pattern[1:-1] if is_quoted else pattern
    others = tuple(one for one in chosen if one != (tool, match))
    answer = client.ask(m.PolicyChange(holds=(*others, (tool, match))))
    text = f"Held for the rest of this session: {tool} {shlex.quote(match)}."
    data = {"tool": tool, "match": match}
    return Reply(ok=bool(answer.get("ok", True)), data=data, text=text, news=text)
