"""Ports of the loopback interface that no other program can get, whether or not something listens.

A number that is read from a socket and used after the socket has been closed may be given to another
program in between. A `HeldPort` keeps its socket bound. The kernel then gives the number to no other
program that asks for any port. A connection to it is refused until a server of the test binds the same
number with SO_REUSEADDR, as servers do.
"""

import socket
from typing import Self

__all__ = ["HeldPort"]


class HeldPort:
    """A port that is kept until `close`; `number` stays the same when a server is started there again."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back. Idempotent."""
        self._socket.close()
