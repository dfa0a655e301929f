"""The tool `shell`: a command line, run by the shell in the session's folder."""

import asyncio
import re
import shutil
from functools import partial
from typing import Any

from ...machines.errors import ToolError
from ..process.process import Processes, ProcessResult, ProcessSpec
from .arguments import declare, fault_of
from .process_run import ProcessRun
from .text import join_ends
from .tool import ToolContext, ToolResult, ToolRun, ToolStatus

__all__ = ["ShellTool"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_TIMEOUT = 120.0  # seconds, unless the model asks for another
_STATUS: dict[str, ToolStatus] = {"killed": "killed", "timed_out": "timed_out"}


class ShellTool:
    """Runs `bash -c` (or `/bin/sh -c`) as a supervised process; see `Tool`."""

    schema = declare(
        "shell",
        "Run a shell command in the folder. Nothing it starts outlives it; it reads no input.",
        ("command",),
        command={"type": "string", "minLength": 1},
        timeout={"type": "number", "minimum": 0.001, "description": "seconds; 120 if not given"},
    )
    is_mutating = True
    is_idempotent = False

    def __init__(self, processes: Processes, grace: float, output_limit: int) -> None:
        self._processes = processes
        self._grace = grace
        self._output_limit = output_limit
        self._shell = shutil.which("bash") or "/bin/sh"

    def fault(self, arguments: dict[str, Any]) -> str:
        """Say what is wrong with the arguments; empty when nothing is."""
        return fault_of(self.schema, arguments)

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the command."""
        timeout: float = arguments.get("timeout") or _TIMEOUT

        def prepare() -> ProcessSpec:
            if fault := self.fault(arguments):
                raise ToolError(fault)
            return ProcessSpec(
                argv=context.wrap((self._shell, "-c", arguments["command"])),
                cwd=context.folder,
                environment=context.environment,
                timeout=timeout,
                grace=self._grace,
                keep=self._output_limit // 2,
                spill=context.spill_folder / f"{_UNSAFE.sub('_', context.call)}.txt",
            )

        return ProcessRun(
            self._processes,
            partial(asyncio.to_thread, prepare),
            lambda result: _told(result, timeout),
            context.on_output,
        )


def _told(result: ProcessResult, timeout: float) -> ToolResult:
    """Say how it ended, with what it printed."""
    spilled = str(result.spilled or "")
    text = join_ends(result.head, result.tail, result.total, spilled).rstrip("\n")
    text = text or "(no output)"
    match result.status:
        case "timed_out":
            end = f"[timed out after {timeout:g} s and was stopped]"
        case "killed":
            end = "[interrupted]"
        case _:
            end = f"[exit code {_exit_code(result)}]"
    parts = [text, end]
    if result.status == "exited" and result.killed:
        parts.append("[what it left running in the background was stopped]")
    if result.reason:
        parts.append(f"[{result.reason}]")
    status = _STATUS.get(result.status) or ("ok" if result.exit_code == 0 else "failed")
    return ToolResult(
        status,
        "\n".join(parts),
        result.exit_code,
        result.total,
        result.killed,
        result.survivors,
        spilled,
    )


def _exit_code(result: ProcessResult) -> str:
    code = result.exit_code
    return f"{code}: ended by signal {-code}" if code is not None and code < 0 else f"{code}"
