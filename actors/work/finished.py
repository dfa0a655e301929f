"""What a tool call came to, as the message that its actor gets."""

from __future__ import annotations

from ...machines.effects import RunTool, StopTool
from ...machines.results import ToolFinished
from ...ports.tools.tool import ToolResult

__all__ = ["finished"]


def finished(effect: RunTool | StopTool, result: ToolResult) -> ToolFinished:
    """Say how a call ended."""
    return ToolFinished(
        effect.turn,
        effect.epoch,
        effect.call,
        result.status,
        result.text,
        result.exit_code,
        result.bytes,
        result.killed,
        result.survivors,
        result.spilled,
        result.progress,
        result.errors,
        result.is_cut,
    )
