"""What a store in memory keeps, and where it crashes when it is to."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct, field

from ..machines.errors import StoreError
from .encoding import EncodedCommit, decode, decode_row, posted
from .store import (
    Lease,
    NodeRow,
    Occurrence,
    Posted,
    SessionRow,
    Snapshot,
    StoredEntry,
    Watch,
    check_identifier,
    missing_message,
    unknown_session,
)


class SimulatedCrash(Exception):
    """The store died here, as asked for; it answers every later call with the same."""


class MemorySession(Struct, kw_only=True):
    """The durable data of one session; texts are JSON, `inbox` has (lane, client id, time, text).

    `replies` has what was consumed: (time, reply as JSON or none).
    """

    row: str
    state: str
    updated: float
    root: str
    place: str
    epoch: int = 0
    node: str = ""
    entries: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    snapshot: tuple[int, bytes] | None = None
    inbox: dict[int, tuple[int, str, float, str]] = field(
        default_factory=dict[int, tuple[int, str, float, str]]
    )
    known: dict[str, int] = field(default_factory=dict[str, int])  # client id -> message id
    replies: dict[int, tuple[float, str | None]] = field(
        default_factory=dict[int, tuple[float, str | None]]
    )


class MemoryDisk(Struct, kw_only=True):
    """The data that survive a crash."""

    sessions: dict[str, MemorySession] = field(default_factory=dict[str, MemorySession])
    last_message: int = 0
    nodes: dict[str, NodeRow] = field(default_factory=dict[str, NodeRow])
    watches: dict[str, Watch] = field(default_factory=dict[str, Watch])
    occurrences: dict[tuple[str, float], Occurrence] = field(
        default_factory=dict[tuple[str, float], Occurrence]
    )


class MemoryHome:
    """The data and the lock of a `MemoryStore`, which its parts share. `owned` are the live leases.

    `woken` says of each node that has waited whether it was woken since.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        crash_at: int | None = None,
        crash_side: Literal["before", "after"] = "before",
    ) -> None:
        self.clock = clock
        self.crash_at = crash_at
        self.crash_side = crash_side
        self.writes = 0
        self.disk = MemoryDisk()
        self.owned: dict[str, Lease] = {}
        self.woken: dict[str, bool] = {}
        self.changed = threading.Condition()
        self.is_crashed = False
        self.is_closed = False

    @contextmanager
    def used(self) -> Generator[None]:
        """Have the store for one thread. Raises `StoreError` once it is closed, `SimulatedCrash` then."""
        with self.changed:
            if self.is_crashed:
                raise SimulatedCrash(f"the store crashed at its write {self.crash_at}")
            if self.is_closed:
                raise StoreError("the journal is closed", "Open it again.")
            yield

    @contextmanager
    def write(self) -> Generator[None]:
        """Count a durable write, and crash on the side of it that was asked for."""
        self.writes += 1
        is_last = self.writes == self.crash_at
        if is_last and self.crash_side == "before":
            self._crash()
        yield
        if is_last:
            self._crash()

    def _crash(self) -> None:
        self.is_crashed = True
        self.changed.notify_all()
        raise SimulatedCrash(f"the store crashes {self.crash_side} its write {self.crash_at}")

    def session(self, session: str) -> MemorySession:
        """Find a session. Raises `UnknownSession`."""
        found = self.disk.sessions.get(check_identifier("session", session))
        if found is None:
            raise unknown_session(session)
        return found

    def checked(self, commits: list[EncodedCommit]) -> list[bool]:
        """Say whose lease holds; raises `MachineError` if one of those does not follow."""
        last: dict[str, int] = {}
        consumed: set[int] = set()
        results: list[bool] = []
        for commit in commits:
            lease = commit.lease
            stored = self.held(lease)
            if stored is None:
                results.append(False)
                continue
            seq = last.get(lease.session, len(stored.entries))
            last[lease.session] = commit.check_follows(seq)
            for id, _ in commit.consumed:
                if id not in stored.inbox or id in consumed:
                    raise missing_message(lease.session, id)
                consumed.add(id)
            results.append(True)
        return results

    def held(self, lease: Lease) -> MemorySession | None:
        """Return the session of a lease that still holds."""
        stored = self.disk.sessions.get(lease.session)
        is_held = stored is not None and (stored.epoch, stored.node) == (lease.epoch, lease.node)
        return stored if is_held else None

    def take(self, session: str, node: str) -> Lease:
        """Make a node the owner under a new epoch."""
        stored = self.disk.sessions[session]
        stored.epoch += 1
        stored.node = node
        lease = Lease(session=session, node=node, epoch=stored.epoch)
        self.owned[session] = lease
        return lease

    def ring(self, *nodes: str) -> None:
        """Wake the threads that wait for these nodes."""
        for node in nodes:
            if node in self.woken:
                self.woken[node] = True
        self.changed.notify_all()

    def unread(self, node: str) -> list[str]:
        """List the sessions of a node that have unread messages."""
        found = self.disk.sessions.items()
        return sorted(name for name, stored in found if stored.node == node and stored.inbox)


def apply(stored: MemorySession, commit: EncodedCommit, now: float) -> None:
    """Carry out a commit that was checked."""
    stored.entries.extend((time, data) for _, time, data in commit.entries)
    stored.row, stored.updated, stored.state = commit.row, commit.updated, commit.state
    stored.snapshot = commit.snapshot or stored.snapshot
    for id, reply in commit.consumed:
        del stored.inbox[id]
        stored.replies[id] = (now, reply)


def row_of(session: str, stored: MemorySession) -> SessionRow:
    """Return what a list shows of a session."""
    seq = len(stored.entries)
    return decode_row(session, stored.row, seq, stored.root, stored.place, stored.updated)


def snapshot_of(session: str, stored: MemorySession) -> Snapshot | None:
    """Return the only snapshot that is kept, if there is one."""
    if stored.snapshot is None:
        return None
    seq, state = stored.snapshot
    return Snapshot(seq=seq, state=decode(f"a snapshot of `{session}`", state))


def entries_of(stored: MemorySession, after: int, upto: int) -> list[StoredEntry]:
    """Read the entries `after` < seq <= `upto`."""
    found = enumerate(stored.entries[after:upto], after + 1)
    return [
        StoredEntry(seq=seq, time=time, data=decode(f"entry {seq}", data))
        for seq, (time, data) in found
    ]


def inbox_of(session: str, stored: MemorySession) -> tuple[Posted, ...]:
    """Read the unread messages, by lane and then by id."""
    found = sorted(stored.inbox.items(), key=lambda message: (message[1][0], message[0]))
    return posted(
        session,
        ((id, lane, text, client, time) for id, (lane, client, time, text) in found),
    )
