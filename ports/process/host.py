"""Spawns commands under supervisors; one for the whole program.

    runtime ──8 bytes + control socket──> spawner ──fork──> supervisor ──spawn──> command
       └─────────control socket (run, stop, started, done)──────┘                   │
       └─────────────────────────────output pipe────────────────────────────────────┘

The spawner is started with the first command, or by `start`, and again if it died; running commands
continue without it. A supervisor of whose command nothing is left is given the next one, since a fork
costs more than most commands. Commands inherit the umask that the program had when the spawner started.
"""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import lru_cache

from ...machines.errors import ToolError
from .leftover import MARK, mark_of
from .link import SpawnerLink, SupervisorLink
from .process import Process, ProcessSpec
from .running import CommandOutput, RunningProcess, UnstartedProcess
from .wire import frame

_START_SECONDS = 30.0  # generous: a machine may be that busy
_END_SECONDS = 10.0
_SPARE = 4  # supervisors without a command that are kept for the next ones
_SURPLUS_SECONDS = 2.0  # for which more are kept: of many commands that end at once
_FEW = 16  # supervisors that are let go at once
_PAUSE = 0.05  # seconds before the next few


class ProcessHost:
    """Implements `Processes`. Belongs to the asyncio loop on which it is first used."""

    def __init__(self) -> None:
        self._link: SpawnerLink | None = None
        self._retired: list[SpawnerLink] = []
        self._live: set[RunningProcess] = set()
        self._free: list[SupervisorLink] = []
        self._thinning: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._tokens = itertools.count(1)
        self._is_closed = False

    @property
    def spawner_pid(self) -> int:
        """Process id of the spawner, 0 before it is started."""
        return self._link.pid if self._link else 0

    async def start(self) -> None:
        """Start the spawner now, so that the first command does not wait for it."""
        self._living_link()

    def set_deadline(self, deadline: float | None) -> None:
        """Have every command killed, and none started, from that second of `deadline_clock` on.

        The spawner sees to it, also when this process is stopped. None: at no time.
        """
        self._deadline = deadline
        if self._link is not None and self._link.is_alive:
            self._link.set_deadline(deadline)

    async def spawn(
        self, spec: ProcessSpec, on_output: Callable[[bytes], None] | None = None
    ) -> Process:
        """Start a command on the running asyncio loop; a failure to start becomes its result.

        `on_output` is called on the loop, at most every 30 ms and with at most 16 KiB. Raises
        `ToolError` after `aclose`.
        """
        if not spec.argv:
            return UnstartedProcess("there is no command to run")
        try:
            process = await self._hand_over(spec, on_output)
        except (OSError, UnicodeEncodeError) as error:
            return UnstartedProcess(f"no process can be started: {error}")
        late = asyncio.get_running_loop().call_later(_START_SECONDS, process.give_up_start)
        try:
            await process.started
        except asyncio.CancelledError:
            process.abandon()
            raise
        finally:
            late.cancel()
        return process

    async def aclose(self) -> None:
        """Kill all running commands, and end the spawner. Idempotent."""
        self._is_closed = True
        for process in list(self._live):
            process.abandon()
        if self._live:
            await asyncio.wait([process.ended for process in self._live], timeout=_END_SECONDS)
        for supervisor in self._free:
            supervisor.close()
        if self._thinning is not None:
            self._thinning.cancel()
        links = [*self._retired, *([self._link] if self._link else [])]
        self._link = None
        self._retired.clear()
        for link in links:
            await link.aclose()

    def _living_link(self) -> SpawnerLink:
        """Return the spawner, restarted if it died."""
        if self._is_closed:
            raise ToolError("no process can be started: the program is ending")
        if self._link and not self._link.is_alive:
            self._retired.append(self._link)
            self._link = None
        if self._link is None:
            self._link = SpawnerLink()
            self._link.set_deadline(self._deadline)
        return self._link

    async def _hand_over(
        self, spec: ProcessSpec, on_output: Callable[[bytes], None] | None
    ) -> RunningProcess:
        mark = mark_of(next(self._tokens))
        with ExitStack() as ours, ExitStack() as theirs:
            output, their_output = os.pipe()
            ours.callback(os.close, output)
            theirs.callback(os.close, their_output)
            streams = {"o": their_output}
            if spec.stdin:
                streams["i"] = _file_of(spec.stdin)
                theirs.callback(os.close, streams["i"])
            errors = -1
            if spec.keep_errors:
                errors, streams["e"] = os.pipe()
                ours.callback(os.close, errors)
                theirs.callback(os.close, streams["e"])
            if spec.alive is not None:
                with suppress(OSError):  # only the attribution of changes after a crash needs it
                    streams["a"] = os.open(spec.alive, os.O_WRONLY | os.O_CLOEXEC)
                    theirs.callback(os.close, streams["a"])
            environment = {
                _encoded(name): _encoded(text) for name, text in spec.environment.items()
            }
            environment |= {os.fsencode(MARK): os.fsencode(mark)}
            argv, folder = tuple(map(os.fsencode, spec.argv)), os.fsencode(spec.cwd)
            texts = "".join(streams), argv, folder, environment
            request = frame("run", *texts, spec.timeout, spec.grace)  # see `wire.py`
            supervisor = await self._supervisor()
            ours.pop_all()
            made = CommandOutput(spec, output, errors, on_output)
            process = RunningProcess(supervisor, made, spec.grace, mark)
            self._live.add(process)
            process.ended.add_done_callback(lambda _: self._forget(process, supervisor))
            ours.callback(process.abandon)
            await supervisor.run(process, request, tuple(streams.values()))
            ours.pop_all()
        return process

    async def _supervisor(self) -> SupervisorLink:
        """Return a supervisor that has no command. Raises `OSError` and `ToolError`."""
        while self._free:
            supervisor = self._free.pop()
            if supervisor.is_free and not self._is_closed:
                return supervisor
            supervisor.close()
        link = self._living_link()
        try:
            return await SupervisorLink.request(link, next(self._tokens))
        except ConnectionError:  # the spawner just died, and nothing was taken
            link.retire()
            return await SupervisorLink.request(self._living_link(), next(self._tokens))

    def _forget(self, process: RunningProcess, supervisor: SupervisorLink) -> None:
        self._live.discard(process)
        if not supervisor.is_free or self._is_closed:
            supervisor.close()
            return
        self._free.append(supervisor)
        if len(self._free) > _SPARE and self._thinning is None:
            loop = asyncio.get_running_loop()
            self._thinning = loop.call_later(_SURPLUS_SECONDS, self._thin)

    def _thin(self) -> None:
        """Let go of a few supervisors that are too many, and of the others soon."""
        surplus = max(0, len(self._free) - _SPARE)
        gone, self._free = self._free[: min(_FEW, surplus)], self._free[min(_FEW, surplus) :]
        for supervisor in gone:
            supervisor.close()
        is_more = surplus > _FEW
        loop = asyncio.get_running_loop()
        self._thinning = loop.call_later(_PAUSE, self._thin) if is_more else None


@lru_cache(maxsize=512)
def _encoded(text: str) -> bytes:
    """Encode a part of the environment, which is the same for one command after another."""
    return os.fsencode(text)


def _file_of(data: bytes) -> int:
    """Make an unnamed file that holds `data`, to be read from its start."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
