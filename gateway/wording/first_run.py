"""The greeting before the first message: the model, its permissions, and how to change them.

Each home shows a screen once, then one line. A file in the state folder marks the screen as shown.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...machines.conversation import ToolRequest
from ...machines.errors import ConfigError
from ...ports.tools.sandbox import SandboxPolicy, bubblewrap
from ...workflows.paths import Paths, write_private
from ...workflows.providers import EMBEDDED
from ..interface import ChatHost

if TYPE_CHECKING:
    from ...actors.inspection import SessionDescription
    from ...ports.models.choice import Choice

TRIES = (
    ("read", {"path": "."}, "read here"),
    ("write", {"path": "x"}, "write here"),
    ("shell", {"command": "x"}, "run commands"),
    ("read", {"path": "/"}, "look outside"),
)
"""Sample calls; the greeting shows what the permission rules and the mode decide about each."""
WELCOME = "Welcome. Type a task and press Enter; you can type on while the agent works."


def opening_notices(host: ChatHost) -> list[str]:
    """Return what a chat shows at its start: the model, unless the welcome does, and the notices."""
    notices = [*host.config.notices, *host.notices]
    if host.choice is None or any(notice.startswith(WELCOME) for notice in notices):
        return notices
    return [host.choice.line, *notices]


def ways_on(host: ChatHost, keys: str = "") -> str:
    """Return the line that says how to go on, and what becomes of it all; `keys` names more help."""
    return f"/help lists the commands{keys}. Ctrl-D leaves; {host.remains}."


def greeting(paths: Paths, found: SessionDescription, model: str, sandbox: SandboxPolicy) -> str:
    """Return the screen the first time, and the one line from then on."""
    shown = paths.state / "welcomed"
    if shown.exists():
        return rights_line(found, sandbox)
    with contextlib.suppress(OSError, ConfigError):  # then the next start shows the screen again
        write_private(shown, b"")
    return _screen(paths, found, model, sandbox)


def rights_line(found: SessionDescription, sandbox: SandboxPolicy) -> str:
    """Return the one line about what the agent may do."""
    boxed = ", in a sandbox" if sandbox.is_in_force else ""
    return f"{rights(found)}{boxed}; /permissions shows the rules"


def chosen_line(data: Mapping[str, Any]) -> str:
    """Say which settings of a session a person changed, by its dump; empty if there are none."""
    chosen = list(_chosen(data))
    return f"Chosen in this session: {'; '.join(chosen)}." if chosen else ""


def _chosen(data: Mapping[str, Any]) -> Iterator[str]:
    if mode := data.get("busy_mode"):
        yield f"busy mode `{mode}`"
    if (is_auto_queue := data.get("is_auto_queue")) is not None:
        yield f"auto-queue {'on' if is_auto_queue else 'off'}"
    if model := data.get("chosen_model"):
        yield f"model {model}"
    for title, of in (("held", "holds"), ("not asked about", "allowed")):
        if rules := data.get(of):
            yield f"{title}: {', '.join(f'{tool} {shlex.quote(match)}' for tool, match in rules)}"


def lacking(choice: Choice | None, cache: Path, environ: Mapping[str, str]) -> list[str]:
    """Return a notice if the model of a chat lacks something: why, and the next step."""
    if choice is None:
        return []
    if choice.config.provider != EMBEDDED:
        key = choice.config.api_key_env
        is_lacking = key and not environ.get(key)
        return [f"{choice.name}: `{key}` is not set, so no key is sent"] if is_lacking else []
    from ...ports.models.availability import availability

    found = availability(choice.config, cache, environ)
    if found.state == "ready":
        return []
    return [f"{choice.name} cannot answer yet ({found.text}): {found.hint}".removesuffix(": ")]


def _screen(paths: Paths, found: SessionDescription, model: str, sandbox: SandboxPolicy) -> str:
    """Return the lines about the model, the folder and the permissions, and how to change each."""
    rows = (
        ("model", model.removeprefix("model "), "/model, --model NAME"),
        ("folder", str(found.folder), "--cwd DIR"),
        ("agent", rights(found), "/permissions, /mode, --yes"),
        ("sandbox", _sandbox(sandbox), "[tools] sandbox"),
        ("settings", str(paths.config_file), "`steersman config show`"),
        ("kept in", str(paths.state), "STEERSMAN_HOME"),
    )
    width = max(len(name) for name, _, _ in rows)
    lines = [WELCOME, "This is shown once; brackets show how to change each."]
    lines += [f"  {name:<{width}}  {what} ({change})" for name, what, change in rows]
    lines.append("`steersman tour` shows in a minute what the keys do.")
    return "\n".join(lines)


def rights(found: SessionDescription) -> str:
    """Write which of the sample calls are allowed, asked about, or denied, and the mode if it is set."""
    decided: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for tool, arguments, what in TRIES:
        permit = found.permit(ToolRequest(call="", tool=tool, arguments=arguments))
        decided[permit.do].append(what)
    rows = (("allow", "may", "and"), ("ask", "asks to", "and"), ("deny", "may not", "or"))
    parts = [f"{word} {_listed(decided[do], last)}" for do, word, last in rows if decided[do]]
    mode = "" if found.policy.mode == "ask" else f"mode {found.policy.mode}: "
    return mode + "; ".join(parts)


def _listed(whats: list[str], last: str) -> str:
    return f" {last} ".join(filter(None, (", ".join(whats[:-1]), whats[-1])))


def _sandbox(policy: SandboxPolicy) -> str:
    program, fault = bubblewrap()
    if policy.mode == "off":
        return "off" + (', but bubblewrap is here: "auto" uses it' if program else f"; {fault}")
    if fault:
        return policy.notice() or f"none: {fault}; with it, commands {policy.limits}"
    return f"on: commands {policy.limits}"
