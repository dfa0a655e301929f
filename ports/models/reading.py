"""Reads calls that a model wrote as text, and asks it for JSON from then on.

Small models, and servers without a template for tools, print `{"name": "read", …}` in place of a call.
Shown as the answer it would end the turn with nothing done. So such a text is taken for the calls that
it is, and the model's later requests go through the JSON dialect, which a server can hold it to.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...machines.conversation import ToolRequest
from .dialect import JsonDialect
from .model import AnswerListener, Model, ModelAnswer, ModelRequest
from .said_calls import SaidCall, calls_in

NOTICE = (
    "The model wrote a tool call as text; it was made, and tools are asked for as JSON from now on. "
    '`tool_dialect = "json"` of the model says so from the start.'
)


class ReadingModel:
    """Asks `inner`, whose tools are native, until it writes a call as text."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self._dialect: JsonDialect | None = None
        self.name = inner.name

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Return the answer of the model, with what it wrote as calls as calls."""
        if self._dialect is not None and not request.is_plain:
            return await self._dialect.answer(request, listener)
        answer = await self.inner.answer(request, listener)
        if answer.tool_calls or not request.tools or request.response_schema is not None:
            return answer
        said = calls_in(answer.text, (tool.name for tool in request.tools))
        if not said or request.is_plain:
            return answer
        self._dialect = JsonDialect(self.inner)
        listener.on_notice(NOTICE)
        return with_calls(answer, said, request.call_prefix)

    async def window(self) -> int:
        """Return the window of the inner model."""
        return await self.inner.window()

    async def aclose(self) -> None:
        """Close the inner model. Idempotent."""
        await self.inner.aclose()


def with_calls(answer: ModelAnswer, said: list[SaidCall], prefix: str) -> ModelAnswer:
    """Return an answer with the calls that its text writes out, and the words before them."""
    calls = tuple(
        ToolRequest(
            call=f"{prefix}{number}", tool=one.tool, arguments=one.arguments, fault=one.fault
        )
        for number, one in enumerate(said, 1)
    )
    before = answer.text[: min(one.start for one in said)].rstrip()
    for frame in ("```json", "```", "<tool_call>", "<tools>", "[TOOL_CALLS]"):
        before = before.removesuffix(frame).rstrip()
    return replace(answer, text=before, tool_calls=calls, stop_reason="tools")
