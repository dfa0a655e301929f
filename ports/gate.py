"""Runs a goal's gates: commands that must succeed before anybody is asked whether the goal is reached.

A gate is a supervised process like a tool's: no shell, unless the command is one; a time limit; and
nothing that it started is left when it has ended.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from ..machines.errors import ToolError
from ..machines.pursuit import GateResult
from .process.process import Process, Processes, ProcessResult, ProcessSpec

__all__ = ["run_gate"]

KEEP = 4_000
"""Bytes of the output's head, and of its tail."""


async def run_gate(
    argv: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    processes: Processes,
    on_start: Callable[[Process], None],
) -> tuple[GateResult, ProcessResult | None]:
    """Run a gate to its end, or to its time limit in seconds; `on_start` gets what can stop it."""
    command = shlex.join(argv)
    spec = ProcessSpec(argv, folder, dict(environment), timeout=timeout, keep=KEEP)
    try:
        process = await processes.spawn(spec)
        on_start(process)
        result = await process.wait()
    except ToolError as error:
        return GateResult(command, passed=False, status="failed", output=error.message), None
    text = (result.head + result.tail).decode(errors="replace")
    passed = result.status == "exited" and result.exit_code == 0
    output = result.reason if result.status == "failed" else text
    return GateResult(command, passed, result.status, result.exit_code, output[-KEEP:]), result
