"""The seam to processes: spawn a command under its own supervisor, wait, stop.

`stopped` is a proof: a result is only returned when the supervisor process, a subreaper, has reaped
every descendant of the command (`wait()` says there are no children), daemons and `setsid` too.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, Protocol

from msgspec import field

from ...machines.value import Value


class ProcessSpec(Value):
    """What to run and within which bounds.

    `timeout` and `grace` are seconds: at the timeout, or at `stop`, everything is asked to end
    (TERM), and killed after `grace`. `keep` bytes of head and of tail stay in memory; everything up
    to `spill_limit` bytes is written to `spill` once the output outgrows memory. With `keep_errors`
    standard error is kept apart, so many bytes of its end; else it is part of the output. The time of the
    file `alive` is set when nothing of the command is left, also if this program has died meanwhile.
    """

    argv: tuple[str, ...]
    cwd: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    timeout: float | None = None
    grace: float = 0.2
    keep: int = 16_384
    spill: Path | None = None
    spill_limit: int = 64 * 1024 * 1024
    stdin: bytes = b""
    keep_errors: int = 0
    alive: Path | None = None


class ProcessResult(Value):
    """How a command ended; `killed` are the pids that had to be killed or asked to end.

    `status`: `exited` without a stop, `timed_out`, `killed` by `stop`, `failed` to start (`reason` says
    why), `lost` if the supervisor died, `unknown` if contact was lost to the machine on which it ran.
    Processes that the command left running in the background when it exited are killed, too, and listed
    in `killed`.
    """

    status: Literal["exited", "timed_out", "killed", "failed", "lost", "unknown"]
    exit_code: int | None = None
    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    spilled: Path | None = None
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    reason: str = ""
    errors: bytes = b""


class Process(Protocol):
    """A command that runs."""

    @property
    def pid(self) -> int:
        """Process id of the command itself."""
        ...

    async def wait(self) -> ProcessResult:
        """Return when every process that it started has exited."""
        ...

    def stop(self, grace: float | None = None) -> None:
        """Begin to stop everything it started; returns at once. May be called again, to hurry."""
        ...


Spawn = Callable[[ProcessSpec, Callable[[bytes], None] | None], Awaitable[Process]]
"""Starts a command, and passes its output on; see `Processes.spawn`."""


class Processes(Protocol):
    """Spawns commands; one for the whole program."""

    async def spawn(
        self, spec: ProcessSpec, on_output: Callable[[bytes], None] | None = None
    ) -> Process:
        """Start a command on the running asyncio loop."""
        ...

    def set_deadline(self, deadline: float | None) -> None:
        """Have every command killed, and none started, from that second of `deadline_clock` on."""
        ...

    async def aclose(self) -> None:
        """Kill everything that still runs and end the helper. Idempotent."""
        ...
