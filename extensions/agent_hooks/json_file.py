"""Hooks in JSON files, in the three shapes that agents use, and the editing of such files.

`JsonNode` has the places of values in the text, so that an edit changes nothing else: edits are
insertions and cuts in the text, and the rest stays byte for byte. Comments and trailing commas are
accepted, since several agents allow them. The grammar is RFC 8259's, with comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ...machines.json_shape import parse_json
from ...machines.value import Value
from ...workflows.agent_definition import AgentDefinition
from ...workflows.document import is_list, is_table
from .syntax import HookEntry, HookSyntax, NotUnderstood, is_ours

_COMMENT = r"//[^\n]*|/\*[\s\S]*?\*/"
_BLANK = re.compile(rf"(?:[ \t\r\n]+|{_COMMENT})*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class JsonNode(Struct, kw_only=True):
    """A value and its place in the text; `begin` is the start of its key, if it has one."""

    value: Any
    begin: int
    start: int
    end: int
    key: str = ""
    children: list[JsonNode] = field(default_factory=list["JsonNode"])

    def child(self, key: str) -> JsonNode | None:
        """Find a member by its key; of several the last one counts."""
        return next((child for child in reversed(self.children) if child.key == key), None)


def parse(text: str) -> JsonNode:
    """Read a whole object; an empty text is an empty one. Raises `NotUnderstood`."""
    start = _skip(text, 0)
    if start == len(text):
        return JsonNode(value={}, begin=start, start=start, end=start)
    node = _value(text, start, 0)
    rest = _skip(text, node.end)
    if rest < len(text):
        raise _fault("there is more behind the end", text, rest)
    if not isinstance(node.value, dict):
        raise NotUnderstood("not a JSON object", text, node.start)
    return node


def _fault(what: str, text: str, at: int) -> NotUnderstood:
    return NotUnderstood(f"not valid JSON: {what}", text, at)


def insert(text: str, container: JsonNode, value: Any, key: str = "") -> str:
    """Add a value as the last one of an object or a list."""
    if container.start == container.end:  # an empty file
        return text[: container.start] + json.dumps({key: value}, indent=2) + "\n"
    inner, outer = _indent(text, container), ""
    if not container.children:
        line = text[text.rfind("\n", 0, container.start) + 1 : container.start]
        outer = line[: len(line) - len(line.lstrip(" \t"))]
        inner = outer + "  "
    head = f"{json.dumps(key)}: " if key else ""
    if inner is None:
        piece = f" {head}{json.dumps(value, ensure_ascii=False)}"
    else:
        written = json.dumps(value, indent=2, ensure_ascii=False)
        piece = f"\n{head}{written}".replace("\n", f"\n{inner}")
    if not container.children:
        rest = text[container.start + 1 : container.end - 1]
        rest = rest if rest.strip() else f"\n{outer}"
        return text[: container.start + 1] + piece + rest + text[container.end - 1 :]
    last = container.children[-1]
    comma = _comma(text, last.end)
    at = last.end if comma is None else comma + 1
    line_end = text.find("\n", at)
    behind = at  # a comment on the same line belongs to what stands before it
    if inner is not None and 0 <= line_end <= _skip(text, at):
        behind = line_end
    added = "," if comma is None else ""
    return text[:at] + added + text[at:behind] + piece + text[behind:]


def cut(text: str, container: JsonNode, child: JsonNode) -> str:
    """Remove a value from an object or a list, with its key and one comma."""
    place = container.children.index(child)
    start = len(text[: child.begin].rstrip(" \t"))
    if text[:start].endswith("\n"):  # the line end before it goes, too
        start -= 2 if text[:start].endswith("\r\n") else 1
    comma = _comma(text, child.end)
    end = child.end if comma is None else comma + 1
    rest = text[end:]
    if place + 1 < len(container.children):
        return text[:start] + rest
    if place == 0:
        closing = _skip(text, end)
        return text[:start] + (text[closing:] if text[end:closing].isspace() else rest)
    before = container.children[place - 1].end
    comma = _comma(text, before)
    assert comma is not None
    return text[:comma] + text[comma + 1 : start] + rest


def _value(text: str, at: int, depth: int) -> JsonNode:
    if depth > 100:
        raise _fault("it is nested too deeply", text, at)
    if text[at : at + 1] in ("{", "["):
        return _container(text, at, depth)
    match = _STRING.match(text, at) or _SCALAR.match(text, at)
    if match is None:
        raise _fault("a value is expected here", text, at)
    return JsonNode(value=_scalar(text, match), begin=at, start=at, end=match.end())


def _container(text: str, start: int, depth: int) -> JsonNode:
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    node = JsonNode(value={} if is_object else [], begin=start, start=start, end=start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        begin, key = at, ""
        if is_object:
            match = _STRING.match(text, at)
            if match is None:
                raise _fault("a key in quotes is expected here", text, at)
            key, at = _scalar(text, match), _skip(text, match.end())
            if text[at : at + 1] != ":":
                raise _fault("`:` is expected here", text, at)
            at = _skip(text, at + 1)
        child = _value(text, at, depth + 1)
        child.begin, child.key = begin, key
        node.children.append(child)
        if is_object:
            node.value[key] = child.value
        else:
            node.value.append(child.value)
        at = _skip(text, child.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _fault(f"`,` or `{closing}` is expected here", text, at)
    node.end = at + 1
    return node


def _scalar(text: str, match: re.Match[str]) -> Any:
    try:
        return parse_json(match[0])
    except ValueError as error:
        raise _fault("this is no JSON value", text, match.start()) from error


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _comma(text: str, at: int) -> int | None:
    at = _skip(text, at)
    return at if text[at : at + 1] == "," else None


def _indent(text: str, container: JsonNode) -> str | None:
    """Return the indent of the children; none if all are on one line."""
    for child in reversed(container.children):
        line = text[text.rfind("\n", 0, child.begin) + 1 : child.begin]
        if not line.strip() and "\n" in text[container.start : child.begin]:
            return line
    return None


class JsonHooks(Value, HookSyntax):
    """Lists of hooks by event, under one key of the file.

    `item` makes one hook from a command and a timeout; `besides` are further keys of a new file.
    """

    key: str
    item: Callable[[str, int], dict[str, Any]]
    besides: Mapping[str, Any]

    def check(self, text: str, agent: AgentDefinition) -> None:
        """Reject comments and trailing commas that the agent's own parser does not take."""
        parse(text)
        dialect = agent.hooks.json_dialect
        if dialect == "jsonc" or not text[_skip(text, 0) :]:
            return
        if dialect == "comments":  # they become blanks, so that every offset stays
            tokens = re.compile(f"{_STRING.pattern}|({_COMMENT})")
            text = tokens.sub(lambda found: " " * len(found[0]) if found[1] else found[0], text)
        try:
            parse_json(text)
        except ValueError as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else 0
            which = "trailing commas" if dialect == "comments" else "comments and trailing commas"
            message = f"{agent.name} reads JSON without {which}, and would ignore the whole file"
            raise NotUnderstood(message, text, at) from error

    def found(self, text: str, agent: str) -> list[HookEntry]:
        """List this program's hooks, wherever the command is in an item."""
        return [
            HookEntry(place.key, command) for _, place, _, command in self._ours(parse(text), agent)
        ]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Add each entry at the end of its event's list."""
        for name, value in self.besides.items():
            if not parse(text).value:
                text = insert(text, parse(text), value, name)
        for entry in entries:
            text = self._insert(text, entry.name, self.item(entry.command, agent.hooks.timeout))
        parse(text)
        return text

    def removed(self, text: str, agent: str) -> str:
        """Remove this program's hooks, and the lists that become empty."""
        while True:
            root = parse(text)
            first = next(self._ours(root, agent), None)
            if first is None:
                return text
            hooks, place, item, _ = first
            if len(place.children) > 1:
                text = cut(text, place, item)
            elif len(hooks.children) > 1:
                text = cut(text, hooks, place)
            else:
                text = cut(text, root, hooks)

    def _ours(
        self, root: JsonNode, agent: str
    ) -> Iterator[tuple[JsonNode, JsonNode, JsonNode, str]]:
        """Yield our hooks: the node of all, that of their event, their own, and the command."""
        if (hooks := root.child(self.key)) is None:
            return
        for place in hooks.children:
            for item in place.children if isinstance(place.value, list) else ():
                command = next((text for text in _texts(item.value) if is_ours(text, agent)), None)
                if command is not None:
                    yield hooks, place, item, command

    def _insert(self, text: str, name: str, item: dict[str, Any]) -> str:
        root = parse(text)
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


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inner: list[Any] = list(value.values()) if is_table(value) else []
    for item in value if is_list(value) else inner:
        yield from _texts(item)


def _command(command: str, timeout: int) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": timeout}


CLAUDE = JsonHooks(
    key="hooks", item=lambda command, timeout: {"hooks": [_command(command, timeout)]}, besides={}
)
COPILOT = JsonHooks(
    key="hooks",
    item=lambda command, timeout: {"type": "command", "bash": command, "timeoutSec": timeout},
    besides={"version": 1},
)
ANTIGRAVITY = JsonHooks(key="steersman", item=_command, besides={})
