"""Hooks in a TOML file: an array of tables `[[hooks]]` with event, command and timeout.

This program's hooks are one block at the end, between two comments, so that removing them cuts one block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ...workflows.agent_definition import AgentDefinition
from ...workflows.document import is_list
from ...workflows.foreign_file import parse_toml
from .syntax import HookEntry, HookSyntax, NotUnderstood, is_ours

_BEGIN = "# steersman hooks: begin (written by `steersman hooks install`)"
_END = "# steersman hooks: end"
_BLOCK = re.compile(  # up to an end before which no other begins
    rf"\n?^{re.escape(_BEGIN)}\n(?:(?!^{re.escape(_BEGIN)}).)*?^{re.escape(_END)}\n?",
    re.MULTILINE | re.DOTALL,
)


class TomlHooks(HookSyntax):
    """Edits such files; see `HookSyntax`."""

    def found(self, text: str, agent: str) -> list[HookEntry]:
        """List this program's hooks."""
        return [
            HookEntry(str(table.get("event", "")), str(table["command"]))
            for table in _tables(text)
            if is_ours(table.get("command"), agent)
        ]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Append a block."""
        before = _tables(text)
        new = [
            {"event": entry.name, "command": entry.command, "timeout": agent.hooks.timeout}
            for entry in entries
        ]
        rows = [[f"{key} = {json.dumps(value)}\n" for key, value in table.items()] for table in new]
        tables = [f"[[hooks]]\n{''.join(row)}" for row in rows]
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        after = f"{text}{gap}{_BEGIN}\n" + "\n".join(tables) + f"{_END}\n"
        if _tables(after) != [*before, *new]:
            raise NotUnderstood("`hooks` cannot be added to at the end of this file", text, 0)
        return after

    def removed(self, text: str, agent: str) -> str:
        """Cut the block."""
        others = [table for table in _tables(text) if not is_ours(table.get("command"), agent)]
        after = _BLOCK.sub("", text)
        if _tables(after) != others:
            raise NotUnderstood("steersman's hooks are outside of their block", text, 0)
        return after


def _tables(text: str) -> list[dict[str, Any]]:
    try:
        hooks = parse_toml(text).get("hooks", [])
    except ValueError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        before = text.splitlines(keepends=True)[: int(place[1]) - 1] if place else [text]
        at = sum(map(len, before)) + (int(place[2]) - 1 if place else 0)
        raise NotUnderstood(f"not valid TOML: {error}", text or "\n", at) from error
    if not is_list(hooks):
        match = re.search(r"^[ \t]*(\[?hooks)", text, re.MULTILINE)
        at = match.start(1) if match else 0
        raise NotUnderstood("`hooks` is not an array of tables", text, at)
    return hooks


TOML = TomlHooks()
