"""Hooks in a TOML file: an array of tables `[[hooks]]` with event, command and timeout.

Ours stand together at the end, between two comments, so that taking them out is cutting one block.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from ...workflows.agent_definition import AgentDefinition
from ...workflows.document import is_list
from .entry import HookEntry, HookSyntax, is_ours
from .fault import NotUnderstood

__all__ = ["TomlHooks"]

_BEGIN = "# steersman hooks: begin (written by `steersman hooks install`)"
_END = "# steersman hooks: end"
_BLOCK = re.compile(rf"\n?^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n?", re.MULTILINE | re.DOTALL)


class TomlHooks(HookSyntax):
    """See the module."""

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """List ours."""
        return [
            (str(one.get("event", "")), str(one["command"]))
            for one in _tables(text)
            if is_ours(one.get("command"), agent)
        ]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Append a block."""
        before = _tables(text)
        new = [
            {"event": one.name, "command": one.command, "timeout": agent.hooks.timeout}
            for one in entries
        ]
        tables = ["[[hooks]]\n" + "".join(_pair(*pair) for pair in one.items()) for one in new]
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        after = f"{text}{gap}{_BEGIN}\n" + "\n".join(tables) + f"{_END}\n"
        if _tables(after) != [*before, *new]:
            raise NotUnderstood("`hooks` cannot be added to at the end of this file", text, 0)
        return after

    def removed(self, text: str, agent: str) -> str:
        """Cut the block."""
        others = [one for one in _tables(text) if not is_ours(one.get("command"), agent)]
        after = _BLOCK.sub("", text)
        if _tables(after) != others:
            raise NotUnderstood("hooks of ours stand outside of their block", text, 0)
        return after


def _tables(text: str) -> list[dict[str, Any]]:
    try:
        hooks = tomllib.loads(text).get("hooks", [])
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        at = _offset(text, int(place[1]), int(place[2])) if place else len(text)
        raise NotUnderstood(f"not valid TOML: {error}", text or "\n", at) from error
    if not is_list(hooks):
        match = re.search(r"^\s*(\[?hooks)", text, re.MULTILINE)
        raise NotUnderstood(
            "`hooks` is not an array of tables", text, match.start(1) if match else 0
        )
    return hooks


def _pair(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value)}\n"


def _offset(text: str, line: int, column: int) -> int:
    return sum(len(one) for one in text.splitlines(keepends=True)[: line - 1]) + column - 1
