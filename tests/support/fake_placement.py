"""A place for remote steps that is none: what becomes of each command is written down beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from steersman.ports.placement import PlacedResult, RemoteCommand
from steersman.ports.process.process import Process


def exited(code: int = 0, head: bytes = b"", missing: tuple[str, ...] = ()) -> PlacedResult:
    """Return the result of a command that came to its end."""
    return PlacedResult(
        status="exited", exit_code=code, head=head, tail=b"", total=len(head), missing=missing
    )


LOST = PlacedResult(
    status="unknown", exit_code=None, head=b"", tail=b"", total=0, reason="its worker was lost"
)
KILLED = PlacedResult(status="killed", exit_code=-15, head=b"", tail=b"", total=0, killed=(4711,))


class FakePlacement:
    """Gives each command the next of the results; one that has none runs until it is stopped.

    `commands` are those that were handed over. `after_stop` is what a stopped command comes to: `KILLED`,
    or a result that was faster, or that its worker was lost meanwhile.
    """

    def __init__(
        self, results: Iterable[PlacedResult] = (), after_stop: PlacedResult = KILLED
    ) -> None:
        self.commands: list[RemoteCommand] = []
        self.is_closed = False
        self._results = list(results)
        self._after_stop = after_stop

    async def start(
        self, command: RemoteCommand, on_output: Callable[[bytes], None] | None = None
    ) -> Process:
        """Take a command; what it would print is its output at once."""
        self.commands.append(command)
        result = self._results.pop(0) if self._results else None
        if on_output is not None and result is not None and result.head:
            on_output(result.head)
        return _FakeProcess(result, self._after_stop)

    async def aclose(self) -> None:
        """Note it."""
        self.is_closed = True


class _FakeProcess:
    def __init__(self, result: PlacedResult | None, after_stop: PlacedResult) -> None:
        self.pid = 0
        self._after_stop = after_stop
        self._ended: asyncio.Future[PlacedResult] = asyncio.get_running_loop().create_future()
        if result is not None:
            self._ended.set_result(result)

    async def wait(self) -> PlacedResult:
        """Return the result."""
        return await asyncio.shield(self._ended)

    def stop(self, grace: float | None = None) -> None:
        """End it."""
        if not self._ended.done():
            self._ended.set_result(self._after_stop)
