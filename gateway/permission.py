"""Permissions as people see them: the rules in force, what they say to a call, what was allowed.

The same view serves the slash command of a session and `steersman permissions`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..machines.messages import Allow
from ..ports.tools.permission import PermissionDecision, Permissions, Rule, misfit
from ..workflows.config import Config
from .commands.reply import Reply
from .redaction import Redactor

if TYPE_CHECKING:
    from .conversation import Conversation


PERMISSIONS_USAGE = "[explain TOOL [TEXT] | allow TOOL PATTERN | forget N]"
ARGUMENT = {"shell": "command"}
"""By which argument a tool is judged; for all others it is the path."""


def rules_of(config: Config) -> list[Rule]:
    """Return the rules of a configuration, each with the file that has it, first match first."""
    sources = config.rule_sources or ("",) * len(config.permissions.rules)
    return [
        Rule(one.tool, one.match, one.do, source)
        for one, source in zip(config.permissions.rules, sources, strict=True)
    ]


def rules_view(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Show rules as programs see them, in the order in which they are asked, numbered from 1."""
    return [
        {"n": n, "tool": one.tool, "match": one.match, "do": one.do, "source": one.source or None}
        for n, one in enumerate(rules, 1)
    ]


def draw_rules(allowed: Sequence[Rule], rules: Sequence[Rule], is_yes: bool = False) -> str:
    """Write them for people: what the session added, then the configuration, then what is left."""
    lines = ["What applies to a tool call; of the rules the first that matches."]
    width = len(str(len(rules)))
    lines += [f"{n:>{width}}. {_line(one)}" for n, one in enumerate(rules, 1)]
    lines.append(f"{'':>{width}}  anything else: ask")
    if allowed:
        lines.append("What would be asked, but was allowed here (/permissions forget N ends it):")
        lines += [f"{n:>{width}}. {_line(one)}" for n, one in enumerate(allowed, 1)]
    if is_yes:
        lines.append("`--yes`: whatever else would be asked is allowed.")
    return "\n".join(lines)


def _line(rule: Rule) -> str:
    what = rule.tool if rule.match == "*" else f"{rule.tool} {shlex.quote(rule.match)}"
    return f"{rule.do:<5} {what}" + (f"   ({rule.source})" if rule.source else "")


def explained(
    permissions: Permissions, allowed: Iterable[Rule], tool: str, text: str, folder: Path
) -> tuple[dict[str, Any], str]:
    """Say what would happen to a call, by which rule, and why not by those before it."""
    arguments = {ARGUMENT.get(tool, "path"): text} if text else {}
    decision = permissions.decide(tool, arguments, folder, allowed)
    tried: list[str] = []
    for n, one in enumerate(permissions.rules, 1):
        why = misfit(one, tool, arguments, folder)
        tried.append(f"{n}. {_line(one)}: {why or 'this one'}")
        if not why:
            break
    data = {
        "tool": tool,
        "text": text,
        "do": decision.do,
        "rule": decision.rule,
        "source": decision.source or None,
        "outside": decision.is_outside,
        "tried": tried,
    }
    return data, "\n".join([*tried, _verdict(tool, text, decision, permissions.default_yes)])


def _verdict(tool: str, text: str, decision: PermissionDecision, is_yes: bool) -> str:
    where = f" of {decision.source}" if decision.source else ""
    out = ", which leads outside the folder" if decision.is_outside else ""
    by_flag = decision.do == "allow" and is_yes and decision.rule.endswith(": ask")
    by = "--yes" if by_flag else f"{decision.rule}{where}"
    return f"{tool} {text}{out}: {decision.do}, by {by}".replace(" ,", ",").replace(" :", ":")


def permissions_command(conversation: Conversation, argument: str) -> Reply:
    """Show the rules in force, dry-run a call, allow something for this session, or take it back."""
    live = conversation.runtime.sessions.get(conversation.session)
    if live is None:
        return Reply(False, text="The session is not open here.")
    verb, _, rest = argument.strip().partition(" ")
    tool, _, text = rest.strip().partition(" ")
    permissions, allowed = live.profile.permissions, list(live.toolbook.allowed)
    match verb:
        case "" | "list":
            data = {"rules": rules_view(permissions.rules), "allowed": rules_view(allowed)}
            said = draw_rules(allowed, permissions.rules, permissions.default_yes)
            return Reply(True, _shown({**data, "yes": permissions.default_yes}), said)
        case "explain" if tool:
            folder = Path(live.record.folder)
            data, said = explained(permissions, allowed, tool, text.strip(), folder)
            return Reply(True, _shown(data), said)
        case "allow" if tool and text.strip():
            return _allow(conversation, Rule(tool, _unquoted(text.strip()), "allow"))
        case "forget" if tool.isdigit() and 0 < int(tool) <= len(allowed):
            return _forget(conversation, allowed[int(tool) - 1])
        case "forget":
            return Reply(
                False, text=f"Forget which? /permissions numbers them; 1 to {len(allowed)}."
            )
        case _:
            return Reply(False, text=f"/permissions {PERMISSIONS_USAGE}")


def _allow(conversation: Conversation, rule: Rule) -> Reply:
    answer = conversation.ask(Allow(rule.tool, rule.match))
    said = f"Runs without asking in this session: {rule.tool} {shlex.quote(rule.match)}."
    return Reply(bool(answer.get("ok")), {"tool": rule.tool, "match": rule.match}, said)


def _forget(conversation: Conversation, rule: Rule) -> Reply:
    answer = conversation.ask(Allow(rule.tool, rule.match, is_given=False))
    said = f"Asked about again: {rule.tool} {shlex.quote(rule.match)}."
    return Reply(bool(answer.get("ok")), {"tool": rule.tool, "match": rule.match}, said)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _shown(data: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = Redactor(os.environ).data(data)
    return shown
