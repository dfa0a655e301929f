"""What a turn asks for when it starts or stops a call: a tool's run, or a child's task."""

from __future__ import annotations

from ...machines.conversation import ToolRequest
from ...machines.delegation import Delegate, Dismiss, StopChild
from ...machines.effects import RunTool, StopTool

__all__ = ["DELEGATE", "start_effect", "stop_effect"]

DELEGATE = "delegate"
"""The tool that is no process but a child session."""
DISMISS = "dismiss"
"""The tool that ends a child."""


def start_effect(
    turn: str, epoch: int, request: ToolRequest, may_leave_folder: bool
) -> RunTool | Delegate | Dismiss:
    """Ask for a call to be started."""
    if request.tool == DELEGATE:
        return Delegate(turn, epoch, request.call, request.arguments)
    if request.tool == DISMISS:
        return Dismiss(turn, epoch, request.call, request.arguments)
    return RunTool(turn, epoch, request.call, request.tool, request.arguments, may_leave_folder)


def stop_effect(turn: str, epoch: int, call: str, tool: str) -> StopTool | StopChild:
    """Ask for a call to be stopped; its result still comes."""
    is_of_child = tool in (DELEGATE, DISMISS)
    return StopChild(turn, epoch, call) if is_of_child else StopTool(turn, epoch, call)
