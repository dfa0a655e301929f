"""Reads calls of tools that a model wrote as text, in the forms that models were trained to write.

Seen are `<tool_call>{…}</tool_call>` (Qwen, Hermes), `<tools>…</tools>` and `<function=…>` (Qwen Coder),
`[TOOL_CALLS] [{…}]` (Mistral), fenced or bare JSON objects and lists, `{"function": {…}}`, and arguments
as JSON text. Only what names a tool that is offered is a call; anything else stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ...machines.json_shape import parse_json
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from .loose_json import table, tables

_NAMES = ("tool", "name", "tool_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
_MOST = 20  # places in a text that are tried
_FUNCTION = lazy_pattern(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = lazy_pattern(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)


class SaidCall(Value):
    """A call in a text; `start` is where it begins there, `fault` what is wrong with its arguments."""

    tool: str
    arguments: dict[str, Any]
    start: int = 0
    fault: str = ""


def calls_in(text: str, offered: Iterable[str]) -> list[SaidCall]:
    """Return the calls of offered tools that a text writes out, in order."""
    names = set(offered)
    if not names or not ("{" in text or "<function=" in text):
        return []
    return [call for call in (*_tagged(text), *_objects(text)) if call.tool in names]


def _tagged(text: str) -> Iterator[SaidCall]:
    for found in _FUNCTION.finditer(text):
        given = {name: _value(value) for name, value in _PARAMETER.findall(found[2])}
        if not given and found[2].strip().startswith("{"):
            value = table(_decoded(found[2], found[2].index("{"))[0])
            yield SaidCall(tool=found[1], arguments=value, start=found.start())
        else:
            yield SaidCall(tool=found[1], arguments=given, start=found.start())


def _value(text: str) -> Any:
    """Read a parameter: JSON where it is a number, a list or an object, else the text itself."""
    try:
        value: Any = parse_json(text)
    except ValueError:
        return text
    return text if isinstance(value, str) else value


def _objects(text: str) -> Iterator[SaidCall]:
    at, tries = 0, 0
    while tries < _MOST and (start := _next(text, at)) >= 0:
        tries += 1
        value, end = _decoded(text, start)
        at = end if end > start else start + 1
        for one in tables(value) or [table(value)]:
            yield from _of_object(one, start)


def _next(text: str, at: int) -> int:
    found = [place for place in (text.find("{", at), text.find("[{", at)) if place >= 0]
    return min(found, default=-1)


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """Read the JSON value that begins there, and where it ends; nothing if none does."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


def _of_object(value: dict[str, Any], start: int) -> Iterator[SaidCall]:
    inner = value.get("function")
    if isinstance(inner, dict):
        value = cast("dict[str, Any]", inner)
    tool = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), "")
    if not tool:
        return
    given: Any = next((value[name] for name in _ARGUMENTS if name in value), None)
    if isinstance(given, str):
        given = _decoded(given.strip(), 0)[0] if given.strip() else {}
        if not isinstance(given, dict):
            fault = "the arguments are not a JSON object"
            yield SaidCall(tool=tool, arguments={}, start=start, fault=fault)
            return
    if given is None:  # {"tool": "read", "path": "a.txt"}
        given = {key: one for key, one in value.items() if key not in (*_NAMES, "type", "id")}
    if isinstance(given, dict):
        yield SaidCall(tool=tool, arguments=cast("dict[str, Any]", given), start=start)
