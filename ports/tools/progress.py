"""The tool `progress`: the model says how far it is, and people see it."""

from typing import Any

from .arguments import declare, fault_of
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["ProgressTool", "make_progress"]

_SCHEMA = declare(
    "progress",
    "Report how much of a long task is done, for instance 12 of 45 files.",
    ("done", "total"),
    done={"type": "integer", "minimum": 0},
    total={"type": "integer", "minimum": 1},
    unit={"type": "string", "description": "what is counted, such as `files`"},
    note={"type": "string", "description": "one short remark"},
)


class ProgressTool(ThreadTool):
    """The tool `progress`; also refuses more done than there is."""

    def fault(self, arguments: dict[str, Any]) -> str:
        """Say what is wrong with the arguments; empty when nothing is."""
        fault = fault_of(self.schema, arguments)
        if not fault and arguments["done"] > arguments["total"]:
            return "`done` must not be more than `total`"
        return fault


def make_progress() -> ProgressTool:
    """Make the tool."""
    return ProgressTool(_SCHEMA, _progress, is_mutating=False, is_idempotent=True)


def _progress(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    done, total = arguments["done"], arguments["total"]
    unit, note = arguments.get("unit", ""), arguments.get("note", "")
    text = f"Noted: {done} of {total} {unit}".rstrip() + "."
    return ToolResult("ok", text, progress=(done, total, unit, note))
