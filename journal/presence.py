"""Live owners on this host: the session locks and wake-up sockets that one open store holds.

locks/ID.lock     held while session ID has an owner
bells/NODE.sock   rung when a message was posted to a session that NODE owns
"""

import errno
import select
import socket
import threading
from contextlib import ExitStack
from typing import Protocol

from ..machines.errors import StoreBusy, StoreError
from .folder import PrivateFolder
from .lock import Lock, Owner
from .store import Lease

# A wake-up socket per node: a Unix datagram socket that says "read your inboxes", and nothing else.
# The messages lie in the store, so a lost or doubled ring does no harm: the waiting thread reads the
# inboxes after each ring and after each timeout. A dead owner's socket is removed at the next ring.


class WakeSocket:
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
        """Block until the socket is rung or closed, or `timeout` seconds have passed."""
        with self._use:
            if self._is_closed:
                return
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            poll.poll(max(0.0, timeout) * 1000)
            self._drain()

    def close(self) -> None:
        """Wake the thread that waits, remove the socket. From any thread; idempotent."""
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
    """Ring the node; False if it is not alive. A dead node's socket is removed."""
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


def is_bound(folder: PrivateFolder, node: str) -> bool:
    """Whether a live process has bound the node's socket. Changes nothing and wakes no thread."""
    name = f"{node}.sock"
    if not folder.is_socket(name):
        return False
    with _socket() as prober:
        try:
            prober.connect(folder.address(name))
        except OSError:
            return False
    return True


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


_LOOKS = 3
"""Locks of one node that are looked at: the first may just be released, or taken over."""


class SessionLock(Protocol):
    """The right of a live process to a session."""

    def release(self) -> None:
        """Let others take it. Idempotent."""
        ...


class Waker(Protocol):
    """What one thread of a node waits on."""

    def wait(self, timeout: float) -> None:
        """Block until it is rung or closed, or `timeout` seconds have passed."""
        ...

    def close(self) -> None:
        """Wake the thread that waits. Idempotent."""
        ...


class Presence:
    """Who lives and owns what, as far as the threads of one open store are told. Thread-safe."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Lease, SessionLock]] = {}
        self._mutex = threading.Lock()  # of the dictionaries

    def take(self, session: str, owner: Owner) -> SessionLock | None:
        """Lock a session and sign the lock, or none if a live process holds it."""
        raise NotImplementedError

    def is_held(self, session: str) -> bool:
        """Whether a live process, this or another, holds the session. Changes nothing."""
        raise NotImplementedError

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner, as signed; none if no live process holds it."""
        raise NotImplementedError

    def wake_socket(self, node: str) -> tuple[Waker, bool]:
        """Return what the node waits on, and whether it was made just now."""
        raise NotImplementedError

    def ring(self, node: str) -> bool:
        """Ring a node, here or elsewhere; False if it is gone."""
        raise NotImplementedError

    def is_bound(self, node: str) -> bool:
        """Whether a live process waits for messages to this node, or is about to."""
        raise NotImplementedError

    def silence(self) -> None:
        """Wake the threads that wait, for good."""
        raise NotImplementedError

    def close(self) -> None:
        """Be present no more; locks were handed out by `drop` before. Idempotent."""
        self.silence()

    def keep(self, lease: Lease, lock: SessionLock) -> None:
        """Remember that this lease is backed by this lock."""
        with self._mutex:
            self._held[lease.session] = (lease, lock)

    def drop(self, lease: Lease) -> SessionLock | None:
        """Forget the lease and hand out its lock for release; none if it is not held here."""
        with self._mutex:
            held = self._held.get(lease.session)
            if held is None or held[0] != lease:
                return None
            del self._held[lease.session]
            return held[1]

    def leases(self) -> list[Lease]:
        """List what is held here."""
        with self._mutex:
            return [lease for lease, _ in self._held.values()]

    def owners(self, claimed: dict[str, list[str]]) -> dict[str, Owner]:
        """Map the sessions that each node claimed to their owners, for display."""
        found: dict[str, Owner] = {}
        for node, sessions in claimed.items():
            signed = (self.owner(session) for session in sessions[:_LOOKS])
            owner = next((known for known in signed if known and known.node == node), None)
            if owner is not None:
                found |= dict.fromkeys(sessions, owner)
        return found


class FolderPresence(Presence):
    """Locks and wake-up sockets beneath a home's folder, which need not exist to read."""

    def __init__(self, folder: PrivateFolder) -> None:
        super().__init__()
        self._folder = folder
        self._subfolders: dict[str, PrivateFolder] = {}
        self._sockets: dict[str, WakeSocket] = {}

    def take(self, session: str, owner: Owner) -> Lock | None:
        """Lock a session and sign the lock, or none if a live process holds it."""
        lock = Lock(self._subfolder("locks", create=True), session)
        if not lock.take():
            return None
        with ExitStack() as undo:
            undo.callback(lock.release)
            lock.sign(owner)
            undo.pop_all()
        return lock

    def is_held(self, session: str) -> bool:
        """Whether a live process, this or another, holds the session. Changes nothing."""
        return self.owner_lock(session).is_held() if self._has("locks") else False

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner, as signed; none if no live process holds it."""
        return self.owner_lock(session).owner() if self._has("locks") else None

    def owner_lock(self, session: str) -> Lock:
        """Give the session's lock for looking at it."""
        return Lock(self._subfolder("locks", create=False), session)

    def wake_socket(self, node: str) -> tuple[WakeSocket, bool]:
        """Return the node's wake-up socket, and whether it was bound just now."""
        folder = self._subfolder("bells", create=True)
        with self._mutex:
            is_new = node not in self._sockets
            if is_new:
                self._sockets[node] = WakeSocket(folder, node)
            return self._sockets[node], is_new

    def ring(self, node: str) -> bool:
        """Ring a node, here or elsewhere; False if it is gone."""
        if not node or not self._has("bells"):
            return False
        return ring(self._subfolder("bells", create=False), node)

    def is_bound(self, node: str) -> bool:
        """Whether a live process waits for messages to this node, or is about to."""
        return self._has("bells") and is_bound(self._subfolder("bells", create=False), node)

    def silence(self) -> None:
        """Close the wake-up sockets, which wakes the threads that wait on them."""
        with self._mutex:
            opened = list(self._sockets.values())
        for wake_socket in opened:
            wake_socket.close()

    def close(self) -> None:
        """Close sockets and folders; locks were handed out by `drop` before. Idempotent."""
        self.silence()
        with self._mutex:
            for folder in self._subfolders.values():
                folder.close()

    def _has(self, name: str) -> bool:
        try:
            self._subfolder(name, create=False)
        except FileNotFoundError:
            return False
        return True

    def _subfolder(self, name: str, *, create: bool) -> PrivateFolder:
        with self._mutex:
            if name not in self._subfolders:
                self._subfolders[name] = self._folder.subfolder(name, create=create)
            return self._subfolders[name]
