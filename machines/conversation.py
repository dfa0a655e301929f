"""A conversation as a model sees it: messages, attached files, requested tool calls, usage.

A conversation is a tuple of `ChatMessage`, oldest first, and is only ever appended to.
Names of the usage fields follow OpenTelemetry's `gen_ai.usage.*` attributes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import field

from .pattern import lazy_pattern
from .value import Value

Role = Literal["user", "assistant", "tool"]

_TICKS = lazy_pattern(r"`+")


class ToolRequest(Value):
    """One tool call as the model asked for it.

    `call` is our own id (`t3.c2`). `arguments` is the parsed JSON object;
    where the model sent something else, `arguments` is empty and `fault` says what is wrong with it.
    """

    call: str
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    fault: str = ""


class Thought(Value):
    """A model's thoughts before an answer, as its API wants them back: word for word, with their seal.

    `sealed` is what only the API can read, in place of a text.
    """

    text: str = ""
    signature: str = ""
    sealed: str = ""


class Picture(Value):
    """A picture in a message: `data` is its content in base64, `media_type` as in image/png."""

    media_type: str
    data: str


class ChatMessage(Value):
    """One message of a conversation; `call` names the tool call that a `tool` message answers.

    `thoughts` are there only where the model's API wants them back; `pictures` come from people and
    from tools. `note` is what the runtime has written at the end of `text`, in the model's place.
    `is_summary`: it stands for older messages.
    """

    role: Role
    text: str
    tool_calls: tuple[ToolRequest, ...] = ()
    call: str = ""
    thoughts: tuple[Thought, ...] = ()
    pictures: tuple[Picture, ...] = ()
    note: str = ""
    is_summary: bool = False

    @property
    def own(self) -> str:
        """The text without the runtime's note."""
        return self.text.removesuffix(self.note).rstrip("\n") if self.note else self.text


def cut_short(partial: str, note: str) -> ChatMessage:
    """Return an answer that broke off, with a note that says so."""
    text = f"{partial}\n{note}" if partial else note
    return ChatMessage(role="assistant", text=text, note=note)


class Usage(Value):
    """Tokens of one model call, or a sum of calls; `cache_read` and `cache_write` are parts of `input`.

    `cost` is in the currency of the configured prices; 0 where none are.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens, in and out."""
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """Add field by field."""
        return self._combined(other, operator.add)

    def __sub__(self, other: Usage) -> Usage:
        """Subtract field by field: what was used since `other` was counted."""
        return self._combined(other, operator.sub)

    def _combined(self, other: Usage, combine: Callable[[Any, Any], Any]) -> Usage:
        names = self.__struct_fields__
        return Usage(**{name: combine(getattr(self, name), getattr(other, name)) for name in names})


class ToolSchema(Value):
    """A tool; `parameters` is a JSON Schema of type object.

    `told` is what a model sees of that, where it is less: it costs tokens in each request.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    told: dict[str, Any] | None = None


def as_told(tool: ToolSchema) -> dict[str, Any]:
    """Return what a request says of a tool: name, description and parameters."""
    seen = tool.parameters if tool.told is None else tool.told
    return {"name": tool.name, "description": tool.description, "parameters": seen}


# Attachments --------------------------------------------------------------------------------------


class Attachment(Value):
    """A file or folder that a person attached by `@path`, as it was when the message was sent.

    `text` is what the model reads of it, empty if it was not attached; `size` is in words (`1.2 kB`);
    `note` says what was left out, or why it was not attached. A `picture` goes beside the text.
    """

    path: str
    text: str = ""
    size: str = ""
    note: str = ""
    is_refused: bool = False
    picture: Picture | None = None


def rendered(attached: Sequence[Attachment]) -> str:
    """Write what the model reads below the message; empty when nothing is attached.

    The fence around a file is longer than any in it, so that no file can end its own quotation.
    """
    return "".join(f"\n\n{_block(file)}" for file in attached)


def _block(file: Attachment) -> str:
    if file.is_refused:
        return f"[Not attached: {file.path}: {file.note}]"
    if file.picture is not None:
        return f"[Attached picture: {file.path}]"
    note = f", {file.note}" if file.note else ""
    longest = max((len(ticks) for ticks in _TICKS.findall(file.text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"[Attached: {file.path}{note}]\n{fence}\n{file.text}\n{fence}"


def told(attached: Sequence[Attachment]) -> str:
    """Say to the person what was attached and what was not; empty when nothing was named."""
    there = [_brief(file) for file in attached if not file.is_refused]
    lines = [f"Attached {', '.join(there)}."] if there else []
    lines += [f"Not attached: {file.path}: {file.note}." for file in attached if file.is_refused]
    return "\n".join(lines)


def _brief(file: Attachment) -> str:
    return f"{file.path} ({', '.join(filter(None, (file.size, file.note)))})"
