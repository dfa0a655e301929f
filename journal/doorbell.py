"""A doorbell per node: a Unix datagram socket that says "look at your inboxes", and nothing else.

What was said lies in the store, so a lost or doubled ring does no harm: who waits looks after each
ring and after each timeout. A socket whose owner died is removed by the first who rings in vain.
"""

import errno
import select
import socket
import threading

from ..machines.errors import StoreBusy, StoreError
from .folder import PrivateFolder

__all__ = ["Doorbell", "ring"]


class Doorbell:
    """A bound socket that one thread waits on and any process rings."""

    def __init__(self, folder: PrivateFolder, node: str) -> None:
        """Bind the node's socket; raises `StoreBusy` if a live process has the same node id."""
        self._folder = folder
        self._name = f"{node}.sock"
        if ring(folder, node):
            raise StoreBusy(
                f"node `{node}` is waited on by a live process", "Give each process its own id."
            )
        folder.remove(self._name)
        self._socket = _socket()
        try:
            self._socket.bind(folder.address(self._name))
            folder.narrow(self._name)
        except OSError as fault:
            self._socket.close()
            raise StoreError(
                f"cannot bind `{folder.path / self._name}`: {fault.strerror or fault}",
                "Set STEERSMAN_HOME to a folder with a shorter path, on a local disk.",
            ) from fault
        self._use = threading.Lock()  # held while the descriptor is in use
        self._is_closed = False

    def wait(self, timeout: float) -> None:
        """Block until somebody rings, this bell is closed, or `timeout` seconds have passed."""
        with self._use:
            if self._is_closed:
                return
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            poll.poll(max(0.0, timeout) * 1000)
            self._drain()

    def close(self) -> None:
        """Wake who waits, remove the socket. From any thread; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._folder.remove(self._name)
        self._socket.shutdown(socket.SHUT_RDWR)
        with self._use:
            self._socket.close()

    def _drain(self) -> None:
        """Take all rings that wait: they all mean the same."""
        try:
            while self._socket.recv(16):
                pass
        except BlockingIOError:
            return


def ring(folder: PrivateFolder, node: str) -> bool:
    """Ring the node; False if nobody alive is there. A dead node's socket is removed."""
    name = f"{node}.sock"
    if not folder.is_socket(name):
        return False
    with _socket() as sender:
        try:
            sender.sendto(b"!", folder.address(name))
        except OSError as fault:
            if fault.errno in (errno.EAGAIN, errno.ENOBUFS):
                return True  # its queue is full of rings already
            if fault.errno == errno.ECONNREFUSED:
                folder.remove(name)
            return False
    return True


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made
