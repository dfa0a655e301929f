"""A store in memory, with the protocol and the strictness of the durable one.

Used where persistence is switched off, and by the simulator, which lets it crash at its n-th
durable write and goes on with a `survivor`. What is stored went through JSON, so nothing is
shared with the caller, and what the durable store would refuse is refused here too.
"""

import copy
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ..machines.errors import StoreError
from .encoding import EncodedCommit, decode, decode_row, encode, encode_commit, encode_row
from .lock import Owner
from .store import (
    REMEMBERED,
    Commit,
    Lease,
    Loaded,
    Occurrence,
    Posted,
    SessionRow,
    Snapshot,
    StoredEntry,
    Watch,
    check_client_id,
    check_identifier,
    missing_message,
    session_exists,
    unknown_session,
)


class SimulatedCrash(Exception):
    """The store died here, as asked for; it answers every later call with the same."""


class _Session(Struct, kw_only=True):
    """The durable data of one session; texts are JSON, `inbox` has (lane, client id, time, text)."""

    row: str
    updated: float
    epoch: int = 0
    node: str = ""
    entries: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    snapshot: tuple[int, bytes] | None = None
    inbox: dict[int, tuple[int, str, float, str]] = field(
        default_factory=dict[int, tuple[int, str, float, str]]
    )
    known: dict[str, int] = field(default_factory=dict[str, int])  # client id -> message id


class _Disk(Struct, kw_only=True):
    """The data that survive a crash."""

    sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    last_message: int = 0
    watches: dict[str, Watch] = field(default_factory=dict[str, Watch])
    occurrences: dict[tuple[str, float], Occurrence] = field(
        default_factory=dict[tuple[str, float], Occurrence]
    )


class MemoryStore:
    """Sessions in memory; see `store.Store` for each method. Safe from several threads.

    `crash_at` counts durable writes from 1 (create, claim, release, commit, post, note,
    conclude): that one raises
    `SimulatedCrash` before it is applied, or after. Set it at any time; `writes` counts them.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        crash_at: int | None = None,
        crash_side: Literal["before", "after"] = "before",
    ) -> None:
        self.crash_at = crash_at
        self.crash_side = crash_side
        self.writes = 0
        self._clock = clock
        self._disk = _Disk()
        self._owned: dict[str, Lease] = {}
        self._woken: dict[str, bool] = {}  # node -> whether it was woken; the key: it has waited
        self._changed = threading.Condition()
        self._is_crashed = False
        self._is_closed = False

    def survivor(self) -> "MemoryStore":
        """Make a fresh store with what is durable here, and no leases."""
        with self._changed:
            survivor = MemoryStore(clock=self._clock)
            survivor._disk = copy.deepcopy(self._disk)
            return survivor

    def create(self, row: SessionRow) -> None:
        """Make a session known; raises `StoreError` if it is known already."""
        check_identifier("session", row.session)
        with self._used():
            if row.session in self._disk.sessions:
                raise session_exists(row.session)
            with self._write():
                self._disk.sessions[row.session] = _Session(
                    row=encode_row(row), updated=row.updated
                )

    def claim(self, session: str, node: str) -> Lease | None:
        """Take the session under a new epoch, or none if it is taken."""
        check_identifier("node", node)
        with self._used():
            stored = self._session(session)
            if session in self._owned:
                return None
            with self._write():
                stored.epoch += 1
                stored.node = node
            self._owned[session] = Lease(session=session, node=node, epoch=stored.epoch)
            return self._owned[session]

    def release(self, lease: Lease) -> None:
        """Give the session back. Idempotent."""
        with self._used():
            if self._owned.get(lease.session) == lease:
                with self._write():
                    self._disk.sessions[lease.session].node = ""
                del self._owned[lease.session]

    def is_owned(self, session: str) -> bool:
        """Whether a session is held in this store."""
        check_identifier("session", session)
        with self._used():
            return session in self._owned

    def owner(self, session: str) -> Owner | None:
        """Name no owner: a session in this store is held by this process, if at all."""
        check_identifier("session", session)
        return None

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Apply all or, when one of them is wrong, none: then raises `MachineError`."""
        encoded = [encode_commit(commit) for commit in commits]
        with self._used():
            results = self._checked(encoded)
            with self._write():
                for commit, is_owned in zip(encoded, results, strict=True):
                    if is_owned:
                        _apply(self._disk.sessions[commit.lease.session], commit)
            return results

    def load(self, session: str) -> Loaded:
        """Read row, snapshot, tail and inbox as of one moment."""
        with self._used():
            stored = self._session(session)
            snapshot = _snapshot(session, stored)
            after = snapshot.seq if snapshot else 0
            tail = tuple(_entries(stored, after, len(stored.entries)))
            return Loaded(
                row=_row(session, stored),
                snapshot=snapshot,
                tail=tail,
                unconsumed=_inbox(session, stored),
            )

    def entries(
        self, session: str, after: int = 0, upto: int | None = None
    ) -> Iterable[StoredEntry]:
        """Read the journal in order."""
        with self._used():
            stored = self._session(session)
            last = len(stored.entries)
            return _entries(stored, max(0, after), last if upto is None else min(upto, last))

    def snapshot(self, session: str, upto: int) -> Snapshot | None:
        """Return the newest snapshot, the only one that is kept, if it is at or before `upto`."""
        with self._used():
            found = _snapshot(session, self._session(session))
            return found if found is not None and found.seq <= upto else None

    def epoch(self, session: str) -> int:
        """Count the claims of a session."""
        with self._used():
            return self._session(session).epoch

    def sessions(self) -> list[SessionRow]:
        """List all sessions, newest activity first."""
        with self._used():
            found = sorted(
                self._disk.sessions.items(), key=lambda stored: (-stored[1].updated, stored[0])
            )
            return [_row(session, stored) for session, stored in found]

    def post(self, session: str, lane: int, message: dict[str, Any], client_id: str = "") -> int:
        """Put a message into the inbox, once for a client id, and wake the owner."""
        check_client_id(client_id)
        text = encode(f"the message to `{session}`", message)
        with self._used():
            stored = self._session(session)
            posted = stored.known.get(client_id) if client_id else None
            if posted is None:
                posted = self._disk.last_message + 1
                with self._write():
                    self._disk.last_message = posted
                    stored.inbox[posted] = (lane, client_id, self._clock(), text)
                    if client_id:
                        stored.known[client_id] = posted
            self._ring(stored.node)
            return posted

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox, by lane and then by id."""
        with self._used():
            return _inbox(session, self._session(session))

    def wait(self, node: str, timeout: float) -> list[str]:
        """Block until a message is posted to a session of the node; at first only if none is unread."""
        check_identifier("node", node)
        with self._used():
            if node not in self._woken:
                self._woken[node] = bool(self._unread(node))
            self._changed.wait_for(lambda: self._woken[node] or self._is_closed, timeout)
            self._woken[node] = False
            return [] if self._is_closed else self._unread(node)

    def note(self, watch: Watch, occurrences: Sequence[Occurrence] = ()) -> list[bool]:
        """Keep how far a schedule was looked at, and what was found, together."""
        disk = self._disk
        with self._used(), self._write():
            noted: list[bool] = []
            for found in occurrences:
                known = disk.occurrences.get((found.schedule, found.planned))
                is_new = known is None or (known.state == "missed" and found.state != "missed")
                noted.append(is_new)
                if noted[-1]:
                    disk.occurrences[found.schedule, found.planned] = found
            self._keep_watch(watch)
            return noted

    def _keep_watch(self, watch: Watch) -> None:
        """Keep a watch, and forget what was planned long before it."""
        disk, name = self._disk, watch.schedule
        known = disk.watches.get(name, watch)
        own = [found for found in disk.occurrences.values() if found.schedule == name]
        newest = max((found.planned for found in own), default=0.0)
        old = [
            found.planned
            for found in own
            if found.planned < min(watch.upto - REMEMBERED, newest) and found.state != "due"
        ]
        for planned in old:
            del disk.occurrences[name, planned]
        disk.watches[name] = replace(watch, floor=max(known.floor, watch.floor, *old, 0.0))

    def conclude(self, occurrence: Occurrence) -> None:
        """Change what became of a noted occurrence."""
        with self._used(), self._write():
            key = (occurrence.schedule, occurrence.planned)
            known = self._disk.occurrences[key]
            self._disk.occurrences[key] = replace(
                known,
                state=occurrence.state,
                session=occurrence.session,
                reason=occurrence.reason,
            )

    def watches(self) -> list[Watch]:
        """List the schedules that were looked at, by name."""
        with self._used():
            return sorted(self._disk.watches.values(), key=lambda watch: watch.schedule)

    def occurrences(self) -> list[Occurrence]:
        """List the occurrences that are remembered, the newest first."""
        with self._used():
            return sorted(
                self._disk.occurrences.values(),
                key=lambda found: (-found.planned, found.schedule),
            )

    def reopen(self) -> None:
        """Do nothing: memory does not fail."""

    def settle(self) -> None:
        """Do nothing: there is no housekeeping."""

    def close(self) -> None:
        """Release all leases and wake the threads that wait. Idempotent."""
        with self._changed:
            if not self._is_crashed:
                for session in self._owned:
                    self._disk.sessions[session].node = ""
            self._owned.clear()
            self._is_closed = True
            self._changed.notify_all()

    @contextmanager
    def _used(self) -> Generator[None]:
        with self._changed:
            if self._is_crashed:
                raise SimulatedCrash(f"the store crashed at its write {self.crash_at}")
            if self._is_closed:
                raise StoreError("the journal is closed", "Open it again.")
            yield

    @contextmanager
    def _write(self) -> Generator[None]:
        """Count a durable write, and crash on the side of it that was asked for."""
        self.writes += 1
        is_last = self.writes == self.crash_at
        if is_last and self.crash_side == "before":
            self._crash()
        yield
        if is_last:
            self._crash()

    def _crash(self) -> None:
        self._is_crashed = True
        self._changed.notify_all()
        raise SimulatedCrash(f"the store crashes {self.crash_side} its write {self.crash_at}")

    def _session(self, session: str) -> _Session:
        found = self._disk.sessions.get(check_identifier("session", session))
        if found is None:
            raise unknown_session(session)
        return found

    def _checked(self, commits: list[EncodedCommit]) -> list[bool]:
        """Say whose lease holds; raises `MachineError` if one of those does not follow."""
        last: dict[str, int] = {}
        consumed: set[int] = set()
        results: list[bool] = []
        for commit in commits:
            lease = commit.lease
            stored = self._disk.sessions.get(lease.session)
            if stored is None or (stored.epoch, stored.node) != (lease.epoch, lease.node):
                results.append(False)
                continue
            seq = last.get(lease.session, len(stored.entries))
            last[lease.session] = commit.check_follows(seq)
            for id in commit.consumed:
                if id not in stored.inbox or id in consumed:
                    raise missing_message(lease.session, id)
                consumed.add(id)
            results.append(True)
        return results

    def _ring(self, node: str) -> None:
        if node in self._woken:
            self._woken[node] = True
            self._changed.notify_all()

    def _unread(self, node: str) -> list[str]:
        found = self._disk.sessions.items()
        return sorted(name for name, stored in found if stored.node == node and stored.inbox)


def _apply(stored: _Session, commit: EncodedCommit) -> None:
    stored.entries.extend((time, data) for _, time, data in commit.entries)
    stored.row, stored.updated = commit.row, commit.updated
    stored.snapshot = commit.snapshot or stored.snapshot
    for id in commit.consumed:
        del stored.inbox[id]


def _row(session: str, stored: _Session) -> SessionRow:
    return decode_row(f"the row of `{session}`", stored.row, len(stored.entries))


def _snapshot(session: str, stored: _Session) -> Snapshot | None:
    if stored.snapshot is None:
        return None
    seq, state = stored.snapshot
    return Snapshot(seq=seq, state=decode(f"a snapshot of `{session}`", state))


def _entries(stored: _Session, after: int, upto: int) -> list[StoredEntry]:
    found = enumerate(stored.entries[after:upto], after + 1)
    return [
        StoredEntry(seq=seq, time=time, data=decode(f"entry {seq}", data))
        for seq, (time, data) in found
    ]


def _inbox(session: str, stored: _Session) -> tuple[Posted, ...]:
    found = sorted(stored.inbox.items(), key=lambda posted: (posted[1][0], posted[0]))
    return tuple(
        Posted(
            id=id,
            session=session,
            lane=lane,
            message=decode(f"message {id}", text),
            client_id=client_id,
            time=time,
        )
        for id, (lane, client_id, time, text) in found
    )
