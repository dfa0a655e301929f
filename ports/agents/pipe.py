"""A supervised process that exchanges JSON messages with this program, one a line.

Supervised processes have one output, and a file as input. A dialogue needs more, so a shell starts the
command with two named pipes, and a file for its standard error, in a private folder. Both ends of each
pipe stay open here, so only the supervisor reports that the process has ended.
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

from ..process.process import Process, Processes, ProcessResult, ProcessSpec

CHUNK = 1 << 16
LONGEST = 16 << 20
"""Bytes of one line; a process that sends a longer one is ended."""
OPENING = 'exec "$@" <"$0/in" >"$0/out" 2>"$0/err"'


class PipeProcess:
    """A transport of JSON messages to a process. Belongs to the running asyncio loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._rest = bytearray()
        self._outgoing: deque[bytes] = deque()
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

    async def start(
        self, processes: Processes, argv: tuple[str, ...], folder: Path, environ: dict[str, str]
    ) -> None:
        """Start the command; `result` and `diagnostic` report a failure."""
        words = ("/bin/sh", "-c", OPENING, str(self._folder), *argv)
        self._process = await processes.spawn(
            ProcessSpec(argv=words, cwd=folder, environment=environ)
        )
        self.result = asyncio.create_task(self._watch(self._process))
        self._loop.add_reader(self._out, self._read)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid if self._process is not None else 0

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self.result is not None and not self.result.done()

    async def end(self) -> ProcessResult:
        """End the process and all that it started; returns when that is proven."""
        assert self._process is not None
        assert self.result is not None
        self._process.stop()
        return await asyncio.shield(self.result)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises `ConnectionError` when the process has ended."""
        if self._in < 0:
            raise ConnectionError("the agent's process has ended")
        self._outgoing.append(json.dumps(message).encode() + b"\n")
        self._write()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, none when the process has ended. Other output is skipped."""
        return await self._messages.get()

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
        try:
            data = os.read(self._out, CHUNK)
        except BlockingIOError:
            return False
        *lines, last = data.split(b"\n")
        for line in lines:
            self._take(bytes(self._rest + line))
            self._rest.clear()
        self._rest += last
        if len(self._rest) > LONGEST and self._process is not None:
            self._rest.clear()
            self.diagnostic = f"it sent a line of more than {LONGEST:,} bytes"
            self._process.stop()
        return True

    def _take(self, line: bytes) -> None:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            return  # some programs also print plain text
        if isinstance(data, dict):
            self._messages.put_nowait(cast("dict[str, Any]", data))

    async def _watch(self, process: Process) -> ProcessResult:
        """Wait for the end, read what is left in the pipe, and release everything."""
        result = await process.wait()
        while self._read():
            pass
        self._loop.remove_reader(self._out)
        self._loop.remove_writer(self._in)
        for descriptor in (self._in, self._out):
            os.close(descriptor)
        self._in = self._out = -1
        self.diagnostic = self.diagnostic or result.reason or _tail(self._folder / "err")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._messages.put_nowait(None)
        return result


def _tail(path: Path) -> str:
    """Return the last lines of a file of error output."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 2000))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-3:])
