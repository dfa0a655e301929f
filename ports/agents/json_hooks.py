"""Hooks in JSON files, in the three shapes that agents use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...workflows.agent_definition import AgentDefinition
from ...workflows.document import is_list, is_table
from .entry import HookEntry, HookSyntax, is_ours
from .fault import NotUnderstood
from .json_text import JsonFault, JsonNode, cut, insert, parse

__all__ = ["ANTIGRAVITY", "CLAUDE", "COPILOT", "JsonHooks"]

Item = Callable[[str, int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class JsonHooks(HookSyntax):
    """Lists of hooks by event, under one key of the file.

    `item` makes one hook of a command and a timeout; `besides` is what a new file needs, too.
    """

    key: str
    item: Item
    besides: Mapping[str, Any]

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """List ours, wherever in the item the command stands."""
        root = _parsed(text)
        return [(name, command) for name, _, _, command in self._ours(root, agent)]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Add each at the end of its event's list."""
        for name, value in self.besides.items():
            if not _parsed(text).value:
                text = insert(text, _parsed(text), value, name)
        for entry in entries:
            text = self._insert(text, entry.name, self.item(entry.command, agent.hooks.timeout))
        _parsed(text)
        return text

    def removed(self, text: str, agent: str) -> str:
        """Cut ours out, and what is empty without them."""
        while True:
            root = _parsed(text)
            first = next(self._ours(root, agent), None)
            if first is None:
                return text
            _, place, item, _ = first
            hooks = root.child(self.key)
            assert hooks is not None
            if len(place.children) > 1:
                text = cut(text, place, item)
            elif len(hooks.children) > 1:
                text = cut(text, hooks, place)
            else:
                text = cut(text, root, hooks)

    def _ours(self, root: JsonNode, agent: str) -> Iterator[tuple[str, JsonNode, JsonNode, str]]:
        hooks = root.child(self.key)
        for place in hooks.children if hooks else ():
            for item in place.children if isinstance(place.value, list) else ():
                command = next((one for one in _texts(item.value) if is_ours(one, agent)), None)
                if command is not None:
                    yield place.key, place, item, command

    def _insert(self, text: str, name: str, item: dict[str, Any]) -> str:
        root = _parsed(text)
        hooks = root.child(self.key)
        if hooks is None:
            return insert(text, root, {name: [item]}, self.key)
        if not isinstance(hooks.value, dict):
            raise NotUnderstood(f"`{self.key}` is not an object", text, hooks.start)
        place = hooks.child(name)
        if place is None:
            return insert(text, hooks, [item], name)
        if not isinstance(place.value, list):
            raise NotUnderstood(f"`{self.key}.{name}` is not a list", text, place.start)
        return insert(text, place, item)


def _parsed(text: str) -> JsonNode:
    try:
        root = parse(text)
    except JsonFault as fault:
        raise NotUnderstood(f"not valid JSON: {fault}", text, fault.at) from fault
    if not isinstance(root.value, dict):
        raise NotUnderstood("not a JSON object", text, root.start)
    return root


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inner: list[Any] = list(value.values()) if is_table(value) else []
    for one in value if is_list(value) else inner:
        yield from _texts(one)


def _command(command: str, timeout: int) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": timeout}


CLAUDE = JsonHooks("hooks", lambda command, timeout: {"hooks": [_command(command, timeout)]}, {})
COPILOT = JsonHooks(
    "hooks",
    lambda command, timeout: {"type": "command", "bash": command, "timeoutSec": timeout},
    {"version": 1},
)
ANTIGRAVITY = JsonHooks("steersman", _command, {})
