"""A session's folder: checkpoints around the calls that may change it, reverts, and diffs.

`WorkspacePort` is the seam. Its operations run in the order in which they are requested, in a worker
thread; `begin` therefore also waits for the scan after the previous call, and nothing else waits.
Terms: `workspace/`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ..machines import protocol as m
from ..machines.errors import ToolError
from ..workflows.tools import kind_of
from ..workspace.heartbeat import BEAT
from ..workspace.restore import RestoreFailed
from ..workspace.workspace import FileChange, Workspace
from .tools.place import find_place
from .tools.tool import TaskRun, ToolRun

T = TypeVar("T")


class Checkpoints:
    """Scans a session's folder in a worker thread, which starts when it is first needed."""

    def __init__(self, place: Path, folder: Path, session: str) -> None:
        self._workspace = Workspace(place, folder, session, os.environ)
        self._worker: ThreadPoolExecutor | None = None
        self._calls = set[str]()
        self._timer: asyncio.TimerHandle | None = None
        self._is_still = asyncio.Event()
        self._is_still.set()

    @property
    def alive(self) -> Path:
        """The file whose time says until when commands ran."""
        return self._workspace.heartbeat.file

    async def begin(self, turn: str, call: str, tool: str, path: str | None) -> list[str]:
        """Scan before a call; returns notices for the person. `path` none: the call may change any."""
        self._calls.add(call)
        self._is_still.clear()

        def work() -> list[str]:
            self._workspace.begin(turn, call, tool, path)
            notices, self._workspace.notices = self._workspace.notices, []
            return notices

        notices = await self._run(work)
        if self._timer is None:
            self._beat_on()
        return notices

    def beat(self) -> None:
        """Record the time while calls run, so that recovery knows until when these changed files.

        Never before the first scan: that enters what an earlier program left, and needs the old time.
        """
        if self._timer is not None:
            self._workspace.heartbeat.beat()

    def _beat_on(self) -> None:
        """Record the time as long as calls run."""
        self._timer = None
        if self._calls:
            self._workspace.heartbeat.beat()
            self._timer = asyncio.get_running_loop().call_later(BEAT, self._beat_on)

    def end(self, call: str) -> None:
        """Scan, soon, for the changes of a call; only the next scan waits for this one."""
        self.beat()
        self._started().submit(self._workspace.end, call)
        self._calls.discard(call)
        if not self._calls:
            self._is_still.set()

    async def count(self, order: m.RestoreFiles) -> int:
        """Return how many files an order is about, once no call runs any more."""
        await self._stillness(order)
        return await self._run(lambda: self._workspace.count(order))

    async def revert(self, order: m.RestoreFiles) -> m.RestoreEnded:
        """Restore files. Raises `RestoreFailed`; then nothing has changed."""
        await self._stillness(order)
        return await self._run(lambda: self._workspace.revert(order))

    async def diff(
        self, turns: tuple[str, ...], resumed: tuple[tuple[str, str], ...] = ()
    ) -> list[FileChange]:
        """Return the changes of turns; without any, of the newest and those it goes on from."""
        return await self._run(lambda: self._workspace.diff(turns, resumed))

    async def changed(self, turn: str, calls: str = "") -> tuple[int, bool]:
        """Count the files that calls of a turn left changed, and return whether that is all of them.

        `calls`: only of calls whose names begin so.
        """
        return await self._run(lambda: self._workspace.changed(turn, calls))

    async def changed_files(self, turns: tuple[str, ...]) -> list[str]:
        """Return the files that turns changed, and that are not as they were before."""
        return await self._run(lambda: self._workspace.changed_files(turns))

    async def aclose(self) -> None:
        """Wait for the last scan."""
        if self._timer is not None:
            self._timer.cancel()
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.to_thread(worker.shutdown)

    async def _stillness(self, order: m.RestoreFiles) -> None:
        """Wait for the end of all calls; a child whose actor failed may have left one."""
        if not order.is_dry_run:
            await self._is_still.wait()

    def _started(self) -> ThreadPoolExecutor:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "steersman-workspace")
        return self._worker

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._started(), work)


class ChildWorkspace:
    """The folder of a child's session, which is its root's: all files and changes belong there.

    A child's calls are recorded with those of the session above, under the turn that `turn_of` returns:
    a resumed child may work for a later turn. So in the end all belongs to a turn of the root.
    """

    def __init__(self, above: WorkspacePort, session: str, turn_of: Callable[[], str]) -> None:
        self._above = above
        self._session = session
        self._turn_of = turn_of

    @property
    def alive(self) -> Path:
        """That of the root."""
        return self._above.alive

    def beat(self) -> None:
        """Record the time, for the root."""
        self._above.beat()

    async def begin(self, turn: str, call: str, tool: str, path: str | None) -> list[str]:
        """Scan before a call."""
        return await self._above.begin(self._turn_of(), self._name(call), tool, path)

    def end(self, call: str) -> None:
        """Scan, soon, for the changes of a call."""
        self._above.end(self._name(call))

    def _name(self, call: str) -> str:
        """Make a call's id unique: each session counts its calls from one."""
        return f"{self._session}:{call}"

    async def count(self, order: m.RestoreFiles) -> int:
        """Return that an order is about no file."""
        return 0

    async def revert(self, order: m.RestoreFiles) -> m.RestoreEnded:
        """Refuse, since the files that a child alone changed are not known. Raises `RestoreFailed`."""
        raise RestoreFailed("a subagent's changes belong to its parent's turn: revert there")

    async def changed(self, turn: str, calls: str = "") -> tuple[int, bool]:
        """Count the files that calls of a turn left changed, among those of the turn above."""
        return await self._above.changed(self._turn_of(), self._name(calls or f"{turn}."))

    async def diff(
        self, turns: tuple[str, ...], resumed: tuple[tuple[str, str], ...] = ()
    ) -> list[FileChange]:
        """Return no changes: all are those of the root's turns."""
        return []

    async def changed_files(self, turns: tuple[str, ...]) -> list[str]:
        """Return no files, for the same reason."""
        return []

    async def aclose(self) -> None:
        """Do nothing: the root's session scans."""


WorkspacePort = Checkpoints | ChildWorkspace
"""One session's folder, its own or that of its root."""


class WatchedRun(TaskRun):
    """A `ToolRun` that starts after a scan of the folder; `after` is called when it has ended."""

    def __init__(
        self,
        scan: Awaitable[Any],
        start: Callable[[], ToolRun],
        after: Callable[[], None],
    ) -> None:
        self._is_stopped = False
        self._inner: ToolRun | None = None

        async def run() -> m.ToolResult:
            try:
                await scan
                if self._is_stopped:
                    return m.ToolResult(status="killed", text="Stopped before it started.")
                self._inner = start()
                return await self._inner.wait()
            finally:
                after()

        self._task = asyncio.create_task(run())

    @property
    def pid(self) -> int:
        """Process id of the run's command."""
        return self._inner.pid if self._inner is not None else 0

    def stop(self) -> None:
        """Begin to stop the run; a run that has not started does not start."""
        self._is_stopped = True
        if self._inner is not None:
            self._inner.stop()


def written_path(tool: str, arguments: dict[str, Any], folder: Path) -> str | None:
    """Return the one path that a tool of ours writes, links resolved; none if it may be any.

    A path outside the folder, which the workspace does not cover, is returned absolute.
    """
    path = arguments.get("path")
    if kind_of(tool) != "edit" or not isinstance(path, str):
        return None
    try:
        return find_place(path, folder).relative
    except ToolError:
        return None
