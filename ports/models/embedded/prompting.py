"""Requests for a small model: the messages that fit its window, few tools, rephrased tool results.

A model of 135 million parameters calls any tool that it is offered. So a tool is offered only if the
newest user message plausibly asks for it, with arguments restricted to words of that message; after the
result the model answers in plain text. If the request is evident (`read notes.txt`), the model may only
call the tool. Results are rephrased because the model cannot follow a conversation of calls and results:
the question is repeated below the result, and the answer is prefilled with its first words, from which
servers of llama.cpp continue.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ....machines.conversation import ChatMessage, ToolRequest, ToolSchema
from ..dialect import ToolOffer
from ..model import ModelRequest

_CHARACTERS = 3  # of a token, on the safe side: English has four, code three
_LONGEST = 3000  # characters of a result; the model reads some 300 tokens in a second
_CUT = "\n[…]"
_LEFT_OUT = "\n[… {} characters left out …]\n"


def fit(request: ModelRequest, window: int) -> ModelRequest:
    """Return the request with its instructions and as many of the newest messages as fit `window`.

    `window` is in tokens. The first message kept is a user message; a single message that is too long
    keeps its head and its tail.
    """
    answer = request.max_tokens or window // 4
    room = max(600, (window - answer) * _CHARACTERS - len(request.system))
    kept: list[ChatMessage] = []
    for message in reversed(request.messages):
        if kept and len(message.text) > room:
            break
        kept.append(_shortened(message, room))
        room -= len(kept[-1].text) + 4 * _CHARACTERS
    kept.reverse()
    while len(kept) > 1 and kept[0].role != "user":
        del kept[0]
    return replace(request, messages=tuple(kept))


def _shortened(message: ChatMessage, room: int) -> ChatMessage:
    text = message.text
    if len(text) <= room:
        return message
    half = max(1, (room - len(_LEFT_OUT) - 8) // 2)
    left_out = _LEFT_OUT.format(len(text) - 2 * half)
    return replace(message, text=text[:half] + left_out + text[-half:])


# Offered tools ------------------------------------------------------------------------------------


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


def offer_tools(request: ModelRequest) -> ToolOffer:
    """Choose from the tools of a request by its newest user message."""
    text, done = _newest(request.messages)
    known = {tool.name: tool for tool in request.tools}
    wanted = [use for use in _requested(text) if use[0] in known and not _is_done(use, done)]
    if wanted:
        tool, arguments = wanted[0]
        return ToolOffer(tools=(_restricted(known[tool], arguments),), must_act=True)
    if done:
        return ToolOffer()
    words = set(re.findall(r"\w+", text.lower()))
    named = [tool for tool in request.tools if tool.name in words and tool.name not in _PLAIN]
    return ToolOffer(tools=tuple(named[:2]))


# Names that are everyday words, too: such a tool is not offered only because its name occurs.
_PLAIN = {"read", "write", "edit", "list", "search", "shell", "progress", "defer", "dismiss"}


def paths_in(text: str) -> tuple[str, ...]:
    """Return the words of a text that look like paths of files, in order, each once."""
    found = (match.group().rstrip(".") for match in _PATH.finditer(_ADDRESS.sub(" ", text)))
    return tuple(dict.fromkeys(p for p in found if p.lower() not in _NOT_PATHS))


RequestedTool = tuple[str, dict[str, tuple[str, ...]]]
"""A tool that a text asks for, and the possible values of its arguments."""


def _requested(text: str) -> Iterable[RequestedTool]:
    """Yield the tools that a text asks for, the most evident first."""
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


def _is_done(requested: RequestedTool, done: Iterable[tuple[str, dict[str, Any]]]) -> bool:
    """Whether the turn has already run this tool with one of these values."""
    tool, arguments = requested
    name, values = next(iter(arguments.items()))
    return any(tool == was and given.get(name) in values for was, given in done)


def _restricted(tool: ToolSchema, arguments: dict[str, tuple[str, ...]]) -> ToolSchema:
    """Return a schema with the required arguments and those with known values, which it lists."""
    given: dict[str, Any] = tool.parameters.get("properties", {})
    required: list[str] = list(tool.parameters.get("required", []))
    names = list(dict.fromkeys([*arguments, *required]))
    properties = {
        name: {"enum": list(arguments[name])} if name in arguments else _undescribed(given, name)
        for name in names
    }
    parameters = {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }
    return replace(tool, parameters=parameters)


def _undescribed(given: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of an argument without its description, which the model would copy."""
    schema: dict[str, Any] = given.get(name, {})
    return {key: value for key, value in schema.items() if key != "description"}


def _newest(
    messages: Sequence[ChatMessage],
) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Return the newest user message, and the tool calls that were made since."""
    done: list[tuple[str, dict[str, Any]]] = []
    for message in reversed(messages):
        if message.role == "user":
            return re.sub(r"^\[New message from [^\]]*\] ", "", message.text), done
        done += [(call.tool, call.arguments) for call in message.tool_calls]
    return "", done


SHOWS = ("read", "list")
"""Tools whose result is what the person wanted to see."""


def shown_result(messages: Sequence[ChatMessage]) -> str:
    """Return the answer where the results since the newest user message are the answer; else empty.

    That is so where all that was done was to read or list, with success: the model could only copy it.
    """
    since = messages[
        1 + max((at for at, said in enumerate(messages) if said.role == "user"), default=-1) :
    ]
    calls = {call.call: call for message in since for call in message.tool_calls}
    results = [message for message in since if message.role == "tool"]
    if not results or not calls.keys() <= {result.call for result in results}:
        return ""
    for result in results:
        call = calls.get(result.call)
        if call is None or call.tool not in SHOWS or result.text.startswith("Error"):
            return ""
    each = _LONGEST // len(results)
    return "\n".join(_shown(calls[result.call], result.text, each) for result in results)


# Tool results -------------------------------------------------------------------------------------


def retell(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Rephrase the calls and results since the newest user message; others stay as they are."""
    asked = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    since = messages[asked + 1 :]
    if asked < 0 or not since or since[-1].role != "tool":
        return messages
    calls = {call.call: call for message in since for call in message.tool_calls}
    results = [message for message in since if message.role == "tool"]
    each = _LONGEST // len(results)
    shown = "\n".join(_shown(calls.get(result.call), result.text, each) for result in results)
    first = calls.get(results[0].call)
    return (
        *messages[: asked + 1],
        ChatMessage(role="assistant", text="I will do that."),
        ChatMessage(role="user", text=f"{shown}\n{messages[asked].text}"),
        ChatMessage(role="assistant", text=f"{_title(first)}:\n"),
    )


def _shown(call: ToolRequest | None, text: str, longest: int) -> str:
    text = text if len(text) <= longest else text[:longest] + _CUT
    return f"{_title(call)}:\n{text}"


def _title(call: ToolRequest | None) -> str:
    path = call.arguments.get("path", "") if call else ""
    match call.tool if call else "":
        case "read":
            return f"The file {path} says"
        case "list":
            return "The files are"
        case "search":
            return "Found"
        case _:
            return "The result is"


def with_results_retold(request: ModelRequest) -> ModelRequest:
    """Rephrase the tool results of a request, and limit the answer to little more than these."""
    messages = retell(request.messages)
    if messages is request.messages:
        return request
    enough = len(messages[-2].text) // 3 + 40
    return replace(request, messages=messages, max_tokens=min(enough, request.max_tokens or enough))
