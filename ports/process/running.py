"""The runtime's side of a running command: its output, its result, its stop."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from .leftover import end_marked
from .link import SupervisorLink
from .process import ProcessResult, ProcessSpec
from .wire import frame

Status = Literal["exited", "timed_out", "killed", "failed", "lost"]

_STREAM_SECONDS = 0.03  # pieces are collected that long, as model text is
_STREAM_BYTES = 16_384  # of a piece; more than that is left out of the stream
_CHUNK = 65_536  # bytes read per turn of the loop, so that much output does not block other tasks
_LAST_CHUNKS = 64  # a full pipe is less; more comes only from outside the process tree


# Output -------------------------------------------------------------------------------------------


class OutputBuffer:
    """Keeps `keep` bytes of head and of tail in memory, and writes all to `spill` if that is more.

    The file holds at most `spill_limit` bytes. It is made, never opened: an existing file or
    symlink in its place is a reason not to keep the output (`fault`), never to write through it.
    """

    def __init__(self, keep: int, spill: Path | None, spill_limit: int) -> None:
        self._keep, self._spill = keep, spill
        self._room = spill_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._file: int | None = None
        self.total = 0
        self.fault = ""
        self.spilled: Path | None = None

    @property
    def head(self) -> bytes:
        """The first bytes, at most `keep`."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes that are not in the head, at most `keep`."""
        return bytes(self._tail[-self._keep :]) if self._keep else b""

    def add(self, data: bytes) -> None:
        """Add the next bytes."""
        if self.spilled is None and self._spill and self.total + len(data) > 2 * self._keep:
            self._open(self._spill)
        self._write(data)
        self.total += len(data)
        missing = self._keep - len(self._head)
        self._head += data[:missing]
        self._tail += data[missing:]
        if len(self._tail) > 2 * self._keep:
            del self._tail[: len(self._tail) - self._keep]

    def close(self) -> None:
        """Close the file, if there is one. Idempotent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, path: Path) -> None:
        """Create the file, and write the output so far, all of which is still in memory."""
        self._spill = None  # one attempt
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            self.fault = (
                f"the complete output is not saved: cannot create `{path}`: {error.strerror}"
            )
            return
        self.spilled = path
        self._write(bytes(self._head + self._tail))

    def _write(self, data: bytes) -> None:
        if self._file is None or self._room <= 0:
            return
        try:
            self._room -= os.write(self._file, data[: self._room])
        except OSError as error:
            self.fault = f"the output file `{self.spilled}` ends early: {error.strerror}"
            self._room = 0


class Trickle:
    """Passes output on in pieces, limited in rate and size: of too much, the beginning and the end."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self._head, self._tail = bytearray(), bytearray()
        self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, data: bytes) -> None:
        """Add the next bytes, which are passed on within 30 ms."""
        room = _STREAM_BYTES // 2
        size = 0 if self._tail else room - len(self._head)
        self._head += data[:size]
        self._tail += data[size:]
        if (more := len(self._tail) - room) > 0:
            del self._tail[:more]
            self._left_out += more
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_STREAM_SECONDS, self.flush)

    def flush(self) -> None:
        """Pass on the pending bytes now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        head, tail = bytes(self._head), bytes(self._tail)
        self._head.clear()
        self._tail.clear()
        if self._left_out:
            half, end, whole = tail.partition(b"\n")
            tail = whole if end else tail  # without the rest of a line
            left_out = self._left_out + (len(half) + 1 if end else 0)
            head += b"\n[... %d bytes left out ...]\n" % left_out
            self._left_out = 0
        if piece := head + tail:
            self._on_output(piece)


class DrainedPipe:
    """Passes the data of a pipe to `take`; owns the descriptor. Belongs to the asyncio loop."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor, self._take = descriptor, take
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def close(self) -> None:
        """Read the rest of the pipe, and close it."""
        for _ in range(_LAST_CHUNKS):
            if not self._read():
                break
        self._stop_reading()
        os.close(self._descriptor)

    def _read(self) -> bool:
        """Read one chunk; False when there is none now."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._take(data)
        else:
            self._stop_reading()
        return bool(data)

    def _stop_reading(self) -> None:
        if self._is_open:  # removing a descriptor that the loop does not watch is slow
            self._is_open = False
            self._loop.remove_reader(self._descriptor)


class CommandOutput:
    """The output of a command from its two pipes; `errors` is -1 if both streams share one pipe."""

    def __init__(
        self, spec: ProcessSpec, output: int, errors: int, on_output: Callable[[bytes], None] | None
    ) -> None:
        self.buffer = OutputBuffer(spec.keep, spec.spill, spec.spill_limit)
        self.errors = b""
        self._keep_errors = spec.keep_errors
        self._trickle = Trickle(on_output) if on_output else None
        self._pipes = [DrainedPipe(output, self._take)]
        if errors >= 0:
            self._pipes.append(DrainedPipe(errors, self._take_errors))

    def close(self) -> None:
        """Read the rest of the pipes, and pass on the pending bytes."""
        for pipe in self._pipes:
            pipe.close()
        self.buffer.close()
        if self._trickle:
            self._trickle.flush()

    def _take(self, data: bytes) -> None:
        self.buffer.add(data)
        if self._trickle:
            self._trickle.add(data)

    def _take_errors(self, data: bytes) -> None:
        self.errors = (self.errors + data)[-self._keep_errors :]


# Processes ----------------------------------------------------------------------------------------


class UnstartedProcess:
    """A command that could not be started; see `Process`."""

    pid = 0

    def __init__(self, reason: str) -> None:
        self._result = ProcessResult(status="failed", reason=reason)

    async def wait(self) -> ProcessResult:
        """Return the failure."""
        return self._result

    def stop(self, grace: float | None = None) -> None:
        """Do nothing: nothing runs."""


class RunningProcess:
    """A command under a supervisor; see `Process`. Belongs to the asyncio loop.

    It has the supervisor until its end. `mark` is in the environment of its processes.
    """

    def __init__(
        self, supervisor: SupervisorLink, output: CommandOutput, grace: float, mark: str
    ) -> None:
        self._supervisor, self._output, self._grace = supervisor, output, grace
        self._mark = mark
        self._losing: asyncio.Task[None] | None = None
        self.pid = 0
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[ProcessResult] = loop.create_future()

    async def wait(self) -> ProcessResult:
        """Return when every process that it started has exited."""
        return await asyncio.shield(self.ended)

    def stop(self, grace: float | None = None) -> None:
        """Begin to stop every process that it started; a later call can only shorten the grace."""
        if self.ended.done():
            return
        if not self._supervisor.send(frame("stop", self._grace if grace is None else grace)):
            self.abandon()

    def abandon(self) -> None:
        """Have everything killed at once, and reported."""
        if not self.ended.done():
            self._supervisor.hang_up()

    def give_up_start(self) -> None:
        """Wait no longer for a start that takes too long; its end is reported as usual."""
        self.abandon()
        self._has_started()

    def hear(self, message: tuple[Any, ...]) -> None:
        """Take what the supervisor reports."""
        match message:
            case ("started", pid):
                self.pid = pid
                self._has_started()
            case ("failed", reason):
                self._finish("failed", reason=reason)
            case ("done", status, code, killed, survivors) if not self.ended.done():
                self._finish(status, code, killed, survivors)
            case _:
                assert self.ended.done(), f"the supervisor sent {message}"

    def lose(self) -> None:
        """Learn that the supervisor ended without a report."""
        self._losing = asyncio.get_running_loop().create_task(self._lose())

    async def _lose(self) -> None:
        """End the orphans of the supervisor: what the spawner has left, if it was killed, too."""
        loss = await self._supervisor.loss()
        killed, survivors = await asyncio.to_thread(end_marked, self._mark)
        found = sorted({*loss.killed, *killed} - {*survivors})
        left = survivors or loss.survivors
        # Killed early, it has not reported the process that it started.
        has_started = self.pid or found or left
        reason = "its supervisor was killed" if has_started else "its supervisor did not start"
        self._finish("lost", None, tuple(found), left, reason)

    def _has_started(self) -> None:
        if not self.started.done():
            self.started.set_result(None)

    def _finish(
        self,
        status: Status,
        code: int | None = None,
        killed: tuple[int, ...] = (),
        survivors: tuple[int, ...] = (),
        reason: str = "",
    ) -> None:
        """Close all descriptors, give the supervisor back, and set the result."""
        if survivors or status == "lost":
            self._supervisor.close()
        else:
            self._supervisor.release()
        self._output.close()
        self._has_started()
        buffer = self._output.buffer
        self.ended.set_result(
            ProcessResult(
                status=status,
                exit_code=code,
                head=buffer.head,
                tail=buffer.tail,
                total=buffer.total,
                spilled=buffer.spilled,
                killed=killed,
                survivors=survivors,
                reason=reason or buffer.fault,
                errors=self._output.errors,
            )
        )
