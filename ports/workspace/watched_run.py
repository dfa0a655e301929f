"""A tool's run with a look at the folder before and after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ..tools.place import find_place
from ..tools.tool import ToolResult, ToolRun
from .workspace import WorkspacePort

WRITES_ONE = ("edit", "write")


class WatchedRun:
    """A `ToolRun` that starts after the look before it; the look after it is nobody's to wait for."""

    def __init__(
        self,
        workspace: WorkspacePort,
        about: tuple[str, str, str, str | None],
        start: Callable[[], ToolRun],
        told: Callable[[str], None],
    ) -> None:
        self._is_stopped = False
        self._inner: ToolRun | None = None
        self._task = asyncio.create_task(self._run(workspace, about, start, told))

    @property
    def pid(self) -> int:
        """Process id of the run's command."""
        return self._inner.pid if self._inner is not None else 0

    async def wait(self) -> ToolResult:
        """Return the result of the run."""
        return await asyncio.shield(self._task)

    def stop(self) -> None:
        """Begin to stop it; one that has not started does not start any more."""
        self._is_stopped = True
        if self._inner is not None:
            self._inner.stop()

    async def _run(
        self,
        workspace: WorkspacePort,
        about: tuple[str, str, str, str | None],
        start: Callable[[], ToolRun],
        told: Callable[[str], None],
    ) -> ToolResult:
        try:
            for text in await workspace.begin(*about):
                told(text)
            if self._is_stopped:
                return ToolResult("killed", "Stopped before it started.")
            self._inner = start()
            return await self._inner.wait()
        finally:
            workspace.end(about[1])


def written_path(tool: str, arguments: dict[str, Any], folder: Path) -> str | None:
    """Return the one path that a tool of ours writes, links resolved; none if it may be any.

    One outside the folder is none of the folder's business: it is returned as it is, absolute.
    """
    path = arguments.get("path")
    if tool not in WRITES_ONE or not isinstance(path, str):
        return None
    try:
        return find_place(path, folder).relative
    except ToolError:
        return None
