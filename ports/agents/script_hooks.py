"""Hooks that are files of their own: a plugin that hears every event, or a script for each.

Such a file is ours or it is not: one that somebody else wrote is never touched.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from ...workflows.agent_definition import AgentDefinition
from .entry import HookEntry, HookSyntax, NotUnderstood

_MARK = "Written by `steersman hooks install"

_PLUGIN = """\
// {mark} {agent}`; `steersman hooks uninstall {agent}` takes it out.
import {{ spawn }} from "node:child_process"

const commands = {commands}

export const Steersman = async ({{ directory }}) => ({{
  event: async ({{ event }}) => {{
    const command = commands[event.type]
    const properties = event.properties ?? {{}}
    const info = properties.info ?? {{}}
    const session = properties.sessionID ?? info.id
    if (!command || !session || info.parentID) return
    const said = {{ session_id: session, cwd: info.directory ?? directory, pid: process.pid }}
    const child = spawn(command[0], command.slice(1), {{
      stdio: ["pipe", "ignore", "ignore"],
      timeout: {milliseconds},
    }})
    child.on("error", () => {{}})
    child.stdin.on("error", () => {{}})
    child.stdin.end(JSON.stringify(said))
  }},
}})
"""
_COMMAND = re.compile(r'^  ("[^"]+"): (\[.*\]),?$', re.MULTILINE)


class PluginHooks(HookSyntax):
    """A JavaScript plugin in the shape that opencode loads (https://opencode.ai/docs/plugins)."""

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """Read the commands back; a file of ours that was changed has something else to say."""
        if not text.strip():
            return []
        _require_ours(text)
        return [
            (json.loads(name), shlex.join(json.loads(words)))
            for name, words in _COMMAND.findall(text)
        ]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Write the plugin."""
        if text.strip():
            _require_ours(text)
        rows = ",\n".join(
            f"  {json.dumps(one.name)}: {json.dumps(shlex.split(one.command))}" for one in entries
        )
        return _PLUGIN.format(
            mark=_MARK,
            agent=agent.name,
            commands=f"{{\n{rows},\n}}",
            milliseconds=agent.hooks.timeout * 1000,
        )

    def removed(self, text: str, agent: str) -> str:
        """Leave nothing."""
        if text.strip():
            _require_ours(text)
        return ""


class ScriptHooks(HookSyntax):
    """One shell script; the folder has one for each event (see `installation.py`)."""

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """Read the command back."""
        if not text.strip():
            return []
        _require_ours(text)
        last = text.rstrip("\n").rpartition("\n")[2]
        return [("", last.removeprefix("exec "))]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Write the script of one event."""
        if text.strip():
            _require_ours(text)
        (entry,) = entries
        return f"#!/bin/sh\n# {_MARK} {agent.name}`.\nexec {entry.command}\n"

    def removed(self, text: str, agent: str) -> str:
        """Leave nothing."""
        if text.strip():
            _require_ours(text)
        return ""


def _require_ours(text: str) -> None:
    if _MARK not in text:
        raise NotUnderstood("somebody else wrote this file", text, 0)
