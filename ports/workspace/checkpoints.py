"""The workspace of a session in a thread of its own, which is started when it is first needed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ...journal.workspace.heartbeat import BEAT
from ...journal.workspace.plan import Outcome, RevertOrder
from ...journal.workspace.workspace import FileChange, Workspace

T = TypeVar("T")


class Checkpoints:
    """Looks at a folder in one worker thread, in order; see the protocol `Workspace`."""

    def __init__(self, place: Path, folder: Path, session: str) -> None:
        self._workspace = Workspace(place, folder, session, os.environ)
        self._worker: ThreadPoolExecutor | None = None
        self._calls = set[str]()
        self._timer: asyncio.TimerHandle | None = None
        self._is_still = asyncio.Event()
        self._is_still.set()

    async def begin(self, turn: str, call: str, tool: str, path: str | None) -> list[str]:
        """Look before a call."""
        self._calls.add(call)
        self._is_still.clear()

        def work() -> list[str]:
            self._workspace.begin(turn, call, tool, path)
            return self._notices()

        told = await self._run(work)
        if self._timer is None:
            self._beat()
        return told

    def _beat(self) -> None:
        """Leave a trace of the time while calls run, for whoever comes after a crash."""
        self._timer = None
        if self._calls:
            self._workspace.heartbeat.beat()
            self._timer = asyncio.get_running_loop().call_later(BEAT, self._beat)

    def end(self, call: str) -> None:
        """Look, soon, at what a call changed; nobody waits for it but the next look."""
        self._started().submit(self._workspace.end, call)
        self._calls.discard(call)
        if not self._calls:
            self._is_still.set()

    async def count(self, order: RevertOrder) -> int:
        """Return how many files an order is about."""
        await self._stillness(order)
        return await self._run(lambda: self._workspace.count(order))

    async def revert(self, order: RevertOrder) -> Outcome:
        """Give files back. Raises `RestoreFailed`."""
        await self._stillness(order)
        return await self._run(lambda: self._workspace.revert(order))

    async def diff(self, turns: tuple[str, ...]) -> list[FileChange]:
        """Say what turns changed."""
        return await self._run(lambda: self._workspace.diff(turns))

    async def changed(self, turn: str, calls: str = "") -> tuple[int, bool]:
        """Count the files that calls of a turn left changed, and say whether that is known of all."""
        return await self._run(lambda: self._workspace.changed(turn, calls))

    async def changed_files(self, turns: tuple[str, ...]) -> list[str]:
        """Name the files that turns changed."""
        return await self._run(lambda: self._workspace.changed_files(turns))

    async def aclose(self) -> None:
        """Wait for the last look."""
        if self._timer is not None:
            self._timer.cancel()
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.to_thread(worker.shutdown)

    async def _stillness(self, order: RevertOrder) -> None:
        """Wait for the end of all calls; a child whose actor failed may have left one."""
        if not order.is_dry_run:
            await self._is_still.wait()

    def _notices(self) -> list[str]:
        told, self._workspace.notices = self._workspace.notices, []
        return told

    def _started(self) -> ThreadPoolExecutor:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "steersman-workspace")
        return self._worker

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._started(), work)
