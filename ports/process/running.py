"""A command that runs, seen from the runtime: its output, its end, its stop."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from .link import Loss
from .process import ProcessResult, ProcessSpec
from .wire import Frames, frame

# What a command prints: its head and tail in memory, the whole in a file, bounded everywhere


_STREAM_SECONDS = 0.03  # pieces are collected that long, as model text is
_STREAM_BYTES = 16_384  # of a piece; what a flood brings beyond is left out of the stream


class OutputBuffer:
    """Keeps `keep` bytes of head and of tail, and writes all to `spill` once it outgrows them.

    The file holds at most `spill_limit` bytes. It is made, never opened: an existing file or
    symlink in its place is a reason not to keep the output (`fault`), never to write through it.
    """

    def __init__(self, keep: int, spill: Path | None, spill_limit: int) -> None:
        self._keep = keep
        self._spill = spill
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
        """Take in the next bytes."""
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
        """Make the file and put into it what came so far, all of which is still in memory."""
        self._spill = None  # one attempt
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            self.fault = f"the whole output is not kept: cannot create `{path}`: {error.strerror}"
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
    """Passes output on in pieces, not faster and not larger than a reader of it can follow."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self._pending = bytearray()
        self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, data: bytes) -> None:
        """Take in the next bytes; they are passed on within 30 ms."""
        room = _STREAM_BYTES - len(self._pending)
        self._pending += data[:room]
        self._left_out += max(0, len(data) - room)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_STREAM_SECONDS, self.flush)

    def flush(self) -> None:
        """Pass on what waits, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        piece = bytes(self._pending)
        self._pending.clear()
        if self._left_out:
            piece += b"\n[... %d bytes left out ...]\n" % self._left_out
            self._left_out = 0
        if piece:
            self._on_output(piece)


_CHUNK = 65_536  # bytes read per turn of the loop, so that a flood starves nobody
_LAST_CHUNKS = 64  # a full pipe is less; more comes only from somebody outside the tree

Status = Literal["exited", "timed_out", "killed", "failed", "lost"]


class UnstartedProcess:
    """Stands for a command that could not even be handed over; see `Process`."""

    pid = 0

    def __init__(self, reason: str) -> None:
        self._result = ProcessResult("failed", None, b"", b"", 0, reason=reason)

    async def wait(self) -> ProcessResult:
        """Return the failure."""
        return self._result

    def stop(self, grace: float | None = None) -> None:
        """Do nothing: nothing runs."""


class RunningProcess:
    """Talks to one supervisor and drains one pipe; see `Process`. Belongs to the asyncio loop.

    `control` and `pipes` are owned from here on: output, and standard error, or -1. `loss` waits for
    what the spawner says when the supervisor died.
    """

    def __init__(
        self,
        spec: ProcessSpec,
        control: socket.socket,
        pipes: tuple[int, int],
        on_output: Callable[[bytes], None] | None,
        loss: Callable[[], Awaitable[Loss]],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._control = control
        self._pipe, self._errors_pipe = pipes
        self._errors = bytearray()
        self._keep_errors = spec.keep_errors
        self._loss = loss
        self._frames = Frames()
        self._output = OutputBuffer(spec.keep, spec.spill, spec.spill_limit)
        self._trickle = Trickle(on_output) if on_output else None
        self._grace = spec.grace
        self.pid = 0
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[ProcessResult] = self._loop.create_future()
        self._ending: asyncio.Task[None] | None = None
        self._heard: set[int] = set()
        self._hear(control.fileno(), self._listen)
        self._hear(self._pipe, self._read)
        if self._errors_pipe >= 0:
            self._hear(self._errors_pipe, self._read_errors)

    def _hear(self, descriptor: int, take: Callable[[], object]) -> None:
        """Have the loop call `take` whenever there is something to read."""
        os.set_blocking(descriptor, False)
        self._heard.add(descriptor)
        self._loop.add_reader(descriptor, take)

    def _hear_no_more(self, descriptor: int) -> None:
        """Let the loop forget a descriptor, once: to look for one that it does not know is dear."""
        if descriptor in self._heard:
            self._heard.remove(descriptor)
            self._loop.remove_reader(descriptor)

    async def wait(self) -> ProcessResult:
        """Return when everything it started is gone."""
        return await asyncio.shield(self.ended)

    def stop(self, grace: float | None = None) -> None:
        """Begin to stop everything it started; called again, it can only shorten the grace."""
        if self.ended.done():
            return
        message = frame("stop", self._grace if grace is None else grace)
        try:
            if self._control.send(message) < len(message):
                self.abandon()
        except BlockingIOError:
            self.abandon()
        except OSError:
            return  # the supervisor is gone, which the end of file tells

    def abandon(self) -> None:
        """Say to the supervisor that nobody is here any more: it kills all at once, and reports."""
        if self.ended.done():
            return
        try:
            self._control.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the supervisor is gone, which the end of file tells

    def _listen(self) -> None:
        try:
            data = self._control.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._hear_no_more(self._control.fileno())
            self._ending = self._loop.create_task(self._lose())
            return
        for message in self._frames.feed(data):
            match message:
                case ("started", pid):
                    self.pid = pid
                    self.started.set_result(None)
                case ("failed", reason):
                    self._finish("failed", reason=reason)
                case ("done", status, code, killed, survivors) if not self.ended.done():
                    self._finish(status, code, killed, survivors)
                case _:
                    assert self.ended.done(), f"the supervisor said {message}"

    async def _lose(self) -> None:
        """The supervisor died without a word: the spawner ends the orphans."""
        loss = await self._loss()
        reason = "its supervisor was killed" if self.pid else "its supervisor did not start"
        self._finish("lost", None, loss.killed, loss.survivors, reason)

    def _read(self) -> bool:
        """Take one chunk of output; False when there is none now."""
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._hear_no_more(self._pipe)
            return False
        self._output.add(data)
        if self._trickle:
            self._trickle.add(data)
        return True

    def _read_errors(self) -> bool:
        """Take one chunk of standard error and keep its end; False when there is none now."""
        try:
            data = os.read(self._errors_pipe, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._hear_no_more(self._errors_pipe)
            return False
        self._errors += data
        del self._errors[: -self._keep_errors]
        return True

    def _close_errors(self) -> bytes:
        if self._errors_pipe < 0:
            return b""
        for _ in range(_LAST_CHUNKS):
            if not self._read_errors():
                break
        self._hear_no_more(self._errors_pipe)
        os.close(self._errors_pipe)
        return bytes(self._errors)

    def _finish(
        self,
        status: Status,
        code: int | None = None,
        killed: tuple[int, ...] = (),
        survivors: tuple[int, ...] = (),
        reason: str = "",
    ) -> None:
        """Take what is left in the pipe, close everything, settle the result."""
        for _ in range(_LAST_CHUNKS):
            if not self._read():
                break
        self._hear_no_more(self._pipe)
        self._hear_no_more(self._control.fileno())
        os.close(self._pipe)
        self._control.close()
        self._output.close()
        if self._trickle:
            self._trickle.flush()
        if not self.started.done():
            self.started.set_result(None)
        output = self._output
        self.ended.set_result(
            ProcessResult(
                status,
                code,
                output.head,
                output.tail,
                output.total,
                output.spilled,
                killed,
                survivors,
                reason or output.fault,
                self._close_errors(),
            )
        )
