"""`steersman permissions`: the rules in force in a folder, and a dry run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ...gateway.commands import permissions as verbs
from ...gateway.views.permission import draw_rules, explained, rules_of, rules_view
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import UsageError
from ...ports.tools.permission import Permissions
from ...workflows.config import load
from ...workflows.paths import Paths
from ..options import Json, group
from ..output import show, show_document, warn
from .session_command import twin

permissions = group(
    "Show what tools may do here without asking, and try a call.",
    'steersman permissions explain "git status"',
)


@permissions.command("list")
def permissions_list(as_json: Json = False) -> int:
    """List the rules in force in this folder, in order.

    Example: steersman permissions list
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    rules = rules_of(config)
    if as_json:
        show_document(redactor_of(os.environ).data({"rules": rules_view(rules)}))
    else:
        show(redactor_of(os.environ).text(draw_rules((), rules, config.permission_mode)))
    for notice in config.notices:
        warn(notice)
    return 0


@permissions.command("explain")
def permissions_explain(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A command line; with --tool, its argument.")
    ] = "",
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="The tool, if it is not `shell`.")
    ] = "shell",
    as_json: Json = False,
) -> int:
    """Show what would happen to a tool call, and by which rule. Runs nothing.

    Example: steersman permissions explain --tool write src/main.py
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    if tool not in config.tool_names:
        known = ", ".join(config.tool_names)
        raise UsageError(f"there is no tool `{tool}`", f"there are {known}")
    data, said = explained(Permissions(rules_of(config)), (), tool, text, Path.cwd())
    if as_json:
        show_document(redactor_of(os.environ).data(data))
    else:
        show(redactor_of(os.environ).text(said))
    for notice in config.notices:
        warn(notice)
    return 0


permissions.command("allow")(twin(verbs.allow))
permissions.command("forget")(twin(verbs.forget))
