"""`steersman permissions`: the rules in force in a folder, and a dry run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..gateway.views.permission import draw_rules, explained, rules_of, rules_view
from ..gateway.wording.redaction import redactor_of
from ..machines.errors import UsageError
from ..ports.tools.permission import Permissions
from ..workflows.config import load
from ..workflows.paths import Paths
from .output import show, show_document, warn


def list_permissions(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the rules of this folder, each with its file. Raises `ConfigError`."""
    config = load(Paths.of(environ), Path.cwd(), environ)
    rules = rules_of(config)
    if as_json:
        show_document(redactor_of(environ).data({"rules": rules_view(rules)}))
    else:
        show(redactor_of(environ).text(draw_rules((), rules, config.permission_mode)))
    for notice in config.notices:
        warn(notice)
    return 0


def explain_permission(environ: Mapping[str, str], tool: str, text: str, *, as_json: bool) -> int:
    """Print how a call here would be decided, and why. Raises `ConfigError`, `UsageError`."""
    config = load(Paths.of(environ), Path.cwd(), environ)
    if tool not in config.tool_names:
        known = ", ".join(config.tool_names)
        raise UsageError(f"there is no tool `{tool}`", f"there are {known}")
    data, said = explained(Permissions(rules_of(config)), (), tool, text, Path.cwd())
    if as_json:
        show_document(redactor_of(environ).data(data))
    else:
        show(redactor_of(environ).text(said))
    for notice in config.notices:
        warn(notice)
    return 0
