"""A store in memory, with the protocol and the strictness of the durable one.

Used where persistence is switched off, and by the simulator, which lets it crash at its n-th
durable write and goes on with a `survivor`. What is stored went through JSON, so nothing is
shared with the caller, and what the durable store would refuse is refused here too.
"""

import copy
import json
import string
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from .encoding import decode, encode, encode_commit, encode_reply, encode_row
from .lock import Owner
from .memory_home import (
    MemoryHome,
    MemorySession,
    apply,
    entries_of,
    inbox_of,
    row_of,
    snapshot_of,
)
from .memory_nodes import MemoryNodes
from .store import (
    ANSWERS_KEPT,
    REMEMBERED,
    Commit,
    Lease,
    Loaded,
    Occurrence,
    Position,
    Posted,
    SessionRow,
    Snapshot,
    StoredEntry,
    Watch,
    check_client_id,
    check_identifier,
    lease_lost,
    missing_message,
    session_exists,
)

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class MemoryStore:
    """Sessions in memory; see `store.Store` for each method. Safe from several threads.

    `crash_at` counts durable writes from 1 (create, claim, release, commit, post, answer, note,
    conclude): that one raises `SimulatedCrash` before it is applied, or after. Set it at any time;
    `writes` counts them.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        crash_at: int | None = None,
        crash_side: Literal["before", "after"] = "before",
    ) -> None:
        self._home = MemoryHome(clock, crash_at, crash_side)
        self._nodes = MemoryNodes(self._home)

    @property
    def nodes(self) -> MemoryNodes:
        """The nodes of the home."""
        return self._nodes

    @property
    def writes(self) -> int:
        """How many durable writes there were."""
        return self._home.writes

    @property
    def crash_at(self) -> int | None:
        """The number of the write at which the store crashes."""
        return self._home.crash_at

    @crash_at.setter
    def crash_at(self, number: int | None) -> None:
        self._home.crash_at = number

    def survivor(self) -> "MemoryStore":
        """Make a fresh store with what is durable here, and no leases."""
        with self._home.changed:
            survivor = MemoryStore(clock=self._home.clock)
            survivor._home.disk = copy.deepcopy(self._home.disk)
            return survivor

    def create(self, row: SessionRow) -> None:
        """Make a session known; raises `StoreError` if it is known already."""
        check_identifier("session", row.session)
        with self._home.used():
            if row.session in self._home.disk.sessions:
                raise session_exists(row.session)
            with self._home.write():
                above = self._home.disk.sessions.get(row.parent)
                self._home.disk.sessions[row.session] = MemorySession(
                    row=encode_row(row),
                    state=row.state,
                    updated=row.updated,
                    root=above.root if above else row.session,
                    place=row.place or (above.place if above else ""),
                )

    def claim(self, session: str, node: str) -> Lease | None:
        """Take the session under a new epoch, or none if it is taken."""
        check_identifier("node", node)
        with self._home.used():
            self._home.session(session)
            if session in self._home.owned:
                return None
            with self._home.write():
                return self._home.take(session, node)

    def release(self, lease: Lease) -> None:
        """Give the session back. Idempotent."""
        with self._home.used():
            if self._home.owned.get(lease.session) == lease:
                with self._home.write():
                    self._home.disk.sessions[lease.session].node = ""
                del self._home.owned[lease.session]

    def is_owned(self, session: str) -> bool:
        """Whether a session is held in this store."""
        check_identifier("session", session)
        with self._home.used():
            return session in self._home.owned

    def owner(self, session: str) -> Owner | None:
        """Name no owner: a session in this store is held by this process, if at all."""
        check_identifier("session", session)
        return None

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Apply all or, when one of them is wrong, none: then raises `MachineError`."""
        encoded = [encode_commit(commit) for commit in commits]
        with self._home.used():
            results = self._home.checked(encoded)
            with self._home.write():
                for commit, is_owned in zip(encoded, results, strict=True):
                    if is_owned:
                        stored = self._home.disk.sessions[commit.lease.session]
                        apply(stored, commit, self._home.clock())
            self._home.changed.notify_all()  # replies that are waited for
            return results

    def load(self, session: str) -> Loaded:
        """Read row, snapshot, tail and inbox as of one moment."""
        with self._home.used():
            stored = self._home.session(session)
            snapshot = snapshot_of(session, stored)
            after = snapshot.seq if snapshot else 0
            tail = tuple(entries_of(stored, after, len(stored.entries)))
            return Loaded(
                row=row_of(session, stored),
                snapshot=snapshot,
                tail=tail,
                unconsumed=inbox_of(session, stored),
            )

    def entries(
        self, session: str, after: int = 0, upto: int | None = None
    ) -> Iterable[StoredEntry]:
        """Read the journal in order."""
        with self._home.used():
            stored = self._home.session(session)
            last = len(stored.entries)
            return entries_of(stored, max(0, after), last if upto is None else min(upto, last))

    def row(self, session: str) -> SessionRow:
        """Read what a list shows of one session."""
        with self._home.used():
            return row_of(session, self._home.session(session))

    def snapshot(self, session: str, upto: int) -> Snapshot | None:
        """Return the newest snapshot, the only one that is kept, if it is at or before `upto`."""
        with self._home.used():
            found = snapshot_of(session, self._home.session(session))
            return found if found is not None and found.seq <= upto else None

    def epoch(self, session: str) -> int:
        """Count the claims of a session."""
        with self._home.used():
            return self._home.session(session).epoch

    def position(self, session: str) -> Position:
        """Read what the next commit is compared with."""
        with self._home.used():
            stored = self._home.session(session)
            return Position(epoch=stored.epoch, node=stored.node, seq=len(stored.entries))

    def sessions(self) -> list[SessionRow]:
        """List all sessions, newest activity first."""
        with self._home.used():
            found = sorted(
                self._home.disk.sessions.items(), key=lambda stored: (-stored[1].updated, stored[0])
            )
            return [row_of(session, stored) for session, stored in found]

    def owners(self) -> dict[str, Owner]:
        """Name no owners, as `owner`: a session here is held by this process, if at all."""
        return {}

    def search(self, text: str) -> Iterator[tuple[str, StoredEntry]]:
        """Yield the entries that may hold a text, newest session first."""
        written = json.dumps(text, ensure_ascii=False)[1:-1].translate(_LOWER)
        for row in self.sessions():
            for entry in self.entries(row.session):
                if written in encode("an entry", entry.data).translate(_LOWER):
                    yield row.session, entry

    def sizes(self) -> dict[str, int]:
        """Add up what is stored of each session, in bytes of text."""
        with self._home.used():
            return {
                session: sum(len(data.encode()) for _, data in stored.entries)
                + len(stored.snapshot[1] if stored.snapshot else b"")
                for session, stored in self._home.disk.sessions.items()
                if stored.entries or stored.snapshot
            }

    def delete(self, lease: Lease) -> None:
        """Delete a session; its lease ends. Raises `LeaseLost`."""
        with self._home.used():
            if self._home.held(lease) is None:
                raise lease_lost(lease.session)
            with self._home.write():
                del self._home.disk.sessions[lease.session]
            self._home.owned.pop(lease.session, None)

    def thin(self, sessions: Sequence[str]) -> None:
        """Do nothing: only the newest snapshot is kept."""

    def compact(self) -> int:
        """Give nothing back: there are no unused pages."""
        return 0

    def post(self, session: str, lane: int, message: dict[str, Any], client_id: str = "") -> int:
        """Put a message into the inbox, once for a client id, and wake the owner."""
        check_client_id(client_id)
        text = encode(f"the message to `{session}`", message)
        with self._home.used():
            stored = self._home.session(session)
            posted = stored.known.get(client_id) if client_id else None
            if posted is None:
                posted = self._home.disk.last_message + 1
                with self._home.write():
                    self._home.disk.last_message = posted
                    stored.inbox[posted] = (lane, client_id, self._home.clock(), text)
                    if client_id:
                        stored.known[client_id] = posted
            alive = [stored.node] if session in self._home.owned else []
            self._home.ring(*(alive or self._nodes.at(stored.place)))
            return posted

    def answer(self, lease: Lease, message: int, reply: Mapping[str, Any]) -> bool:
        """Give a message its reply, and consume it if it is unread."""
        text = encode_reply(lease.session, message, reply)
        with self._home.used():
            stored = self._home.held(lease)
            if stored is None:
                return False
            if message not in stored.inbox and message not in stored.replies:
                raise missing_message(lease.session, message)
            with self._home.write():
                stored.inbox.pop(message, None)
                _, known = stored.replies.get(message, (0.0, None))
                stored.replies[message] = (self._home.clock(), known or text)
            self._home.changed.notify_all()
            return True

    def reply(self, message: int, timeout: float) -> dict[str, Any] | None:
        """Block until there is a reply, the time is over or the store closes."""
        with self._home.used():
            self._home.changed.wait_for(
                lambda: self._reply(message) is not None or self._home.is_closed, timeout
            )
            text = self._reply(message)
            return None if text is None else decode(f"the reply to message {message}", text)

    def _reply(self, message: int) -> str | None:
        found = (stored.replies.get(message) for stored in self._home.disk.sessions.values())
        return next((known[1] for known in found if known is not None), None)

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox, by lane and then by id."""
        with self._home.used():
            return inbox_of(session, self._home.session(session))

    def wait(self, node: str, timeout: float) -> list[str]:
        """Block until a message is posted to a session of the node; at first only if none is unread."""
        check_identifier("node", node)
        with self._home.used():
            if node not in self._home.woken:
                self._home.woken[node] = bool(self._home.unread(node))
            self._home.changed.wait_for(
                lambda: self._home.woken[node] or self._home.is_closed, timeout
            )
            self._home.woken[node] = False
            return [] if self._home.is_closed else self._home.unread(node)

    def note(self, watch: Watch, occurrences: Sequence[Occurrence] = ()) -> list[bool]:
        """Keep how far a schedule was looked at, and what was found, together."""
        disk = self._home.disk
        with self._home.used(), self._home.write():
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
        disk, name = self._home.disk, watch.schedule
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
        with self._home.used(), self._home.write():
            key = (occurrence.schedule, occurrence.planned)
            known = self._home.disk.occurrences[key]
            self._home.disk.occurrences[key] = replace(
                known,
                state=occurrence.state,
                session=occurrence.session,
                reason=occurrence.reason,
            )

    def watches(self) -> list[Watch]:
        """List the schedules that were looked at, by name."""
        with self._home.used():
            return sorted(self._home.disk.watches.values(), key=lambda watch: watch.schedule)

    def occurrences(self) -> list[Occurrence]:
        """List the occurrences that are remembered, the newest first."""
        with self._home.used():
            return sorted(
                self._home.disk.occurrences.values(),
                key=lambda found: (-found.planned, found.schedule),
            )

    def reopen(self) -> None:
        """Do nothing: memory does not fail."""

    def settle(self) -> None:
        """Forget old replies."""
        with self._home.used():
            before = self._home.clock() - ANSWERS_KEPT
            for stored in self._home.disk.sessions.values():
                old = [id for id, (settled, _) in stored.replies.items() if settled < before]
                for id in old:
                    del stored.replies[id]

    def close(self) -> None:
        """Release all leases and wake the threads that wait. Idempotent."""
        with self._home.changed:
            if not self._home.is_crashed:
                for session in self._home.owned:
                    self._home.disk.sessions[session].node = ""
            self._home.owned.clear()
            self._home.is_closed = True
            self._home.changed.notify_all()
