"""Permissions as people see them: the rules in force, their decision on a call, the allowances.

The same view serves the slash command of a session and `steersman permissions`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...machines.conversation import ToolRequest
from ...ports.tools.permission import (
    PermissionDecision,
    Permissions,
    Rule,
    hold,
    hold_line,
    rule_mismatch,
)
from ...workflows.config import Config

if TYPE_CHECKING:
    from ...actors.environment import Permit

ARGUMENT = {"shell": "command", "fetch": "url", "step": "step"}
"""The argument that a tool's rules are matched against; for other tools it is the path."""


def rules_of(config: Config) -> list[Rule]:
    """Return the rules of a configuration, each with the file that has it, first match first."""
    sources = config.rule_sources or ("",) * len(config.permissions.rules)
    return [
        Rule(rule.tool, rule.match, rule.do, source)
        for rule, source in zip(config.permissions.rules, sources, strict=True)
    ]


def holds_of(config: Config) -> list[Rule]:
    """Return the holds of a configuration."""
    return [hold(row.tool, row.match, "the configuration") for row in config.hold]


def rules_view(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Return rules as programs see them, in the order in which they are tried, numbered from 1."""
    return [
        {
            "n": n,
            "tool": rule.tool,
            "match": rule.match,
            "do": rule.do,
            "source": rule.source or None,
        }
        for n, rule in enumerate(rules, 1)
    ]


def permit_of(config: Config, folder: Path) -> Callable[[ToolRequest], Permit]:
    """Return what decides in a session that begins with a configuration in a folder."""
    from ...actors.tool_policy import SessionChoices, SessionToolPolicy
    from ...journal.record import SessionRecord
    from ...ports.process.host import ProcessHost
    from ...ports.tools.toolbox import Toolbox

    toolbox = Toolbox(ProcessHost(), grace=0.0, output_limit=0, declared=config.tool)
    return SessionToolPolicy(
        toolbox,
        names=config.tool_names,
        permissions=Permissions(rules_of(config), holds=holds_of(config)),
        folder=folder,
        outputs=folder / "no outputs yet",
        claim=lambda _: "",
        choices=SessionChoices(SessionRecord, config.permission_mode),
    ).permit


MODES: dict[str, str] = {
    "ask": "the permission rules decide",
    "edits": "changes of files in the folder are allowed, too",
    "plan": "only tools that read and search run",
    "all": "everything runs that no rule denies",
}
"""The permission modes, and what each means."""


def draw_rules(
    allowed: Sequence[Rule], rules: Sequence[Rule], mode: str, is_yes: bool = False
) -> str:
    """Return the configured rules, the session's allowances and its mode as text for people."""
    lines = ["Permission rules; the first that matches decides."]
    width = len(str(len(rules)))
    lines += [f"{n:>{width}}. {_line(rule)}" for n, rule in enumerate(rules, 1)]
    lines.append(f"{'':>{width}}  anything else: ask")
    if allowed:
        lines.append("Allowed in this session (/permissions forget N asks again):")
        lines += [f"{n:>{width}}. {_line(rule)}" for n, rule in enumerate(allowed, 1)]
    if is_yes:
        lines.append("`--yes`: whatever else would be asked is allowed.")
    if mode != "ask":
        lines.append(f"Mode {mode}: {MODES[mode]} (/mode changes it).")
    return "\n".join(lines)


def _line(rule: Rule) -> str:
    what = rule.tool if rule.match == "*" else f"{rule.tool} {shlex.quote(rule.match)}"
    return f"{rule.do:<5} {what}" + (f"   ({rule.source})" if rule.source else "")


def explained(
    permissions: Permissions,
    allowed: Iterable[Rule],
    tool: str,
    text: str,
    folder: Path,
    permit: Callable[[ToolRequest], Permit] | None = None,
) -> tuple[dict[str, Any], str]:
    """Explain the decision on a call, as data and as text: its rule, and why no earlier rule matched.

    `permit` is what decides in a session, where the mode may overrule the rules.
    """
    arguments = {ARGUMENT.get(tool, "path"): text} if text else {}
    decision = permissions.decide(tool, arguments, folder, allowed)
    held = permissions.held(tool, arguments, folder, ())
    if held is not None and decision.do != "deny":
        decision = replace(decision, do="ask", rule=hold_line(held), source=held.source, why="")
    last = permit(ToolRequest(call="", tool=tool, arguments=arguments)) if permit else decision
    if last.do != decision.do:
        decision = replace(decision, do=last.do, rule=last.rule, source="", why="")
    tried: list[str] = []
    for n, rule in enumerate(permissions.rules, 1):
        why = rule_mismatch(rule, tool, arguments, folder)
        tried.append(f"{n}. {_line(rule)}: {why or 'this one'}")
        if not why:
            break
    data = {
        "tool": tool,
        "text": text,
        "do": decision.do,
        "rule": decision.rule,
        "source": decision.source or None,
        "outside": decision.is_outside,
        "why": decision.why or None,
        "tried": tried,
    }
    return data, "\n".join([*tried, _verdict(tool, text, decision, permissions.default_yes)])


def _verdict(tool: str, text: str, decision: PermissionDecision, is_yes: bool) -> str:
    where = f" of {decision.source}" if decision.source else ""
    out = ", which leads outside the folder" if decision.is_outside else ""
    by_flag = decision.do == "allow" and is_yes and decision.rule.endswith(": ask")
    by = "--yes" if by_flag else f"{decision.rule}{where}"
    verdict = f"{tool} {text}{out}: {decision.do}, by {by}".replace(" ,", ",").replace(" :", ":")
    return f"{verdict}\n{decision.why}" if decision.why else verdict
