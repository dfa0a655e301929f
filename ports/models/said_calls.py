"""Reads what a model wrote as text for what it is: calls of tools, and the JSON actions of `dialect.py`.

Models write calls in the forms that they were trained to write. Seen are `<tool_call>{…}</tool_call>`
(Qwen, Hermes), `<tools>…</tools>` and `<function=…>` (Qwen Coder), `[TOOL_CALLS] [{…}]` (Mistral), fenced
or bare JSON objects and lists, `{"function": {…}}`, and arguments as JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import field

from ...machines.conversation import ToolRequest
from ...machines.json_shape import is_object, parse_json
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from .loose_json import table, tables
from .reply import parse_arguments

_NAMES = ("tool", "name", "tool_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
_WORDS = ("say", "text", "answer", "message")
_MOST = 20  # places in a text that are tried
_OPEN = lazy_pattern(r"\[?\{")
_FUNCTION = lazy_pattern(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = lazy_pattern(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_BLANKS = lazy_pattern(r"\s+")
_LONGEST_BEGINNING = 100
"""Characters in which an answer has begun as `_SAY` says, blanks counted as one."""
_SAY = lazy_pattern(r'\s*(?:```(?:json)?\s*)?\{\s*"say"\s*:\s*"')
# As much of a JSON string as is surely whole: no half escape, no half pair of surrogates.
_WHOLE = lazy_pattern(
    r"(?:[^\"\\]"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    r'|\\["\\/bfnrt])+'
)


class SaidCall(Value):
    """A call in a text; `start` is where it begins there, `fault` what is wrong with its arguments."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    start: int = 0
    fault: str = ""

    def request(self, call: str) -> ToolRequest:
        """Return it as a call with this id."""
        return ToolRequest(call=call, tool=self.tool, arguments=self.arguments, fault=self.fault)


def calls_in(text: str, offered: Iterable[str]) -> list[SaidCall]:
    """Return the calls of offered tools that a text writes out, in order; anything else stays text."""
    names = set(offered)
    if not names or not ("{" in text or "<function=" in text):
        return []
    return [call for call in (*_tagged(text), *_objects(text)) if call.tool in names]


def parse_action(text: str, is_cut: bool = False) -> tuple[str, SaidCall | None]:
    """Return the words of an answer, and its call; anything but an action is words.

    `is_cut`: the token limit ended it.
    """
    found, start = next(_values(text), (None, 0))
    value = next(iter(tables(found)), table(found))
    call = _call_of(value, start)
    if call is not None and call.tool != "say":
        return re.sub(r"```(?:json)?\s*$", "", text[:start]).strip(), call
    if isinstance(words := _first(value, _WORDS), str):
        return words, None
    stream = SayStream(lambda piece: None)
    stream.feed(text)
    if not stream.text and is_cut and re.match(r'\s*\{\s*"tool"\s*:\s*"([^"]+)"', text):
        fault = f"cut off at the token limit: {text[:120]}"
        return "", SaidCall(tool=text.split('"')[3], fault=fault)
    return stream.text or text, None


def _tagged(text: str) -> Iterator[SaidCall]:
    for found in _FUNCTION.finditer(text):
        given = {name: _parameter(value) for name, value in _PARAMETER.findall(found[2])}
        if not given and found[2].strip().startswith("{"):
            given = table(_decoded(found[2], found[2].index("{"))[0])
        yield SaidCall(tool=found[1], arguments=given, start=found.start())


def _parameter(text: str) -> Any:
    """Read a parameter: JSON where it is a number, a list or an object, else the text itself."""
    try:
        value: Any = parse_json(text)
    except ValueError:
        return text
    return text if isinstance(value, str) else value


def _objects(text: str) -> Iterator[SaidCall]:
    for value, start in _values(text):
        calls = (_call_of(each, start) for each in tables(value) or [table(value)])
        yield from filter(None, calls)


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON objects and lists in a text, each with the place where it begins."""
    at = 0
    for _ in range(_MOST):
        if (found := _OPEN.search(text, at)) is None:
            return
        value, end = _decoded(text, found.start())
        if end > found.start():
            yield value, found.start()
        at = max(end, found.start() + 1)


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """Read the JSON value that begins there, and where it ends; nothing if none does."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


def _call_of(value: dict[str, Any], start: int) -> SaidCall | None:
    value = table(value.get("function")) or value
    tool = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), "")
    given: Any = _first(value, _ARGUMENTS)
    fault = ""
    if given is None:  # {"tool": "read", "path": "a.txt"}
        skipped = (*_NAMES, *_ARGUMENTS, "type", "id")
        given = {key: inner for key, inner in value.items() if key not in skipped}
    elif not is_object(given):
        given, fault = parse_arguments(given if isinstance(given, str) else json.dumps(given))
    return SaidCall(tool=tool, arguments=given, start=start, fault=fault) if tool else None


def _first(value: dict[str, Any], names: Iterable[str]) -> Any:
    return next((value[name] for name in names if name in value), None)


class SayStream:
    """Streams the text of `{"say": "…"}` while the JSON arrives; `text` is the text so far."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._waiting = ""
        self._is_open = False
        self._is_closed = False
        self.text = ""

    def feed(self, piece: str) -> None:
        """Receive a piece of the raw answer."""
        if self._is_closed:
            return
        self._waiting += piece
        if not self._is_open:
            begin = _SAY.match(self._waiting)
            if not begin:
                self._waiting = _BLANKS.sub(" ", self._waiting)
                self._is_closed = len(self._waiting) > _LONGEST_BEGINNING  # it never begins so
                return
            self._is_open = True
            self._waiting = self._waiting[begin.end() :]
        whole = _WHOLE.match(self._waiting)
        if whole:
            self._waiting = self._waiting[whole.end() :]
            self._pass_on(str(json.loads(f'"{whole.group()}"', strict=False)))
        self._is_closed = self._waiting.startswith('"')

    def finish(self, text: str) -> None:
        """Pass on the rest of the whole `text`."""
        if text.startswith(self.text):
            self._pass_on(text[len(self.text) :])

    def _pass_on(self, piece: str) -> None:
        if piece:
            self.text += piece
            self._on_text(piece)
