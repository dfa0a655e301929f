"""A store in memory: the durable store's SQL on a database that no file holds.

Used where persistence is switched off, and by the simulator, which lets it crash at its n-th write and
goes on with a `survivor`.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Literal

from .connection import Connection
from .database import Database
from .lock import Owner
from .presence import Presence
from .sqlite import SqliteStore
from .sqlite_home import SqliteHome


class SimulatedCrash(Exception):
    """The store died here, as asked for; it answers every later call with the same."""


class MemoryStore(SqliteStore):
    """Sessions in memory; see `store.Store` for each method. Safe from several threads.

    `crash_at` counts writes from 1: that one raises `SimulatedCrash` before it is applied, or after. Set
    it at any time; `writes` counts them.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        crash_at: int | None = None,
        crash_side: Literal["before", "after"] = "before",
        content: bytes = b"",
    ) -> None:
        self._memory = MemoryHome(content or _empty(), crash_at, crash_side)
        super().__init__(self._memory, clock)

    @property
    def writes(self) -> int:
        """How many writes there were."""
        return self._memory.writes

    @property
    def crash_at(self) -> int | None:
        """The number of the write at which the store crashes."""
        return self._memory.crash_at

    @crash_at.setter
    def crash_at(self, number: int | None) -> None:
        self._memory.crash_at = number

    def survivor(self) -> "MemoryStore":
        """Make a fresh store with what is durable here, and no leases."""
        return MemoryStore(clock=self._clock, content=self._memory.content())


class MemoryHome(SqliteHome):
    """A home without a folder, which crashes where it is to."""

    def __init__(
        self, content: bytes, crash_at: int | None, crash_side: Literal["before", "after"]
    ) -> None:
        self._kept = Database.in_memory(content)
        super().__init__("memory", self._kept, MemoryPresence())
        self.crash_at = crash_at
        self.crash_side = crash_side
        self.writes = 0
        self._is_crashed = False
        self._last = b""  # what was there when it closed

    @contextmanager
    def writing(self, *, is_synced: bool = True) -> Generator[Connection]:
        """Write in one transaction, and crash on the side of it that was asked for."""
        database = self.writable()
        self.writes += 1
        is_last = self.writes == self.crash_at
        if is_last and self.crash_side == "before":
            self._crash()
        with database.writing() as connection:
            yield connection
        if is_last:
            self._crash()

    def look(self) -> Database:
        """Return the database. Raises `SimulatedCrash`."""
        if self._is_crashed:
            raise SimulatedCrash(f"the store crashed at its write {self.crash_at}")
        return self._kept

    def writable(self) -> Database:
        """Return the database. Raises `SimulatedCrash`."""
        return self.look()

    def reopen(self) -> None:
        """Do nothing: memory does not fail."""

    def content(self) -> bytes:
        """Copy all that is durable."""
        return self._last or self._kept.copied()

    def close(self) -> None:
        """Close; leases were released before."""
        self._last = self.content()
        super().close()

    def _crash(self) -> None:
        self.present().silence()
        self._is_crashed = True
        raise SimulatedCrash(f"the store crashes {self.crash_side} its write {self.crash_at}")


@cache
def _empty() -> bytes:
    """Return the content of a home in which nothing was written yet."""
    return Database.in_memory(b"").copied()


class MemoryPresence(Presence):
    """Owners and nodes of one process: its threads, which live as long as it does."""

    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[str, Owner] = {}
        self._wakers: dict[str, MemoryWaker] = {}

    def take(self, session: str, owner: Owner) -> "MemoryLock | None":
        """Sign a session, or none if it is taken."""
        with self._mutex:
            if session in self._owners:
                return None
            self._owners[session] = owner
        return MemoryLock(self._owners, session)

    def is_held(self, session: str) -> bool:
        """Whether the session is taken."""
        return session in self._owners

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner."""
        return self._owners.get(session)

    def wake_socket(self, node: str) -> tuple["MemoryWaker", bool]:
        """Return what the node waits on, and whether it is new."""
        with self._mutex:
            is_new = node not in self._wakers
            return self._wakers.setdefault(node, MemoryWaker()), is_new

    def ring(self, node: str) -> bool:
        """Wake a node; False if there is none."""
        waker = self._wakers.get(node)
        if waker is not None:
            waker.ring()
        return waker is not None

    def is_bound(self, node: str) -> bool:
        """Whether the node is there."""
        return node in self._wakers

    def silence(self) -> None:
        """Wake the threads that wait, for the last time."""
        for waker in list(self._wakers.values()):
            waker.close()


class MemoryLock:
    """A session that is taken, until it is released."""

    def __init__(self, owners: dict[str, Owner], session: str) -> None:
        self._owners = owners
        self._session = session

    def release(self) -> None:
        """Let others take it. Idempotent."""
        self._owners.pop(self._session, None)


class MemoryWaker:
    """What one thread waits on and any other rings."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._is_closed = False

    def wait(self, timeout: float) -> None:
        """Block until it is rung or closed, or `timeout` seconds have passed."""
        if not self._is_closed and self._rung.wait(timeout):
            self._rung.clear()

    def ring(self) -> None:
        """Wake the thread that waits, or the next one that does."""
        self._rung.set()

    def close(self) -> None:
        """Wake the thread that waits; nobody waits any more."""
        self._is_closed = True
        self._rung.set()
