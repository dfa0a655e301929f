"""The seam to any language model: one coroutine that streams text and returns the whole answer.

Runs on the asyncio loop. To cancel, cancel the task: the implementation closes its connection at
once, also before the response header. Implementations retry what may be retried (connection refused,
429, 5xx, `Retry-After` honoured), never after the first piece of text, and call `on_notice` while
they wait.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from ...machines.conversation import ChatMessage, Thought, ToolRequest, ToolSchema, Usage
from ...machines.value import Value


class Pause(str):
    """A notice of a wait before a retry: a text with the length of the wait in `seconds`."""

    __slots__ = ("seconds",)
    seconds: float

    def __new__(cls, text: str, seconds: float) -> "Pause":
        """Make a notice from the text and the seconds."""
        made = super().__new__(cls, text)
        made.seconds = seconds
        return made


def dropped(piece: str) -> None:
    """Drop a piece of text."""


class AnswerListener(Value):
    """Receives pieces of an answer as they arrive, and notices of waits; called on the loop."""

    on_text: Callable[[str], None] = dropped
    on_notice: Callable[[str], None] = dropped
    on_thought: Callable[[str], None] = dropped


class ConversationMemory(Struct):
    """What a model keeps of one session's conversation between its calls; dropped with the session.

    Any model may leave it alone, or find there what another one has kept.
    """

    kept: object = None


class ModelRequest(Value):
    """Everything a model needs for one call; `messages` oldest first.

    `tools` stay the same from call to call, so that prompt caches hold; `unusable` names those of them
    that would only be refused now: a call of one is ruled out where the format can say so.
    `response_schema`, when given, is a JSON Schema that the whole answer must satisfy.
    `call_prefix` begins the session's ids of the answer's tool calls: `t3.s2.c` gives `t3.s2.c1`, ….
    `memory` is there for a conversation that further calls will extend. `is_plain`: words are wanted, and
    no tool is to be called.
    """

    system: str
    messages: Sequence[ChatMessage]
    tools: tuple[ToolSchema, ...] = ()
    unusable: tuple[str, ...] = ()
    call_prefix: str = "c"
    max_tokens: int | None = None
    temperature: float | None = None
    response_schema: dict[str, Any] | None = None
    memory: ConversationMemory | None = None
    is_plain: bool = False

    @property
    def usable(self) -> tuple[ToolSchema, ...]:
        """The tools that can be called now."""
        return tuple(tool for tool in self.tools if tool.name not in self.unusable)


class ModelAnswer(Value):
    """The whole answer of a model; `stop_reason` is `stop`, `tools` or `length`.

    `thoughts` are those that its API requires back with the answer. `is_estimated`: its server did
    not report the usage.
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

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Stream the answer to `listener` and return the whole. Raises `ModelError`."""
        ...

    async def window(self) -> int:
        """Return its context window in tokens, 0 if unknown. May ask the server; never fails."""
        return 0

    async def aclose(self) -> None:
        """Close connections and child processes, if there are any. Idempotent."""
        return


class WrappedModel:
    """Asks `inner`: the base of models that change what another one is asked, or what it answers."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self.name = inner.name

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Ask the inner model. Raises `ModelError`."""
        return await self.inner.answer(request, listener)

    async def window(self) -> int:
        """Return the window of the inner model."""
        return await self.inner.window()

    async def aclose(self) -> None:
        """Close the inner model. Idempotent."""
        await self.inner.aclose()
