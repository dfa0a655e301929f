"""`/help`: lists and explains the commands."""

from __future__ import annotations

from typing import Annotated

from ..client import SessionClient
from .command import DECLARED, GROUPS, Argument, Reply, command
from .installed import installed_commands


@command("help", "session", "List the commands, or explain one.")
def help_(
    client: SessionClient, name: Annotated[str, Argument("COMMAND", is_rest=True)] = ""
) -> Reply:
    """List the commands by group, or one command with its verbs."""
    wanted = name.lower().removeprefix("/")
    there = [*DECLARED.values(), *installed_commands().values()]
    found = [declared for declared in there if wanted in (declared.name, *declared.aliases)]
    shown = [declared for group in GROUPS for declared in there if declared.group == group]
    rows = [declared for declared in shown if " " not in declared.name]
    if wanted:
        rows = [verb for declared in found for verb in (declared, *declared.verbs.values())]
    if not rows:
        return Reply(ok=False, text=f"No command `/{wanted}`. /help lists them.")
    data = [{"name": row.name, "usage": row.usage, "doc": row.doc} for row in rows]
    lines = [
        f"/{row.name} {row.usage}".rstrip().replace("|", " | ") + f"\n    {row.doc}" for row in rows
    ]
    return Reply(ok=True, data={"commands": data}, text="\n".join(lines))
