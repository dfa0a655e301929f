"""A tool's run that is a supervised process."""

import asyncio
import codecs
from collections.abc import Awaitable, Callable

from ...machines.errors import ToolError
from ..process.process import Process, Processes, ProcessResult, ProcessSpec
from .thread_tool import failed
from .tool import ToolResult

__all__ = ["ProcessRun"]


class ProcessRun:
    """One supervised process as a `ToolRun`.

    `prepare` makes the command; its `ToolError` becomes the result. `tell` makes the result that is
    told, and `on_output` hears what is printed, as it comes.
    """

    def __init__(
        self,
        processes: Processes,
        prepare: Callable[[], Awaitable[ProcessSpec]],
        tell: Callable[[ProcessResult], ToolResult],
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        self._process: Process | None = None
        self._is_stopped = False
        self._tell = tell
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._task = asyncio.create_task(self._run(processes, prepare))

    @property
    def pid(self) -> int:
        """Process id of the command, once it runs."""
        return self._process.pid if self._process is not None else 0

    async def wait(self) -> ToolResult:
        """Return the result; nothing that it started is left then."""
        return await asyncio.shield(self._task)

    def stop(self) -> None:
        """Begin to stop it; called again, it does not wait for anybody's manners."""
        if self._process is not None:
            self._process.stop(0.0 if self._is_stopped else None)
        self._is_stopped = True

    async def _run(
        self, processes: Processes, prepare: Callable[[], Awaitable[ProcessSpec]]
    ) -> ToolResult:
        try:
            spec = await prepare()
            if self._is_stopped:
                return ToolResult("killed", "Stopped before it started.")
            self._process = await processes.spawn(spec, self._pass_on if self._on_output else None)
        except ToolError as error:
            return failed(error)
        if self._is_stopped:  # while it was being started
            self._process.stop()
        result = await self._process.wait()
        if result.status in ("failed", "lost"):
            return failed(ToolError(result.reason))
        return self._tell(result)

    def _pass_on(self, data: bytes) -> None:
        if self._on_output is not None:
            self._on_output(self._decoder.decode(data))
