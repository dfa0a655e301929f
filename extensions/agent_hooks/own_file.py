"""Hooks in separate files: a plugin that receives every event, or a script for each event.

A file that another program wrote is never changed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from ...workflows.agent_definition import AgentDefinition
from .syntax import HookEntry, HookSyntax, NotUnderstood

_MARK = "Written by `steersman hooks install"

_PLUGIN = """\
// {mark} {agent}`; `steersman hooks uninstall {agent}` removes it.
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


class OwnFile(HookSyntax):
    """A file that this program writes as a whole."""

    def removed(self, text: str, agent: str) -> str:
        """Return an empty text: the whole file is ours."""
        if text.strip() and _MARK not in text:
            raise NotUnderstood("another program wrote this file", text, 0)
        return ""


class PluginHooks(OwnFile):
    """A JavaScript plugin in the shape that opencode loads (https://opencode.ai/docs/plugins)."""

    def found(self, text: str, agent: str) -> list[HookEntry]:
        """Read the commands back, also from a file that was changed since."""
        self.removed(text, agent)
        commands = _COMMAND.findall(text)
        return [HookEntry(json.loads(of), shlex.join(json.loads(words))) for of, words in commands]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Write the plugin."""
        commands = {entry.name: shlex.split(entry.command) for entry in entries}
        rows = [f"  {json.dumps(name)}: {json.dumps(words)},\n" for name, words in commands.items()]
        return _PLUGIN.format(
            mark=_MARK,
            agent=agent.name,
            commands=f"{{\n{''.join(rows)}}}",
            milliseconds=agent.hooks.timeout * 1000,
        )


class ScriptHooks(OwnFile):
    """One shell script; the folder has one for each event (see `installation.py`)."""

    def found(self, text: str, agent: str) -> list[HookEntry]:
        """Read the command back."""
        self.removed(text, agent)
        last = text.rstrip("\n").rpartition("\n")[2]
        return [HookEntry("", last.removeprefix("exec "))] if text.strip() else []

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Write the script of one event."""
        (entry,) = entries
        return f"#!/bin/sh\n# {_MARK} {agent.name}`.\nexec {entry.command}\n"


PLUGIN = PluginHooks()
SCRIPT = ScriptHooks()
