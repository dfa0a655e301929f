"""The tools about the session itself: `defer`, `delegate`, `dismiss` and `progress`.

An actor of the session carries out the first three, so their work here only refuses: `defer` belongs to
the queue, which has the message; `delegate` and `dismiss` belong to the child supervisor, which has no
children but the caller's.
"""

from collections.abc import Callable
from typing import Any

from ...machines import protocol as m
from ...machines.conversation import ToolSchema
from .arguments import declare
from .thread_tool import StopFlag, ThreadTool
from .tool import ToolContext, ToolResources


def _refusing(schema: ToolSchema, text: str) -> Callable[[ToolResources], ThreadTool]:
    """Return what makes a tool that an actor carries out; `text` refuses it in sessions without that."""

    def work(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
        return m.ToolResult(status="failed", text=text)

    return lambda resources: ThreadTool(schema, work, is_mutating=False, is_idempotent=False)


make_defer = _refusing(
    declare(
        "defer",
        "Hand back a [New message from ...] that does not fit what you are doing; "
        "it becomes the next turn.",
        ("why",),
        why={"type": "string", "minLength": 1, "description": "one sentence for the person"},
        message={"type": "string", "description": "how it begins, if there were several"},
    ),
    "[nothing was handed back: no turn took a message in]",
)
"""Makes the tool by which the model hands a message back to the queue."""

make_delegate = _refusing(
    declare(
        "delegate",
        "Give a task to a subagent, which works in the same folder and knows only what the task says. "
        "Its last answer is the result. Several calls in one answer run side by side.",
        ("task",),
        task={"type": "string", "description": "all that the subagent has to know", "minLength": 1},
        agent={"type": "string", "description": "which agent; left out: one like you"},
        name={
            "type": "string",
            "description": "what you and the user call it",
            "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,39}$",
        },
        background={
            "type": "boolean",
            "description": "go on at once; the result comes as a message",
        },
    ),
    "[delegate was not run: this session has no subagents]",
)
"""Makes the tool by which the model gives a task to a subagent."""

make_dismiss = _refusing(
    declare(
        "dismiss",
        "End a subagent that is still at work; what it has is its result.",
        ("name",),
        name={
            "type": "string",
            "description": "its name; of a subagent's own: name/name",
            "minLength": 1,
        },
        wrap_up={"type": "boolean", "description": "let it sum up what it has first"},
    ),
    "[dismiss was not run: this session has no subagents]",
)
"""Makes the tool by which the model ends a subagent, at once or after a summary."""

_SCHEMA_PROGRESS = declare(
    "progress",
    "Report how much of a long task is done, such as 12 of 45 files.",
    ("done", "total"),
    done={"type": "integer", "minimum": 0},
    total={"type": "integer", "minimum": 1},
    unit={"type": "string", "description": "such as `files`"},
    note={"type": "string", "description": "one short remark"},
)


def make_progress(resources: ToolResources) -> ThreadTool:
    """Make the tool by which the model reports its progress."""
    return ThreadTool(
        _SCHEMA_PROGRESS, _progress, is_mutating=False, is_idempotent=True, check=_excess
    )


def _excess(arguments: dict[str, Any]) -> str:
    is_excess = arguments["done"] > arguments["total"]
    return "`done` must not be more than `total`" if is_excess else ""


def _progress(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    done, total = arguments["done"], arguments["total"]
    unit, note = arguments.get("unit", ""), arguments.get("note", "")
    text = f"Noted: {done} of {total} {unit}".rstrip() + "."
    return m.ToolResult(status="ok", text=text, progress=(done, total, unit, note))
