"""Tools that are about the session itself: deferring a message, subagents, progress."""

from typing import Any

from .arguments import declare
from .thread_tool import StopFlag, ThreadTool, Work
from .tool import ToolContext, ToolResources, ToolResult


def _refusing(text: str) -> Work:
    """Make the work of a tool that an actor carries out: it refuses where no such actor is."""

    def work(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> ToolResult:
        return ToolResult(status="failed", text=text)

    return work


# The tool `defer`: the model gives back a message that it cannot work into what it does -----------
# Only its schema is here; the session's queue, which has the message, carries it out.


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


def make_defer(resources: ToolResources) -> ThreadTool:
    """Make the tool."""
    work = _refusing("[nothing was handed back: no turn took a message in]")
    return ThreadTool(_SCHEMA, work, is_mutating=False, is_idempotent=False)


# The tool `delegate`: the model gives a task to a subagent ----------------------------------------
# It is declared here like any other tool, but no run of it ever starts: a session's child supervisor
# takes the call, and the subagent is a session of its own.


_SCHEMA_DELEGATING = declare(
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


def make_delegate(resources: ToolResources) -> ThreadTool:
    """Make the tool."""
    work = _refusing("[delegate was not run: nobody here has subagents]")
    return ThreadTool(_SCHEMA_DELEGATING, work, is_mutating=False, is_idempotent=False)


# The tool `dismiss`: an agent ends one of its subagents, at once or after a summary ----------------
# It is declared here like any other tool; the child supervisor of the session whose subagent it is
# carries it out. It reaches only descendants of the caller, because that supervisor has no others.


_SCHEMA_DISMISSING = declare(
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


def make_dismiss(resources: ToolResources) -> ThreadTool:
    """Make the tool."""
    work = _refusing("[dismiss was not run: nobody here has subagents]")
    return ThreadTool(_SCHEMA_DISMISSING, work, is_mutating=False, is_idempotent=False)


# The tool `progress`: the model reports how much is done, and people see it ------------------------


_SCHEMA_PROGRESS = declare(
    "progress",
    "Report how much of a long task is done, for instance 12 of 45 files.",
    ("done", "total"),
    done={"type": "integer", "minimum": 0},
    total={"type": "integer", "minimum": 1},
    unit={"type": "string", "description": "what is counted, such as `files`"},
    note={"type": "string", "description": "one short remark"},
)


def make_progress(resources: ToolResources) -> ThreadTool:
    """Make the tool."""
    return ThreadTool(
        _SCHEMA_PROGRESS, _progress, is_mutating=False, is_idempotent=True, check=_excess
    )


def _excess(arguments: dict[str, Any]) -> str:
    is_excess = arguments["done"] > arguments["total"]
    return "`done` must not be more than `total`" if is_excess else ""


def _progress(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> ToolResult:
    done, total = arguments["done"], arguments["total"]
    unit, note = arguments.get("unit", ""), arguments.get("note", "")
    text = f"Noted: {done} of {total} {unit}".rstrip() + "."
    return ToolResult(status="ok", text=text, progress=(done, total, unit, note))
