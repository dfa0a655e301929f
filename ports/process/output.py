"""What a command prints: its head and tail in memory, the whole in a file, bounded everywhere."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["Output", "Trickle"]

_STREAM_SECONDS = 0.03  # pieces are collected that long, as model text is
_STREAM_BYTES = 16_384  # of a piece; what a flood brings beyond is left out of the stream


class Output:
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
