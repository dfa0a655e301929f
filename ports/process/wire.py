"""The messages between runtime, spawner and supervisors: length-prefixed tuples.

    runtime    -> spawner      8 bytes: the token of a new command, and with them file descriptors:
                               control socket, output pipe, then a file for stdin and a pipe for
                               standard error, if it has them
    spawner    -> runtime      ("lost", token, killed, survivors)   its supervisor died
    runtime    -> supervisor   ("run", argv, cwd, environment, timeout, grace)   all texts as bytes
                               ("stop", grace)
    supervisor -> runtime      ("started", pid), ("failed", reason),
                               ("done", status, exit code, killed, survivors)

Both ends are the same interpreter, so `marshal` serves: unlike `json` it carries bytes, and it
costs the freshly started spawner nothing to import. Only the standard library is imported here.
"""

from __future__ import annotations

import marshal
import struct

TYPE_CHECKING = False  # `typing` itself would cost the spawner 5 ms
if TYPE_CHECKING:
    from typing import Any


TOKEN = struct.Struct("!Q")
_LENGTH = struct.Struct("!I")


def frame(*message: Any) -> bytes:
    """Encode one message."""
    body = marshal.dumps(message)
    return _LENGTH.pack(len(body)) + body


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
