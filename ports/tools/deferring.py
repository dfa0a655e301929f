"""The tool `defer`: the model gives back a message that it cannot work into what it does.

Here is only what a model is told of it; the session's queue, which has the message, carries it out.
"""

from typing import Any

from .arguments import declare
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["make_defer"]

_SCHEMA = declare(
    "defer",
    "Hand back a [New message from ...] that you can't work into what you are doing; it is then the "
    "next turn.",
    ("why",),
    why={"type": "string", "minLength": 1, "description": "one short sentence for the person"},
    message={
        "type": "string",
        "description": "how the message begins; needed only if there were several",
    },
)


def make_defer() -> ThreadTool:
    """Make the tool."""
    return ThreadTool(_SCHEMA, _nothing, is_mutating=False, is_idempotent=False)


def _nothing(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    """Say that outside a turn there is no message that could be handed back."""
    return ToolResult("failed", "[nothing was handed back: no turn took a message in]")
