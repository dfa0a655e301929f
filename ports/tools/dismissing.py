"""The tool `dismiss`: an agent ends a subagent of its own, at once or with a last word.

It is declared here like any other tool; the child supervisor of the session whose subagent it is carries
it out. It reaches the caller's own descendants and nobody else, because that supervisor has no others.
"""

from typing import Any

from .arguments import declare
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["make_dismiss"]

_SCHEMA = declare(
    "dismiss",
    "End a subagent of yours that is still at work. What it has comes to you as its result.",
    ("name",),
    name={
        "type": "string",
        "description": "its name; for one of its own subagents name/name",
        "minLength": 1,
    },
    wrap_up={"type": "boolean", "description": "let it sum up what it has first"},
)


def make_dismiss() -> ThreadTool:
    """Make the tool."""
    return ThreadTool(_SCHEMA, _nobody, is_mutating=False, is_idempotent=False)


def _nobody(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    return ToolResult("failed", "[dismiss was not run: nobody here has subagents]")
