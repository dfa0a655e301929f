"""`/help`: lists and explains the commands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

from ..client import SessionClient
from .command import DECLARED, GROUPS, Argument, Command, Reply, command
from .installed import installed_commands


@command(
    "help",
    "session",
    "List the commands by group, or explain a group or a command.",
    is_shared=True,
)
def help_(
    client: SessionClient, name: Annotated[str, Argument("GROUP|COMMAND", is_rest=True)] = ""
) -> Reply:
    """List the groups, or explain the commands of a group, or one command with its verbs."""
    templates = [name for name in client.templates() if name not in DECLARED]
    return explained(name, templates, "? lists the keys.")


def explained(
    name: str, templates: Sequence[str], more: str, *, left_out: Collection[str] = ()
) -> Reply:
    """Explain a group or a command, or list them all, with `more` below; some commands are left out."""
    wanted = name.lower().removeprefix("/")
    commands = [*DECLARED.values(), *installed_commands().values()]
    there = [declared for declared in commands if declared.name not in left_out]
    shown = [declared for group in GROUPS for declared in there if declared.group == group]
    rows = [declared for declared in shown if " " not in declared.name]
    if not wanted:
        data = {**_data(rows), "templates": [*templates]}
        return Reply(data=data, text=f"{_overview(rows, templates)} {more}")
    found = [declared for declared in there if wanted in (declared.name, *declared.aliases)]
    of_group = [declared for declared in rows if declared.group == wanted]
    rows = [verb for declared in found for verb in (declared, *declared.verbs.values())]
    rows = rows or of_group
    if not rows:
        groups = ", ".join(GROUPS)
        return Reply(
            ok=False,
            text=f"No command or group `{name}`. /help lists them; the groups are {groups}.",
        )
    return Reply(data=_data(rows), text="\n".join(map(_explained, rows)))


def _data(rows: Sequence[Command[...]]) -> dict[str, Any]:
    return {
        "commands": [
            {"name": row.name, "group": row.group, "usage": row.usage, "doc": row.doc}
            for row in rows
        ]
    }


def _overview(rows: Sequence[Command[...]], templates: Sequence[str]) -> str:
    """Write one line for each group: its word, and the names of its commands; then your templates."""
    width = max(map(len, GROUPS))
    lines = [
        f"{group:<{width}}  {' '.join(f'/{row.name}' for row in rows if row.group == group)}"
        for group in GROUPS
    ]
    if templates:
        lines.append(f"{'yours':<{width}}  {' '.join(f'/{name}' for name in templates)}")
    return "\n".join([*lines, "/help GROUP or /help COMMAND explains."])


def _explained(row: Command[...]) -> str:
    return f"/{row.name} {row.usage}".rstrip().replace("|", " | ") + f"\n    {row.doc}"
