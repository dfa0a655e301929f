"""Tools that a configuration declares: commands that get their arguments as JSON on standard input.

What the command prints is the result. An exit code other than 0 is a failure, whose result also has the
end of standard error. Apart from that a call is one of the tool `shell`: the same supervisor, environment
and limits, and the same sandbox where the declaration wants one.
"""

import asyncio
import json
from functools import partial
from typing import Any

from ...machines import protocol as m
from ...machines.errors import ToolError
from ...workflows.settings import ToolDeclaration
from ..process.process import ProcessResult, ProcessSpec
from .arguments import declare, fault_of, given_of
from .shell import STATUS, ProcessRun, ending
from .text import join_ends, readable
from .tool import ToolContext, ToolResources, ToolRun

_ERRORS = 4096
"""Bytes of the end of standard error that a failure shows."""


class DeclaredTool:
    """Runs a declared command as a supervised process; see `Tool`."""

    is_idempotent = False

    def __init__(self, declaration: ToolDeclaration, resources: ToolResources) -> None:
        self.schema = declare(
            declaration.name,
            declaration.description,
            declaration.needed,
            **declaration.parameters,
        )
        self.is_mutating = declaration.mutating
        self._declaration = declaration
        self._resources = resources

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments; empty if there is none."""
        return fault_of(self.schema, arguments)

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the command."""
        timeout = self._declaration.timeout
        command = self._declaration.run

        def prepare() -> ProcessSpec:
            if fault := self.fault(arguments):
                raise ToolError(fault)
            return ProcessSpec(
                argv=context.wrap(command) if self._declaration.sandbox else command,
                cwd=context.folder,
                environment=context.environment,
                timeout=timeout,
                grace=self._resources.grace,
                keep=context.limit // 2,
                spill=context.spill_file,
                stdin=self._input(arguments),
                keep_errors=_ERRORS,
            )

        return ProcessRun(
            self._resources.processes,
            partial(asyncio.to_thread, prepare),
            lambda result: _result(result, timeout, is_poll=self._declaration.polls),
            context.on_output,
        )

    def _input(self, arguments: dict[str, Any]) -> bytes:
        """Write the arguments, with the defaults of those that are not given."""
        schemas = self._declaration.parameters
        defaults = {name: one["default"] for name, one in schemas.items() if "default" in one}
        whole = {**defaults, **given_of(self.schema, arguments)}
        return json.dumps(whole, ensure_ascii=False).encode() + b"\n"


def _result(result: ProcessResult, timeout: float, *, is_poll: bool) -> m.ToolResult:
    """Return a result with the output, and of a failure with its errors and how it ended."""
    is_ok = result.status == "exited" and result.exit_code == 0
    spilled = str(result.spilled or "")
    output = join_ends(result.head, result.tail, result.total, spilled).rstrip("\n")
    parts = [output, *([] if is_ok else [readable(result.errors).rstrip("\n")])]
    parts = [part for part in parts if part] or ["(no output)"]
    parts += [] if is_ok else [ending(result, timeout)]
    parts += [f"[{result.reason}]"] if result.reason else []
    return m.ToolResult(
        status=STATUS.get(result.status) or ("ok" if is_ok else "failed"),
        text="\n".join(parts),
        exit_code=result.exit_code,
        bytes=result.total,
        killed=result.killed,
        survivors=result.survivors,
        spilled=spilled,
        is_poll=is_poll,
    )
