"""Hooks in a YAML file: under `hooks`, for each event a list of commands.

The text is composed to find the place of each value; lines are inserted and removed, and the result is
read again: unless it has the previous values and this program's hooks, nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...workflows.agent_definition import AgentDefinition
from ...workflows.document import is_list, is_table
from ...workflows.extras import how_to_install
from .syntax import HookEntry, HookSyntax, NotUnderstood, is_ours

_KEY = "hooks"


class YamlHooks(HookSyntax):
    """Edits such files; see `HookSyntax`."""

    def found(self, text: str, agent: str) -> list[HookEntry]:
        """List this program's hooks."""
        found: list[HookEntry] = []
        for name, items in _hooks(text).items():
            commands = [_command(item) for item in items] if is_list(items) else []
            ours = (command for command in commands if is_ours(command, agent))
            found += [HookEntry(str(name), command) for command in ours]
        return found

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Add each entry at the start of its event's list, which is created if it is missing."""
        for entry in entries:
            wanted = _hooks(text)
            item = {"command": entry.command, "timeout": agent.hooks.timeout}
            wanted[entry.name] = [item, *(wanted.get(entry.name) or [])]
            new = _insert(text, entry.name, item)
            if _hooks(new) != wanted or _others(new) != _others(text):
                raise NotUnderstood(f"`{_KEY}.{entry.name}` cannot be added to", text, 0)
            text = new
        return text

    def removed(self, text: str, agent: str) -> str:
        """Remove this program's hooks line by line, and the lists that become empty."""
        while ours := self.found(text, agent):
            name, command = ours[0]
            wanted = _hooks(text)
            wanted[name] = [item for item in wanted[name] if _command(item) != command]
            left = {key: items for key, items in wanted.items() if items or key != name}
            new = _cut(text, name, command)
            if _hooks(new) != left or _others(new) != _others(text):
                raise NotUnderstood(f"`{_KEY}.{name}` cannot be cut out of", text, 0)
            text = new
        return text


def _hooks(text: str) -> dict[str, Any]:
    hooks = _loaded(text).get(_KEY)
    if hooks is None:
        return {}
    if not is_table(hooks):
        raise NotUnderstood(f"`{_KEY}` is not a mapping", text, max(0, text.find(_KEY)))
    return dict(hooks)


def _others(text: str) -> dict[Any, Any]:
    return {key: value for key, value in _loaded(text).items() if key != _KEY}


def _loaded(text: str) -> dict[Any, Any]:
    data = _read(text, "load")
    if data is None:
        return {}
    if not is_table(data):
        raise NotUnderstood("not a YAML mapping", text, 0)
    return data


def _read(text: str, how: str) -> Any:
    """Read a text; `how` is `load` for its values, `compose` for the nodes with their places."""
    try:
        from ruamel import yaml
        from ruamel.yaml.error import MarkedYAMLError, YAMLError
    except ImportError as error:
        missing = NotUnderstood("to read YAML needs the package `ruamel.yaml`")
        missing.hint = how_to_install("hooks")
        raise missing from error
    try:
        return getattr(yaml.YAML(typ="safe", pure=True), how)(text)
    except YAMLError as error:
        marked: Any = error if isinstance(error, MarkedYAMLError) else None
        mark = marked.problem_mark if marked else None
        what = marked.problem if marked else error
        raise NotUnderstood(f"not valid YAML: {what}", text, mark.index if mark else 0) from error


def _insert(text: str, name: str, item: dict[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    pair = _pair(_read(text, "compose"), _KEY)
    if pair is None:
        return "".join([*lines, f"{_KEY}:\n", f"  {name}:\n", *_written(item, 4)])
    key, hooks = pair
    _open(lines, hooks, text)
    step = hooks.start_mark.column if hooks.value else key.start_mark.column + 2
    pair = _pair(hooks, name)
    if pair is None:
        at = key.end_mark.line + 1
        lines[at:at] = [f"{' ' * step}{name}:\n", *_written(item, step + 2)]
        return "".join(lines)
    key, items = pair
    _open(lines, items, text)
    column = items.start_mark.column if items.value else key.start_mark.column + 2
    at = key.end_mark.line + 1
    lines[at:at] = _written(item, column)
    return "".join(lines)


def _open(lines: list[str], node: Any, text: str) -> None:
    """Make room for lines below a key: remove an empty value, refuse one on the same line."""
    row, left = int(node.start_mark.line), int(node.start_mark.column)
    if node.value and node.value not in ("~", "null"):
        if node.flow_style or not isinstance(node.value, list):
            what = "this is written on one line; write it as a block"
            raise NotUnderstood(what, text, int(node.start_mark.index))
    elif node.value in ([], "~", "null") and node.end_mark.line == row < len(lines):
        line, right = lines[row], int(node.end_mark.column)
        kept = (line[:left].rstrip() + line[right:].rstrip()).rstrip()
        lines[row] = f"{kept}\n"


def _cut(text: str, name: str, command: str) -> str:
    lines = text.splitlines(keepends=True)
    pair = _pair(_read(text, "compose"), _KEY)
    assert pair is not None
    hooks_key, hooks = pair
    pair = _pair(hooks, name)
    assert pair is not None
    key, items = pair
    for item in items.value:
        is_map = is_list(item.value) and all(isinstance(child, tuple) for child in item.value)
        values = {key.value: value for key, value in item.value} if is_map else {}
        if "command" in values and values["command"].value == command:
            start = item.start_mark.line
            end = max(value.end_mark.line for value in values.values())
            if len(items.value) == 1:
                start = key.start_mark.line
                if len(hooks.value) == 1:
                    start = hooks_key.start_mark.line
            return "".join(lines[:start] + lines[end + 1 :])
    return text


def _pair(node: Any, name: str) -> Any:
    """Find a key and its value in a composed mapping."""
    pairs: Any = node.value if node is not None else None
    if not is_list(pairs):
        return None
    return next((pair for pair in pairs if pair[0].value == name), None)


def _command(item: Any) -> Any:
    return item.get("command") if is_table(item) else None


def _written(item: dict[str, Any], indent: int) -> list[str]:
    first, *rest = (f"{key}: {json.dumps(value)}\n" for key, value in item.items())
    blank = " " * indent
    return [f"{blank}- {first}", *(f"{blank}  {line}" for line in rest)]


YAML = YamlHooks()
