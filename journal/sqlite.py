"""The embedded store: one SQLite database for a home, shared by all processes of its owner.

    journal.db        everything that is remembered (see `sql.py`, `tables.py`, `database.py`)
    journal.lock      held while a process opens the database
    locks/, bells/    live owners and their wake-up sockets (see `presence.py`)

A lease is both: the file lock says that its owner lives, the epoch that it still is the owner. Only
the epoch protects the journal; it is compared in the transaction that writes.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

from ..machines.errors import StoreError
from . import sql, tables
from .damage import RowFault, sqlite_faults
from .encoding import encode, encode_commit, encode_reply
from .lock import Owner, this_process
from .sql import Sql
from .sql_store import SqlStore
from .sqlite_home import FolderHome, SqliteHome
from .sqlite_nodes import SqliteNodes
from .store import (
    Commit,
    Lease,
    Posted,
    SessionRow,
    StoredEntry,
    check_client_id,
    check_identifier,
    lease_lost,
)

T = TypeVar("T")


class SqliteStore(SqlStore):
    """A home's sessions in one SQLite database; see `store.Store` for each method.

    Safe from several threads; each call waits for the one before it. After a `StoreFailed` every
    call raises it again, until `reopen`.
    """

    def __init__(self, home: SqliteHome, clock: Callable[[], float]) -> None:
        """Use `open` instead."""
        super().__init__(clock)
        self._home = home
        self._nodes = SqliteNodes(home, clock)

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
            sql.read_position(connection, session)  # no lock file for a session that is not
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

    def owners(self) -> dict[str, Owner]:
        """Map sessions to their owners, with one look at a lock for each process, not each session.

        A process that lives holds the locks of all sessions that are its own.
        """
        with self._home.looking() as connection:
            claimed = tables.read_nodes(connection) if connection is not None else {}
        presence = self._home.presence
        with self._home.translated():
            return presence.owners(claimed) if presence else {}

    def faults(self) -> Iterator[RowFault]:
        """Name what cannot be read, of the file and of each row."""
        yield from sqlite_faults(self._rows)

    def delete(self, lease: Lease) -> None:
        """Delete a session: its journal, its snapshots, its inbox; its lease ends, too."""
        with self._home.writing() as connection:
            connection.change("PRAGMA secure_delete = on")  # what they held is overwritten
            if not sql.delete_session(connection, lease.session, lease.epoch):
                raise lease_lost(lease.session)
        self.release(lease)

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

    def reopen(self) -> None:
        """Put a new connection in the place of one that failed; locks and leases stay."""
        self._home.reopen()

    def settle(self) -> None:
        """Move the log into the database, in an idle moment; once an hour, forget old replies."""
        super().settle()
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

    def _read(self, session: str, work: Callable[[Sql], T], *, is_one_moment: bool = False) -> T:
        with self._home.reading(session) as connection:
            return work(connection)

    def _look(self, work: Callable[[Sql], T], nothing: T) -> T:
        with self._home.looking() as connection:
            return nothing if connection is None else work(connection)

    def _write(self, work: Callable[[Sql], T]) -> T:
        with self._home.writing() as connection:
            return work(connection)

    @property
    def _is_over(self) -> bool:
        return self._home.is_closed

    def _inbox(self, connection: Sql, session: str) -> tuple[Posted, ...]:
        return tables.read_inbox(connection, session)

    def _found(self, connection: Sql, text: str) -> list[tuple[str, StoredEntry]]:
        return tables.search_entries(connection, text)

    def _unread(self, node: str) -> list[str]:
        with self._home.writable().reading() as connection:
            return tables.unread_sessions(connection, node)

    def _forget_replies(self, before: float) -> None:
        with self._home.writable().reading() as connection:
            has_old = tables.has_old_replies(connection, before)
        if has_old:
            with self._home.writing() as connection:
                tables.forget_replies(connection, before)
