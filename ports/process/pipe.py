"""A supervised process that exchanges JSON messages with this program, one a line.

Supervised processes have one output, and a file as input. A dialogue needs more, so a shell starts the
command with two named pipes in a private folder; what the process prints to its standard error is the
output that the supervisor knows. Both ends of each pipe stay open here, so only the supervisor reports
that the process has ended.

Memory is bounded: of what the process sends, one line and a little more is read ahead; of what it does
not read, as much is kept as one line may have.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections import deque
from pathlib import Path
from typing import Any, cast

from .process import Process, Processes, ProcessResult, ProcessSpec

CHUNK = 1 << 16
LONGEST = 16 << 20
"""Bytes of one line; a process that sends a longer one is ended."""
OPENING = 'exec "$@" <"$0/in" >"$0/out"'
_AHEAD = 4 * CHUNK  # bytes of complete lines after which no more is read until they are taken
_ERRORS = 4096  # bytes of the end of standard error that are kept
_SHOWN = 200  # characters of a line that is no message


class PipeProcess:
    """A transport of JSON messages to a process. Belongs to the running asyncio loop.

    `longest` is the largest number of bytes of a line. `diagnostic` says why the process was ended or
    could not start, else it is the last lines of its standard error; `stray` is the first line that it
    sent and that was no message.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._loop = asyncio.get_running_loop()
        self._longest = longest
        self._lines: deque[bytes] = deque()
        self._waiting = 0  # bytes in `_lines`
        self._is_paused = False
        self._has_more = asyncio.Event()
        self._rest = bytearray()
        self._outgoing: deque[bytes] = deque()
        self._errors = b""
        self._folder = Path(tempfile.mkdtemp(prefix="steersman-"))
        for name in ("in", "out"):
            os.mkfifo(self._folder / name, 0o600)
        self._in, self._out = (
            os.open(self._folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            for name in ("in", "out")
        )
        self._process: Process | None = None
        self.result: asyncio.Task[ProcessResult] | None = None
        self.diagnostic = ""
        self.stray = ""

    async def start(
        self, processes: Processes, argv: tuple[str, ...], folder: Path, environ: dict[str, str]
    ) -> None:
        """Start the command; `result` and `diagnostic` report a failure.

        Raises `ToolError` when the program is ending, and `asyncio.CancelledError`; then nothing is left.
        """
        words = ("/bin/sh", "-c", OPENING, str(self._folder), *argv)
        spec = ProcessSpec(argv=words, cwd=folder, environment=environ, keep=_ERRORS)
        try:
            process = self._process = await processes.spawn(spec, self._take_errors)
        finally:
            if self._process is None:
                self._release()
        self.result = asyncio.create_task(self._watch(process))
        self._loop.add_reader(self._out, self._read)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid if self._process is not None else 0

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self.result is not None and not self.result.done()

    @property
    def last_errors(self) -> str:
        """The last three lines of its standard error so far."""
        text = self._errors.decode(errors="replace").strip()
        return "\n".join(text.splitlines()[-3:])

    def forget_errors(self) -> None:
        """Take what it wrote to its standard error up to now as said about something else."""
        self._errors = b""

    def close_input(self) -> None:
        """Let the process read the end of its input, as a request to exit. Idempotent."""
        if self._in >= 0:
            self._loop.remove_writer(self._in)
            os.close(self._in)
            self._in = -1

    async def end(self, grace: float | None = None) -> ProcessResult:
        """End the process and all that it started; returns when that is proven."""
        assert self._process is not None
        assert self.result is not None
        self._process.stop(grace)
        return await asyncio.shield(self.result)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises `ConnectionError` when the process has ended or its input is closed."""
        if self._in < 0:
            raise ConnectionError("the process has ended")
        self._outgoing.append(json.dumps(message).encode() + b"\n")
        self._write()
        if len(self._outgoing) > 1 and sum(map(len, self._outgoing)) > self._longest:
            self._give_up(f"it left more than {self._longest:,} bytes of its input unread")

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, none when the process has ended. Other output is skipped."""
        while True:
            while not self._lines:
                if self._out < 0:
                    return None
                self._has_more.clear()
                await self._has_more.wait()
            line = self._lines.popleft()
            self._waiting -= len(line)
            if self._is_paused and self._waiting <= _AHEAD:
                self._is_paused = False
                self._loop.add_reader(self._out, self._read)
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                data = None
            if isinstance(data, dict):
                return cast("dict[str, Any]", data)
            if not self.stray:  # some programs also print plain text
                self.stray = line[: 4 * _SHOWN].decode(errors="replace").strip()[:_SHOWN]

    async def close(self) -> None:
        """Do nothing: `end` ends the process."""

    def _write(self) -> None:
        while self._outgoing and self._in >= 0:
            try:
                count = os.write(self._in, self._outgoing[0])
            except BlockingIOError:
                self._loop.add_writer(self._in, self._write)
                return
            left = self._outgoing.popleft()[count:]
            if left:
                self._outgoing.appendleft(left)
        if self._in >= 0:
            self._loop.remove_writer(self._in)

    def _read(self) -> bool:
        """Read one chunk; False when there is none now."""
        try:
            data = os.read(self._out, CHUNK)
        except BlockingIOError:
            return False
        *lines, last = data.split(b"\n")
        for line in lines:
            whole = bytes(self._rest + line)
            self._rest.clear()
            self._lines.append(whole)
            self._waiting += len(whole)
        self._rest += last
        if self._lines:
            self._has_more.set()
        if self._waiting > _AHEAD and not self._is_paused:
            self._is_paused = True
            self._loop.remove_reader(self._out)
        if len(self._rest) > self._longest:
            self._rest.clear()
            self._give_up(f"it sent a line of more than {self._longest:,} bytes")
        return True

    def _give_up(self, why: str) -> None:
        """End a process that cannot be talked to."""
        self.diagnostic = self.diagnostic or why
        if self._process is not None:
            self._process.stop()

    def _take_errors(self, data: bytes) -> None:
        self._errors = (self._errors + data)[-_ERRORS:]

    async def _watch(self, process: Process) -> ProcessResult:
        """Wait for the end, read what is left in the pipe, and release everything."""
        result = await process.wait()
        while self._read():
            pass
        self._loop.remove_reader(self._out)
        self.diagnostic = self.diagnostic or result.reason or self.last_errors
        self._release()
        return result

    def _release(self) -> None:
        """Close the pipes and remove their folder."""
        self.close_input()
        os.close(self._out)
        self._out = -1
        shutil.rmtree(self._folder, ignore_errors=True)
        self._has_more.set()
