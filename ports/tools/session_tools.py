"""The tools about the session itself: `defer`, `delegate`, `dismiss` and `progress`.

An actor of the session carries out the first three, so their work here only refuses: `defer` belongs to
the queue, which has the message; `delegate` and `dismiss` belong to the child supervisor, which has no
children but the caller's.
"""

from typing import Any

from ...machines import protocol as m
from .arguments import declare
from .thread_tool import StopFlag, ThreadTool, refusing
from .tool import ToolContext

DEFER = refusing(
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
"""Hands a message back to the queue."""

DELEGATE = refusing(
    declare(
        "delegate",
        "Give a task to a subagent, which knows only what the task says. "
        "Its last answer is the result. Several calls in one answer run side by side.",
        ("task",),
        task={"type": "string", "minLength": 1},
        agent={"type": "string", "description": "which agent; left out: one like you"},
        name={
            "type": "string",
            "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,39}$",
        },
        background={
            "type": "boolean",
            "description": "go on at once; the result comes as a message",
        },
    ),
    "[delegate was not run: this session has no subagents]",
)
"""Gives a task to a subagent."""

DISMISS = refusing(
    declare(
        "dismiss",
        "End a subagent that is still at work; what it has is its result.",
        ("name",),
        name={"type": "string", "minLength": 1},
        wrap_up={"type": "boolean", "description": "let it sum up what it has first"},
    ),
    "[dismiss was not run: this session has no subagents]",
)
"""Ends a subagent, at once or after a summary."""


def _progress(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    done, total = arguments["done"], arguments["total"]
    unit, note = arguments.get("unit", ""), arguments.get("note", "")
    text = f"Noted: {done} of {total} {unit}".rstrip() + "."
    return m.ToolResult(status="ok", text=text, progress=(done, total, unit, note))


PROGRESS = ThreadTool(
    declare(
        "progress",
        "Report how much of a long task is done, such as 12 of 45 files.",
        ("done", "total"),
        done={"type": "integer", "minimum": 0},
        total={"type": "integer", "minimum": 1},
        unit={"type": "string"},
        note={"type": "string"},
    ),
    _progress,
    check=lambda of: "`done` must not be more than `total`" if of["done"] > of["total"] else "",
)
