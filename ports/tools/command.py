"""A workflow's command: a program with its arguments, in the run's folder. No model has this tool."""

from pathlib import Path
from typing import Any

from ..process.process import Processes, ProcessResult, ProcessSpec
from .arguments import declare
from .process_run import ProcessRun
from .text import join_ends, readable
from .tool import ToolContext, ToolResult, ToolRun, ToolStatus

__all__ = ["CommandTool"]

_STATUS: dict[str, ToolStatus] = {"killed": "killed", "timed_out": "timed_out"}
_ERRORS = 16_384
"""Bytes of the end of standard error that are kept."""


class CommandTool:
    """Runs `argv` as a supervised process, with `env` added to the environment; see `Tool`.

    The folder is looked at once for all commands of a step, not here for each: it counts as changing
    nothing.
    """

    schema = declare("command", "Run a command of a workflow.", ("argv",), argv={"type": "string"})
    is_mutating = False
    is_idempotent = False

    def __init__(self, processes: Processes, grace: float, output_limit: int) -> None:
        self._processes = processes
        self._grace = grace
        self._output_limit = output_limit

    def fault(self, arguments: dict[str, Any]) -> str:
        """Find nothing wrong: a run made the arguments."""
        return ""

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the command."""
        spec = ProcessSpec(
            argv=tuple(arguments["argv"]),
            cwd=Path(context.folder, arguments.get("cwd", "")),
            environment={**context.environment, **arguments.get("env", {})},
            timeout=arguments.get("timeout"),
            grace=self._grace,
            keep=self._output_limit // 2,
            keep_errors=_ERRORS,
        )

        async def prepare() -> ProcessSpec:
            return spec

        return ProcessRun(self._processes, prepare, _told)


def _told(result: ProcessResult) -> ToolResult:
    """Say what it said, and nothing else."""
    is_ok = result.exit_code == 0
    return ToolResult(
        _STATUS.get(result.status) or ("ok" if is_ok else "failed"),
        join_ends(result.head, result.tail, result.total, ""),
        result.exit_code,
        result.total,
        result.killed,
        result.survivors,
        errors=readable(result.errors),
        is_cut=result.total > len(result.head) + len(result.tail),
    )
