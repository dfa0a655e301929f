"""The tool `delegate`: the model gives a task to a subagent.

It is declared here like any other tool, but no run of it ever starts: a session's child supervisor takes
the call, and the subagent is a session of its own.
"""

from typing import Any

from .arguments import declare
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["make_delegate"]

_SCHEMA = declare(
    "delegate",
    "Give a task to a subagent, which works in the same folder with a conversation of its own and "
    "knows only what the task says. Several calls in one answer run side by side. Its last answer is "
    "the result; in the background you go on at once, and the result comes as a message.",
    ("task",),
    task={"type": "string", "description": "all that the subagent has to know", "minLength": 1},
    agent={"type": "string", "description": "which agent it is; left out: one like you"},
    name={
        "type": "string",
        "description": "what you and the user call it",
        "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,39}$",
    },
    background={"type": "boolean", "description": "whether you go on without waiting for it"},
)


def make_delegate() -> ThreadTool:
    """Make the tool."""
    return ThreadTool(_SCHEMA, _delegate, is_mutating=False, is_idempotent=False)


def _delegate(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    return ToolResult("failed", "[delegate was not run: nobody here has subagents]")
