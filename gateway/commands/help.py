"""`/help`: the commands, as they are declared."""

from __future__ import annotations

from typing import Annotated

from ..client import SessionClient
from .command import DECLARED, GROUPS, Argument, Command, Reply, command


@command("help", "session", "List the commands, or explain one.")
def help_(
    client: SessionClient, name: Annotated[str, Argument("COMMAND", is_rest=True)] = ""
) -> Reply:
    """List the commands by group; of one that is named its verbs, too."""
    wanted = name.lower().removeprefix("/")
    found = [
        declared for declared in DECLARED.values() if wanted in (declared.name, *declared.aliases)
    ]
    shown = [
        declared for group in GROUPS for declared in DECLARED.values() if declared.group == group
    ]
    rows = [declared for declared in shown if " " not in declared.name]
    if wanted:
        rows = [verb for declared in found for verb in (declared, *declared.verbs.values())]
    if not rows:
        return Reply(ok=False, text=f"No command `/{wanted}`. /help lists them.")
    data = [{"name": row.name, "usage": row.usage, "doc": row.doc} for row in rows]
    return Reply(ok=True, data={"commands": data}, text="\n".join(_lines(row) for row in rows))


def _lines(one: Command[...]) -> str:
    return f"/{one.name} {one.usage}".rstrip().replace("|", " | ") + f"\n    {one.doc}"
