"""The messages between runtime, spawner and supervisors: length-prefixed tuples.

    runtime    -> spawner      8 bytes: the token of a new supervisor; with them its control socket
                               or, with the highest bit set, the deadline (see `deadline_of`)
    spawner    -> runtime      ("lost", token, killed, survivors)   a supervisor died
    runtime    -> supervisor   ("run", streams, argv, cwd, environment, timeout, grace)   all texts
                               as bytes; with its first byte comes a file descriptor for each letter
                               of `streams`: the output pipe, and if the command has them a file for
                               stdin (i), a pipe for standard error (e), and a file (a) whose time
                               is set when nothing of the command is left
                               ("stop", grace)   for the command that runs; a late one is ignored
    supervisor -> runtime      ("started", pid), ("failed", reason),
                               ("done", status, exit code, killed, survivors)   the next may come

Both ends are the same interpreter, so `marshal` serves: unlike `json` it carries bytes, and it
costs the freshly started spawner nothing to import. Only the standard library is imported here.
"""

from __future__ import annotations

import _socket
import array
import marshal
import os
import struct
import time

TYPE_CHECKING = False  # `typing` itself would cost the spawner 5 ms
if TYPE_CHECKING:
    from typing import Any


TOKEN = struct.Struct("!Q")
_DEADLINE = 1 << 63
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LENGTH = struct.Struct("!I")
_MOST_FDS = 4


def deadline_clock() -> float:
    """Return the time in seconds of a clock that all processes share, and that goes on in a suspend."""
    return time.clock_gettime(_CLOCK)


def deadline_token(deadline: float | None) -> int:
    """Encode a deadline, in seconds of `deadline_clock`; none: there is no deadline."""
    return _DEADLINE | (0 if deadline is None else max(1, int(deadline * 1000)))


def deadline_of(token: int) -> float | None:
    """Decode a deadline; see `deadline_token`."""
    return (token ^ _DEADLINE) / 1000 or None


def is_deadline(token: int) -> bool:
    """Whether a token is a deadline, and no supervisor's."""
    return bool(token & _DEADLINE)


def frame(*message: Any) -> bytes:
    """Encode one message."""
    body = marshal.dumps(message)
    return _LENGTH.pack(len(body)) + body


def receive_fds(connection: _socket.socket, size: int) -> tuple[bytes, list[int]]:
    """Receive bytes and the descriptors that came with them; no program inherits these.

    Raises `OSError`.
    """
    fds = array.array("i")
    flags = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
    room = _socket.CMSG_SPACE(_MOST_FDS * fds.itemsize)
    data, ancillary, _, _ = connection.recvmsg(size, room, flags)
    for _, _, content in ancillary:
        fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    if not flags:
        for fd in fds:
            os.set_inheritable(fd, False)
    return data, list(fds)


class Frames:
    """Collects the bytes of a stream, and decodes the complete messages in them."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[tuple[Any, ...]]:
        """Add bytes; returns the messages that are complete now, oldest first."""
        self._rest += data
        messages: list[tuple[Any, ...]] = []
        while len(self._rest) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest)
            end = _LENGTH.size + length
            if len(self._rest) < end:
                break
            messages.append(marshal.loads(self._rest[_LENGTH.size : end]))
            del self._rest[:end]
        return messages
