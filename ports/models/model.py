"""The seam to any language model: one coroutine that streams text and returns the whole answer.

Runs on the asyncio loop. To cancel, cancel the task: the implementation closes its connection at
once, also while no response header has come. Implementations retry by themselves what may be
retried (connection refused, 429, 5xx, `Retry-After` honoured), never after the first piece of text,
and tell `on_notice` while they wait.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...machines.conversation import ChatMessage, Thought, ToolRequest, ToolSchema, Usage


class Pause(str):
    """A notice that something is waited out: a text that knows for how many `seconds`."""

    __slots__ = ("seconds",)
    seconds: float

    def __new__(cls, text: str, seconds: float) -> "Pause":
        """Make it of the text and the time left."""
        made = super().__new__(cls, text)
        made.seconds = seconds
        return made


def unheard(piece: str) -> None:
    """Take what nobody listens to."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a model needs for one call; `messages` oldest first.

    `response_schema`, when given, is a JSON Schema that the whole answer must satisfy.
    `call_prefix` begins our ids for the tool calls of this answer: `t3.s2.c` gives `t3.s2.c1`, ….
    """

    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSchema, ...] = ()
    call_prefix: str = "c"
    max_tokens: int | None = None
    temperature: float | None = None
    response_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model said, whole; `stop_reason` is `stop`, `tools` or `length`.

    `thoughts` are those that its API wants back with the answer. `is_estimated`: its server did not
    say what it used.
    """

    text: str
    tool_calls: tuple[ToolRequest, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = "stop"
    thoughts: tuple[Thought, ...] = ()
    is_estimated: bool = False


class Model(Protocol):
    """A model that can be asked; `name` is what people see (`main (qwen3 at 127.0.0.1:8080)`)."""

    name: str

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Stream pieces of text to `on_text` and return the whole. Raises `ModelError`.

        What it thinks before it answers goes to `on_thought`.
        """
        ...

    async def window(self) -> int:
        """Say how many tokens it can look at; 0 where nobody knows. May ask the server; never fails."""
        ...

    async def aclose(self) -> None:
        """Close connections and child processes. Idempotent."""
        ...
