"""Which tools a very small model is offered, and when, so that "Hello" gets an answer.

A model of 135 million parameters calls any tool it sees. So it sees one only when the newest
message of the person plausibly wants it, with the arguments narrowed to words of that very message;
and after the result it answers in plain text. Where the wish is evident (`read notes.txt`), it may
only act.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...machines.conversation import ChatMessage, ToolSchema
from .model import ModelRequest

_PATH = re.compile(
    r"(?<![\w@:/.])(?:~|\.{1,2})?/?(?:[\w+-][\w.+-]*/)*[\w+-][\w+-]*(?:\.[A-Za-z]\w{0,9})+(?![\w/@(])"
    r"|(?<![\w:/])(?:\.{0,2}/)?(?:[\w.+-]+/)+[\w.+-]*\w"
    r"|\b(?:README|LICENSE|Makefile|Dockerfile|CHANGELOG)\b(?!\.\w)"
)
_ADDRESS = re.compile(r"\b\w+://\S+|\S+@\S+")
_NOT_PATHS = {"e.g", "i.e", "a.m", "p.m", "and/or", "etc"}
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|'([^'\n]{2,})'(?!\w)")
_READ = re.compile(
    r"\b(read|show|open|cat|see|look|says?|view|print|display|summari[sz]e|explain|contents?|what)\b",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(ls|(list|show|which|what)\b.{0,30}\b(files|folders?|director(y|ies))"
    r"|files (are|do)\b|in (this|the) (folder|directory))",
    re.IGNORECASE,
)
_WRITE = re.compile(r"\b(write|create|save|make|put)\b", re.IGNORECASE)
_SEARCH = re.compile(r"\b(?:search|grep|find)\b(?:.*?\bfor)?\s+(\w[\w.-]*)", re.IGNORECASE)
_RUN = re.compile(
    r"\b(?:run|execute)\s+((?:ls|cat|echo|pwd|date|git|make|python3?|pytest|npm|node|uname|wc)\b[^\n]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools to offer; `must_act` forbids to speak instead."""

    tools: tuple[ToolSchema, ...] = ()
    must_act: bool = False


class SmallToolPolicy:
    """Chooses from the offered tools by the newest user message; remembers nothing."""

    def offer(self, request: ModelRequest) -> ToolOffer:
        """Return what to offer for this request."""
        text, done = _newest(request.messages)
        known = {tool.name: tool for tool in request.tools}
        wished = [wish for wish in _wishes(text) if wish[0] in known and not _is_done(wish, done)]
        if wished:
            tool, arguments = wished[0]
            return ToolOffer((_narrowed(known[tool], arguments),), must_act=True)
        if done:
            return ToolOffer()
        words = set(re.findall(r"\w+", text.lower()))
        named = [tool for tool in request.tools if tool.name in words and tool.name not in _PLAIN]
        return ToolOffer(tuple(named[:2]))


# Names that are everyday words as well: they are offered by what is wished, not by being named.
_PLAIN = {"read", "write", "edit", "list", "search", "shell", "progress", "defer", "dismiss"}


def paths_in(text: str) -> tuple[str, ...]:
    """Words of a text that look like paths of files, in order, each once."""
    found = (match.group().rstrip(".") for match in _PATH.finditer(_ADDRESS.sub(" ", text)))
    return tuple(dict.fromkeys(p for p in found if p.lower() not in _NOT_PATHS))


Wish = tuple[str, dict[str, tuple[str, ...]]]


def _wishes(text: str) -> Iterable[Wish]:
    """Yield (tool, argument -> possible values), the most evident first."""
    quoted = tuple(found[1] or found[2] or found[3] for found in _QUOTED.finditer(text))
    paths = paths_in(text)
    command = _RUN.search(text)
    if re.search(r"\b(run|execute)\b", text, re.IGNORECASE) and (quoted or command):
        yield "shell", {"command": quoted or ((command[1].rstrip(" .?!"),) if command else ())}
        return
    if paths and _WRITE.search(text) and not re.match(r"\s*read\b", text, re.IGNORECASE):
        yield "write", {"path": paths, **({"content": quoted} if quoted else {})}
        return
    search = _SEARCH.search(text)
    if search and not _LIST.search(text):
        patterns = quoted or (search[1],)
        yield "search", {"pattern": patterns}
        return
    folders = tuple(path for path in paths if not re.search(r"\.\w+$", path))
    if _LIST.search(text) and len(folders) == len(paths):
        yield "list", {"path": folders or (".",)}
        return
    if _READ.search(text):
        for path in paths:
            yield "read", {"path": (path,)}


def _is_done(wish: Wish, done: Iterable[tuple[str, dict[str, Any]]]) -> bool:
    """Say whether the turn has already run this: the same tool on one of the same values."""
    tool, arguments = wish
    name, values = next(iter(arguments.items()))
    return any(tool == was and given.get(name) in values for was, given in done)


def _narrowed(tool: ToolSchema, arguments: dict[str, tuple[str, ...]]) -> ToolSchema:
    """Keep only required arguments and those with known values, and list these values."""
    given: dict[str, Any] = tool.parameters.get("properties", {})
    required: list[str] = list(tool.parameters.get("required", []))
    names = list(dict.fromkeys([*arguments, *required]))
    properties = {
        name: {"enum": list(arguments[name])} if name in arguments else given.get(name, {})
        for name in names
    }
    parameters = {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }
    return replace(tool, parameters=parameters)


def _newest(
    messages: tuple[ChatMessage, ...],
) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Return the newest user message, and the tool calls that were made since."""
    done: list[tuple[str, dict[str, Any]]] = []
    for message in reversed(messages):
        if message.role == "user":
            return re.sub(r"^\[New message from [^\]]*\] ", "", message.text), done
        done += [(call.tool, call.arguments) for call in message.tool_calls]
    return "", done
