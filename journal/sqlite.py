"""The embedded store: one SQLite database for a home, shared by all processes of its owner.

    journal.db        everything that is remembered (see `schema.py`, `table.py`, `database.py`)
    journal.lock      held while a process opens the database
    locks/, bells/    live owners and their wake-up sockets (see `presence.py`)

A lease is both: the file lock says that its owner lives, the epoch that it still is the owner. Only
the epoch protects the journal; it is compared in the transaction that writes.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from ..machines.errors import StoreError, StoreFailed
from . import tables
from .connection import Connection
from .database import Database
from .encoding import encode, encode_commit
from .folder import PrivateFolder
from .lock import Owner
from .presence import Presence
from .store import (
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
    unknown_session,
)

_PAGE = 500  # entries read at once, so that no reader holds the log for long


class SqliteStore:
    """A home's sessions in one SQLite database; see `store.Store` for each method.

    Safe from several threads; each call waits for the one before it. After a `StoreFailed` every
    call raises it again, until `reopen`.
    """

    def __init__(self, path: Path, patience: float, clock: Callable[[], float]) -> None:
        """Use `open` instead."""
        self._path = path
        self._patience = patience
        self._clock = clock
        self._folder: PrivateFolder | None = None
        self._presence: Presence | None = None
        self._database: Database | None = None
        self._is_read_only = False
        self._is_closed = False
        self._mutex = threading.Lock()  # held while opening late, and to close once

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
        store = cls(folder, patience, clock)
        store._is_read_only = read_only
        with store._telling():
            if read_only:
                store._look()
            else:
                store._enter(create=True)
        return store

    def create(self, row: SessionRow) -> None:
        """Make a session known; raises `StoreError` if it is known already.

        The sync of its first entry makes that durable, too.
        """
        check_identifier("session", row.session)
        with self._writing(is_synced=False) as connection:
            tables.insert_session(connection, row)

    def claim(self, session: str, node: str) -> Lease | None:
        """Lock the session's file, then raise its epoch; none if a live process holds the lock.

        The sync of the first entry under the epoch makes that durable, too.
        """
        check_identifier("node", node)
        presence = self._present()
        with self._reading(session) as connection:
            tables.last_seq(connection, session)  # no lock file for a session that is not
        with self._telling():
            lock = presence.take(session, Owner(pid=os.getpid(), node=node, started=self._clock()))
        if lock is None:
            return None
        with ExitStack() as undo:
            undo.callback(lock.release)
            with self._writing(is_synced=False) as connection:
                lease = Lease(
                    session=session, node=node, epoch=tables.raise_epoch(connection, session, node)
                )
            undo.pop_all()
        presence.keep(lease, lock)
        return lease

    def release(self, lease: Lease) -> None:
        """Give the session back. Idempotent; works on a failed store too."""
        lock = self._presence.drop(lease) if self._presence else None
        if lock is None:
            return
        try:
            if self._writable().has_failed:
                return  # reported where it failed; the lock is what others wait for
            with self._writing() as connection:
                tables.clear_owner(connection, lease.session, lease.epoch)
        finally:
            lock.release()

    def is_owned(self, session: str) -> bool:
        """Whether a live process holds the session's lock."""
        check_identifier("session", session)
        with self._telling():
            self._look()
            return self._presence is not None and self._presence.is_held(session)

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner, for display; none if no live process owns it."""
        check_identifier("session", session)
        with self._telling():
            self._look()
            return self._presence.owner(session) if self._presence else None

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Write all in one transaction; raises `MachineError` for a gap, and then writes none."""
        encoded = [encode_commit(commit) for commit in commits]
        with self._writing() as connection:
            return tables.write_commits(connection, encoded)

    def load(self, session: str) -> Loaded:
        """Read row, snapshot, tail and inbox as of one moment."""
        with self._reading(session) as connection:
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
        with self._reading(session) as connection:
            last = tables.last_seq(connection, session)
        return self._pages(session, max(0, after), last if upto is None else min(upto, last))

    def row(self, session: str) -> SessionRow:
        """Read what a list shows of one session."""
        with self._reading(session) as connection:
            return tables.read_row(connection, session)

    def snapshot(self, session: str, upto: int) -> Snapshot | None:
        """Read the newest snapshot at or before entry `upto`."""
        with self._reading(session) as connection:
            return tables.read_snapshot(connection, session, upto)

    def epoch(self, session: str) -> int:
        """Count the claims of a session."""
        with self._reading(session) as connection:
            return tables.read_epoch(connection, session)

    def sessions(self) -> list[SessionRow]:
        """List all sessions, newest activity first."""
        database = self._look()
        if database is None:
            return []
        with database.reading() as connection:
            return tables.read_rows(connection)

    def owners(self) -> dict[str, Owner]:
        """Map sessions to their owners, with one look at a lock for each process, not each session.

        A process that lives holds the locks of all sessions that are its own.
        """
        database = self._look()
        if database is None or self._presence is None:
            return {}
        with database.reading() as connection:
            claimed = tables.read_nodes(connection)
        with self._telling():
            return self._presence.owners(claimed)

    def search(self, text: str) -> Iterator[tuple[str, StoredEntry]]:
        """Yield the entries that may hold a text, with their sessions; ASCII letters in any case."""
        database = self._look()
        if database is None:
            return
        with database.reading() as connection:
            found = tables.search_entries(connection, text)
        yield from found

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the journal of each session takes."""
        database = self._look()
        if database is None:
            return {}
        with database.reading() as connection:
            return tables.read_sizes(connection)

    def delete(self, lease: Lease) -> None:
        """Delete a session: its journal, its snapshots, its inbox; its lease ends, too."""
        with self._writing() as connection:
            tables.delete_session(connection, lease.session, lease.epoch)
        self.release(lease)

    def thin(self, sessions: Sequence[str]) -> None:
        """Drop all but the newest snapshot of these sessions."""
        with self._writing() as connection:
            for session in sessions:
                tables.thin_snapshots(connection, session)

    def compact(self) -> int:
        """Give unused pages of the file back, if it is worth it; returns bytes."""
        return self._writable().compact()

    def post(self, session: str, lane: int, message: dict[str, Any], client_id: str = "") -> int:
        """Put a message into the inbox, durably, and ring the owner's wake-up socket."""
        check_identifier("session", session)
        check_client_id(client_id)
        presence = self._present()
        text = encode(f"the message to `{session}`", message)
        with self._writing() as connection:
            posted, node = tables.insert_message(
                connection, session, lane, client_id, self._clock(), text
            )
        # The message is durable, also where its owner could not be woken: it is not refused.
        with contextlib.suppress(OSError, StoreError):
            presence.ring(node)
        return posted

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox, by lane and then by id."""
        with self._reading(session) as connection:
            tables.last_seq(connection, session)
            return tables.read_inbox(connection, session)

    def wait(self, node: str, timeout: float) -> list[str]:
        """Block until the node's wake-up socket is rung; one thread a node.

        The first call answers at once if something is unread. Later ones wait for a new ring or
        the timeout, and then list all that is unread, also what was listed before.
        """
        check_identifier("node", node)
        with self._telling():
            wake_socket, is_new = self._present().wake_socket(node)
        unread = self._unread(node) if is_new else []
        if unread:
            return unread
        wake_socket.wait(timeout)
        return [] if self._is_closed else self._unread(node)

    def note(self, watch: Watch, occurrences: Sequence[Occurrence] = ()) -> list[bool]:
        """Keep how far a schedule was looked at, and what was found, in one transaction."""
        with self._writing() as connection:
            noted = [tables.insert_occurrence(connection, found) for found in occurrences]
            tables.write_watch(connection, watch)
            return noted

    def conclude(self, occurrence: Occurrence) -> None:
        """Change what became of a noted occurrence."""
        with self._writing() as connection:
            tables.update_occurrence(connection, occurrence)

    def watches(self) -> list[Watch]:
        """List the schedules that were looked at, by name."""
        database = self._look()
        if database is None:
            return []
        with database.reading() as connection:
            return tables.read_watches(connection)

    def occurrences(self) -> list[Occurrence]:
        """List the occurrences that are remembered, the newest first."""
        database = self._look()
        if database is None:
            return []
        with database.reading() as connection:
            return tables.read_occurrences(connection)

    def reopen(self) -> None:
        """Put a new connection in the place of one that failed; locks and leases stay."""
        with self._mutex, self._telling():
            failed, folder = self._database, self._folder
            if failed is not None and folder is not None and failed.has_failed:
                self._database = Database.open(folder, self._patience)
                failed.close()

    def settle(self) -> None:
        """Move the log into the database, in an idle moment."""
        self._writable().checkpoint()

    def close(self) -> None:
        """Release all leases, wake the threads that wait, empty the log, close. Idempotent."""
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        with ExitStack() as closing:
            if self._folder is not None:
                closing.callback(self._folder.close)
            if self._database is not None:
                closing.callback(self._database.close)
            if self._presence is not None:
                closing.callback(self._presence.close)
                for lease in self._presence.leases():
                    closing.callback(self.release, lease)
                closing.callback(self._presence.silence)

    def _pages(self, session: str, after: int, upto: int) -> Iterator[StoredEntry]:
        while after < upto:
            page_end = min(after + _PAGE, upto)
            with self._reading(session) as connection:
                page = tables.read_entries(connection, session, after, page_end)
            yield from page
            after = page_end

    def _unread(self, node: str) -> list[str]:
        with self._writable().reading() as connection:
            return tables.unread_sessions(connection, node)

    @contextmanager
    def _reading(self, session: str) -> Generator[Connection]:
        check_identifier("session", session)
        database = self._look()
        if database is None:
            raise unknown_session(session)
        with database.reading() as connection:
            yield connection

    @contextmanager
    def _writing(self, *, is_synced: bool = True) -> Generator[Connection]:
        with self._writable().writing(is_synced=is_synced) as connection:
            yield connection

    def _writable(self) -> Database:
        if self._is_read_only or self._database is None:
            raise StoreError(f"`{self._path}` is open for reading only", "Open it for writing.")
        return self._database

    def _present(self) -> Presence:
        self._writable()
        assert self._presence is not None
        return self._presence

    def _look(self) -> Database | None:
        """Find the database; a read-only home may get one while we look on."""
        with self._mutex, self._telling():
            if self._database is None and self._is_read_only and not self._is_closed:
                with contextlib.suppress(FileNotFoundError):
                    self._enter(create=False)
        return self._database

    def _enter(self, *, create: bool) -> None:
        """Open folder and database; leave the folder open only if both are."""
        folder = PrivateFolder.open(self._path, create=create)
        with ExitStack() as undo:
            undo.callback(folder.close)
            open_database = Database.open if create else Database.open_for_reading
            opened = open_database(folder, self._patience)
            if opened is None:
                return
            self._folder, self._database, self._presence = folder, opened, Presence(folder)
            undo.pop_all()

    @contextmanager
    def _telling(self) -> Generator[None]:
        """Say in our words what the file system refused."""
        try:
            yield
        except OSError as fault:
            raise StoreFailed(
                f"`{fault.filename or self._path}` cannot be used: {fault.strerror or fault}",
                "Check free space and permissions there, or set STEERSMAN_HOME.",
            ) from fault
