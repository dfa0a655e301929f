"""Tools that do their work in a worker thread of this process: short ones, about files."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from ...machines import protocol as m
from ...machines.conversation import ToolSchema
from ...machines.errors import ToolError
from .arguments import fault_of
from .text import shown
from .tool import TaskRun, Tool, ToolContext

Work = Callable[[dict[str, Any], ToolContext, "StopFlag"], m.ToolResult]


class ToolStopped(Exception):
    """Raised inside a worker by `StopFlag.check`; never leaves the run."""


class StopFlag(threading.Event):
    """Set to stop a worker, which checks it between two pieces of its work."""

    def check(self) -> None:
        """Raise `ToolStopped` if the worker is to stop."""
        if self.is_set():
            raise ToolStopped


class ThreadTool(Tool):
    """A tool made of a schema and a function; see `Tool`.

    `check` returns a further fault of arguments that fit the schema; empty if there is none.
    """

    def __init__(
        self,
        schema: ToolSchema,
        work: Work,
        *,
        is_mutating: bool = False,
        is_idempotent: bool = True,
        check: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self.schema, self.is_mutating, self.is_idempotent = schema, is_mutating, is_idempotent
        self._work, self._check = work, check

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments; empty if there is none."""
        fault = fault_of(self.schema, arguments)
        return fault if fault or self._check is None else self._check(arguments)

    def start(self, arguments: dict[str, Any], context: ToolContext) -> "ThreadRun":
        """Start the function in a worker thread."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return ThreadRun(self._work, given, context, self.fault(arguments))


class ThreadRun(TaskRun):
    """One run in a worker thread; see `ToolRun`. There is no process."""

    pid = 0

    def __init__(
        self, work: Work, arguments: dict[str, Any], context: ToolContext, fault: str
    ) -> None:
        self._work, self._arguments, self._context = work, arguments, context
        self._fault = fault
        self._stop = StopFlag()
        self._task = asyncio.create_task(asyncio.to_thread(self._run))

    def stop(self) -> None:
        """Ask the worker to end at its next check."""
        self._stop.set()

    def _run(self) -> m.ToolResult:
        try:
            if self._fault:
                raise ToolError(self._fault)
            self._stop.check()
            return self._work(self._arguments, self._context, self._stop)
        except ToolStopped:
            return m.ToolResult(status="killed", text="Stopped before it was done.")
        except ToolError as error:
            return failed(error)
        except OSError as error:
            path = shown(str(self._arguments.get("path", ".")))
            return failed(ToolError(f"`{path}`: {error.strerror or error}"))


def refusing(schema: ToolSchema, text: str) -> ThreadTool:
    """Return a tool whose calls an actor carries out; `text` refuses those that come here."""

    def work(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
        return m.ToolResult(status="failed", text=text)

    return ThreadTool(schema, work, is_idempotent=False)


def failed(error: ToolError) -> m.ToolResult:
    """Return the result of an error, with its message and its hint for the model."""
    hint = f"; {error.hint}" if error.hint else ""
    return m.ToolResult(status="failed", text=f"Error: {error.message}{hint}")
