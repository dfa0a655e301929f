"""The embedded store: one SQLite database for a home, shared by all processes of its owner.

    journal.db        everything that is remembered (see `schema.py`, `table.py`, `database.py`)
    journal.lock      held while a process opens the database
    locks/, bells/    live owners and their wake-up sockets (see `presence.py`)

A lease is both: the file lock says that its owner lives, the epoch that it still is the owner. Only
the epoch protects the journal; it is compared in the transaction that writes.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from ..machines.errors import StoreError
from . import tables
from .damage import RowFault, sqlite_faults
from .encoding import encode, encode_commit, encode_reply
from .lock import Owner, this_process
from .sqlite_home import FolderHome, SqliteHome
from .sqlite_nodes import SqliteNodes
from .store import (
    ANSWERS_KEPT,
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
    looked_for,
)

_HOUR = 3600.0
_PAGE = 500  # entries read at once, so that no reader holds the log for long


class SqliteStore:
    """A home's sessions in one SQLite database; see `store.Store` for each method.

    Safe from several threads; each call waits for the one before it. After a `StoreFailed` every
    call raises it again, until `reopen`.
    """

    def __init__(self, home: SqliteHome, clock: Callable[[], float]) -> None:
        """Use `open` instead."""
        self._home = home
        self._clock = clock
        self._nodes = SqliteNodes(home, clock)
        self._forgotten = 0.0  # when replies were last looked through

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        read_only: bool = False,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the store in `folder`; make it if need be, unless `read_only`.

        `patience`: seconds to wait for a write of another process, before `StoreBusy`.
        Raises `StoreFailed`, `StoreDamaged`, `StoreTooNew`, and `StoreError` for a folder that is
        not ours. Reading a home that has no database makes nothing and shows no sessions.
        """
        home = FolderHome(folder, patience, is_read_only=read_only)
        home.open()
        return cls(home, clock)

    @property
    def nodes(self) -> SqliteNodes:
        """The nodes of the home."""
        return self._nodes

    def create(self, row: SessionRow) -> None:
        """Make a session known; raises `StoreError` if it is known already.

        The sync of its first entry makes that durable, too.
        """
        check_identifier("session", row.session)
        with self._home.writing(is_synced=False) as connection:
            tables.insert_session(connection, row)

    def claim(self, session: str, node: str) -> Lease | None:
        """Lock the session's file, then raise its epoch; none if a live process holds the lock.

        The sync of the first entry under the epoch makes that durable, too.
        """
        check_identifier("node", node)
        presence = self._home.present()
        with self._home.reading(session) as connection:
            tables.last_seq(connection, session)  # no lock file for a session that is not
        with self._home.translated():
            lock = presence.take(session, this_process(node, self._clock()))
        if lock is None:
            return None
        with ExitStack() as undo:
            undo.callback(lock.release)
            with self._home.writing(is_synced=False) as connection:
                lease = Lease(
                    session=session, node=node, epoch=tables.raise_epoch(connection, session, node)
                )
            undo.pop_all()
        presence.keep(lease, lock)
        return lease

    def release(self, lease: Lease) -> None:
        """Give the session back. Idempotent; works on a failed store too."""
        lock = self._home.presence.drop(lease) if self._home.presence else None
        if lock is None:
            return
        try:
            if self._home.writable().has_failed:
                return  # reported where it failed; the lock is what others wait for
            with self._home.writing() as connection:
                tables.clear_owner(connection, lease.session, lease.epoch)
        finally:
            lock.release()

    def is_owned(self, session: str) -> bool:
        """Whether a live process holds the session's lock."""
        check_identifier("session", session)
        self._home.look()
        presence = self._home.presence
        with self._home.translated():
            return presence is not None and presence.is_held(session)

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner, for display; none if no live process owns it."""
        check_identifier("session", session)
        self._home.look()
        presence = self._home.presence
        with self._home.translated():
            return presence.owner(session) if presence else None

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Write all in one transaction; raises `MachineError` for a gap, and then writes none."""
        encoded = [encode_commit(commit) for commit in commits]
        with self._home.writing() as connection:
            return tables.write_commits(connection, encoded, self._clock())

    def load(self, session: str) -> Loaded:
        """Read row, snapshot, tail and inbox as of one moment."""
        with self._home.reading(session) as connection:
            row = tables.read_row(connection, session)
            snapshot = tables.read_snapshot(connection, session)
            after = snapshot.seq if snapshot else 0
            tail = tables.read_entries(connection, session, after, row.seq)
            return Loaded(
                row=row,
                snapshot=snapshot,
                tail=tail,
                unconsumed=tables.read_inbox(connection, session),
            )

    def entries(
        self, session: str, after: int = 0, upto: int | None = None
    ) -> Iterable[StoredEntry]:
        """Read the journal in pages, so that neither memory nor the log grows with its length."""
        with self._home.reading(session) as connection:
            last = tables.last_seq(connection, session)
        return self._pages(session, max(0, after), last if upto is None else min(upto, last))

    def row(self, session: str) -> SessionRow:
        """Read what a list shows of one session."""
        with self._home.reading(session) as connection:
            return tables.read_row(connection, session)

    def snapshot(self, session: str, upto: int) -> Snapshot | None:
        """Read the newest snapshot at or before entry `upto`."""
        with self._home.reading(session) as connection:
            return tables.read_snapshot(connection, session, upto)

    def epoch(self, session: str) -> int:
        """Count the claims of a session."""
        with self._home.reading(session) as connection:
            return tables.read_epoch(connection, session)

    def position(self, session: str) -> Position:
        """Read what the next commit is compared with."""
        with self._home.reading(session) as connection:
            return tables.read_position(connection, session)

    def sessions(self) -> list[SessionRow]:
        """List all sessions, newest activity first."""
        with self._home.looking() as connection:
            return tables.read_rows(connection) if connection is not None else []

    def owners(self) -> dict[str, Owner]:
        """Map sessions to their owners, with one look at a lock for each process, not each session.

        A process that lives holds the locks of all sessions that are its own.
        """
        with self._home.looking() as connection:
            claimed = tables.read_nodes(connection) if connection is not None else {}
        presence = self._home.presence
        with self._home.translated():
            return presence.owners(claimed) if presence else {}

    def search(self, text: str) -> Iterator[tuple[str, StoredEntry]]:
        """Yield the entries that may hold a text, with their sessions; ASCII letters in any case."""
        with self._home.looking() as connection:
            found = tables.search_entries(connection, text) if connection is not None else []
        yield from found

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the journal of each session takes."""
        with self._home.looking() as connection:
            return tables.read_sizes(connection) if connection is not None else {}

    def faults(self) -> Iterator[RowFault]:
        """Name what cannot be read, of the file and of each row."""

        def read(query: str, *values: str | int) -> list[tuple[Any, ...]]:
            with self._home.looking() as connection:
                rows = connection.rows(query.format(""), *values) if connection is not None else []
            return rows

        yield from sqlite_faults(read)

    def delete(self, lease: Lease) -> None:
        """Delete a session: its journal, its snapshots, its inbox; its lease ends, too."""
        with self._home.writing() as connection:
            tables.delete_session(connection, lease.session, lease.epoch)
        self.release(lease)

    def thin(self, sessions: Sequence[str]) -> None:
        """Drop all but the newest snapshot of these sessions."""
        with self._home.writing() as connection:
            for session in sessions:
                tables.thin_snapshots(connection, session)

    def compact(self) -> int:
        """Give unused pages of the file back, if it is worth it; returns bytes."""
        return self._home.writable().compact()

    def post(self, session: str, lane: int, message: dict[str, Any], client_id: str = "") -> int:
        """Put a message into the inbox, durably, and ring the owner's wake-up socket."""
        check_identifier("session", session)
        check_client_id(client_id)
        presence = self._home.present()
        text = encode(f"the message to `{session}`", message)
        with self._home.writing() as connection:
            posted, node, place = tables.insert_message(
                connection, session, lane, client_id, self._clock(), text
            )
        # The message is durable, also where its owner could not be woken: it is not refused.
        with contextlib.suppress(OSError, StoreError):
            if not presence.ring(node):
                self._nodes.ring(place)
        return posted

    def answer(self, lease: Lease, message: int, reply: Mapping[str, Any]) -> bool:
        """Give a message its reply, durably, and consume it if it is unread."""
        text = encode_reply(lease.session, message, reply)
        with self._home.writing() as connection:
            return tables.write_reply(connection, lease, message, text, self._clock())

    def reply(self, message: int, timeout: float) -> dict[str, Any] | None:
        """Look for the reply, at first often, until it is there, the time is over or the home closes."""

        def look() -> dict[str, Any] | None:
            with self._home.looking() as connection:
                return tables.read_reply(connection, message) if connection is not None else None

        return looked_for(look, timeout, lambda: self._home.is_closed)

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox, by lane and then by id."""
        with self._home.reading(session) as connection:
            tables.last_seq(connection, session)
            return tables.read_inbox(connection, session)

    def wait(self, node: str, timeout: float) -> list[str]:
        """Block until the node's wake-up socket is rung; one thread a node.

        The first call answers at once if something is unread. Later ones wait for a new ring or
        the timeout, and then list all that is unread, also what was listed before.
        """
        check_identifier("node", node)
        with self._home.translated():
            wake_socket, is_new = self._home.present().wake_socket(node)
        unread = self._unread(node) if is_new else []
        if unread:
            return unread
        wake_socket.wait(timeout)
        return [] if self._home.is_closed else self._unread(node)

    def note(self, watch: Watch, occurrences: Sequence[Occurrence] = ()) -> list[bool]:
        """Keep how far a schedule was looked at, and what was found, in one transaction."""
        with self._home.writing() as connection:
            noted = [tables.insert_occurrence(connection, found) for found in occurrences]
            tables.write_watch(connection, watch)
            return noted

    def conclude(self, occurrence: Occurrence) -> None:
        """Change what became of a noted occurrence."""
        with self._home.writing() as connection:
            tables.update_occurrence(connection, occurrence)

    def watches(self) -> list[Watch]:
        """List the schedules that were looked at, by name."""
        with self._home.looking() as connection:
            return tables.read_watches(connection) if connection is not None else []

    def occurrences(self) -> list[Occurrence]:
        """List the occurrences that are remembered, the newest first."""
        with self._home.looking() as connection:
            return tables.read_occurrences(connection) if connection is not None else []

    def reopen(self) -> None:
        """Put a new connection in the place of one that failed; locks and leases stay."""
        self._home.reopen()

    def settle(self) -> None:
        """Move the log into the database, in an idle moment; once an hour, forget old replies."""
        now = self._clock()
        if now - self._forgotten > _HOUR:
            self._forgotten = now
            self._forget_replies(now - ANSWERS_KEPT)
        self._home.writable().checkpoint()

    def close(self) -> None:
        """Release all leases, wake the threads that wait, empty the log, close. Idempotent."""
        if not self._home.begin_closing():
            return
        with ExitStack() as closing:
            closing.callback(self._home.close)
            presence = self._home.presence
            if presence is not None:
                for lease in presence.leases():
                    closing.callback(self.release, lease)
                closing.callback(self._nodes.close)
                closing.callback(presence.silence)

    def _pages(self, session: str, after: int, upto: int) -> Iterator[StoredEntry]:
        while after < upto:
            page_end = min(after + _PAGE, upto)
            with self._home.reading(session) as connection:
                page = tables.read_entries(connection, session, after, page_end)
            yield from page
            after = page_end

    def _unread(self, node: str) -> list[str]:
        with self._home.writable().reading() as connection:
            return tables.unread_sessions(connection, node)

    def _forget_replies(self, before: float) -> None:
        with self._home.writable().reading() as connection:
            has_old = tables.has_old_replies(connection, before)
        if has_old:
            with self._home.writing() as connection:
                tables.forget_replies(connection, before)
