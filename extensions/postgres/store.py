"""The store of many machines: a home in a PostgreSQL database.

The tables are in `tables.py`, who owns what in `nodes.py`, who lives in `presence.py`, and what happens
to a lost connection in `connection.py`. A lease is an epoch and nothing else: it is compared in the
statement that writes. A process has two connections, one for data and one that shows that it lives; a
command that only reads has the first.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self, TypeVar

from ...journal import sql
from ...journal.damage import RowFault, row_faults
from ...journal.encoding import encode, encode_commit, encode_reply
from ...journal.lock import Owner
from ...journal.sql import Sql, complete_listings
from ...journal.sql_store import SqlStore
from ...journal.store import (
    Commit,
    Lease,
    NodeRow,
    Posted,
    SessionRow,
    StoredEntry,
    check_client_id,
    check_identifier,
    lease_lost,
)
from ...machines.errors import ConnectionLost, StoreError, UsageError
from ...machines.value import Value
from . import tables
from .connection import PostgresAddress, PostgresConnection, Raw, check_about
from .nodes import PostgresNodes
from .presence import LIVE, POLL, SEEN, PostgresPresence
from .tables import Group, GroupError

T = TypeVar("T")
_NOTIFY_TIMEOUT = 5.0  # seconds for a notification to come back


class HomeReport(Value):
    """How a home on PostgreSQL is at this moment; times in seconds, `bell` none where nothing listens.

    `skew`: how far the clock of this host is ahead of the server's. `replicas` maps the names of
    replicas to how they follow (`sync`, `async`, …). `oldest` is the age of the oldest unread message.
    """

    server: str
    bell: float | None
    skew: float
    replicas: dict[str, str]
    nodes: tuple[NodeRow, ...]
    unread: int
    oldest: float


class PostgresStore(SqlStore):
    """A home's sessions in a PostgreSQL database; see `store.Store` for each method.

    Safe from several threads; each call waits for the one before it.
    """

    def __init__(
        self, line: PostgresConnection, presence: PostgresPresence, clock: Callable[[], float]
    ) -> None:
        """Use `open` instead."""
        super().__init__(clock)
        self._line = line
        self._presence = presence
        self._nodes = PostgresNodes(line, presence)
        self._heads: dict[str, tables.Head] = {}

    @classmethod
    def open(
        cls,
        url: str,
        *,
        lease: float = 10.0,
        fence: float = 7.0,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the home at an address; it must be there.

        `lease`: seconds without a sign of life after which others may take over what this process owns.
        `fence`: seconds for which a lost connection is tried again. Raises `UsageError` for an address
        that is none, `StoreFailed` for a server that cannot be reached, and `StoreTooNew`.
        """
        line = PostgresConnection(PostgresAddress.parse(url), fence)
        with ExitStack() as undo:
            undo.callback(line.close)
            check_about(line.address, line.rows("SELECT version, oldest, number FROM home.about"))
            # a program of an earlier version may have made sessions since
            line.run(complete_listings)
            undo.pop_all()
        return cls(line, PostgresPresence(line, lease, fence), clock)

    @staticmethod
    def make_home(url: str) -> bool:
        """Make the tables of a home in its schema; False if they are there. Raises `SteersmanError`."""
        address = PostgresAddress.parse(url)
        line = PostgresConnection(address, fence=0.0)

        def make(raw: Raw) -> bool:
            ((encoding,),) = raw.rows("SHOW server_encoding")
            if encoding != "UTF8":
                raise UsageError(
                    f"`{address.shown}` has the encoding {encoding}",
                    "A home needs UTF8: `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`.",
                )
            return tables.create_tables(raw)

        try:
            is_new = line.run(make)
            check_about(address, line.rows("SELECT version, oldest, number FROM home.about"))
            return is_new
        finally:
            line.close()

    @property
    def nodes(self) -> PostgresNodes:
        """The nodes of the home."""
        return self._nodes

    @property
    def can_listen(self) -> bool:
        """Whether the server notifies this process; known once a node of it waits or owns something."""
        return self._presence.can_listen

    def create(self, row: SessionRow) -> None:
        """Make a session known; raises `StoreError` if it is known already."""
        check_identifier("session", row.session)
        try:
            self._line.run(lambda raw: tables.insert_session(raw, row), is_repeatable=False)
        except ConnectionLost:
            if not self._line.run(lambda raw: tables.is_as_created(raw, row)):
                self.create(row)

    def claim(self, session: str, node: str) -> Lease | None:
        """Take the session under a new epoch, or none if a live process owns it."""
        check_identifier("session", session)
        check_identifier("node", node)
        return self._nodes.claim(session, node)

    def release(self, lease: Lease) -> None:
        """Give the session back. Idempotent."""
        self._heads.pop(lease.session, None)
        self._nodes.release_many([lease])

    def is_owned(self, session: str) -> bool:
        """Whether a live process owns the session."""
        return self.owner(session) is not None

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner, for display; none if no live process owns it."""
        check_identifier("session", session)
        return self._owners("session = %s", session).get(session)

    def owners(self) -> dict[str, Owner]:
        """Map the sessions that live processes own to these."""
        return self._owners("node <> ''")

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Write all in one statement; raises `MachineError` for a gap, and then writes none.

        Raises `ConnectionLost` if the answer was lost.
        """
        group = Group([encode_commit(commit) for commit in commits])
        now = self._clock()

        def write(raw: Any) -> set[Lease]:
            snapshots = group.snapshots()
            if not snapshots:
                return tables.write_group(raw, group, now, self._heads)
            with raw.transaction():
                kept = tables.write_group(raw, group, now, self._heads)
                for lease, snapshot in snapshots:
                    if lease in kept:
                        sql.write_snapshot(raw, lease.session, snapshot)
            return kept

        try:
            kept = self._line.run(write, is_repeatable=False)
        except GroupError as fault:
            self._line.run(lambda raw: tables.explain_group(raw, group))
            raise StoreError("the database refused a group of commits") from fault.__cause__
        return [commit.lease in kept for commit in commits]

    def faults(self) -> Iterator[RowFault]:
        """Name what cannot be read of each row; the server checks its own files."""
        yield from row_faults(self._rows)

    def delete(self, lease: Lease) -> None:
        """Delete a session: its journal, its snapshots, its inbox; its lease ends, too."""

        def delete(raw: Raw) -> bool:
            with raw.transaction():
                return sql.delete_session(raw, lease.session, lease.epoch)

        try:
            if not self._line.run(delete, is_repeatable=False):
                raise lease_lost(lease.session)
        except ConnectionLost:
            if self._line.rows("SELECT 1 FROM home.sessions WHERE session = %s", lease.session):
                self.delete(lease)
        self._nodes.forget(lease)

    def compact(self) -> int:
        """Give nothing back: the server's autovacuum does, in its own time."""
        return 0

    def post(self, session: str, lane: int, message: dict[str, Any], client_id: str = "") -> int:
        """Put a message into the inbox, durably, and notify the owner or nodes of the place."""
        check_identifier("session", session)
        key = tables.message_key(check_client_id(client_id))
        text, now = encode(f"the message to `{session}`", message), self._clock()
        posted, node, place = self._line.run(
            lambda raw: tables.insert_message(raw, session, lane, key, now, text)
        )
        # In a transaction of its own: what it finds rung already was rung before the message was there.
        with suppress(StoreError):
            self._nodes.ring(node, place)
        return posted

    def wait(self, node: str, timeout: float) -> list[str]:
        """Block until the node is notified; where that cannot be, look often. One thread a node."""
        check_identifier("node", node)
        if self._presence.is_first_wait(node):
            unread = self._unread(node)
            if unread:
                return unread
        until = time.monotonic() + timeout
        while not self._presence.is_closed:
            left = max(0.0, until - time.monotonic())
            can_listen = self._presence.can_listen
            if self._presence.wait(node, left if can_listen else min(left, POLL)) or not left:
                break
            rung = "SELECT 1 FROM home.nodes WHERE node = %s AND is_rung"
            if not can_listen and self._line.rows(rung, node):
                break
        return [] if self._presence.is_closed else self._unread(node)

    def answer(self, lease: Lease, message: int, reply: Mapping[str, Any]) -> bool:
        """Give a message its reply, durably, and consume it if it is unread."""
        text, now = encode_reply(lease.session, message, reply), self._clock()
        return self._line.run(lambda raw: tables.write_reply(raw, lease, message, text, now))

    def report(self) -> HomeReport:
        """Look at the home, ring a bell of our own, and leave nothing behind."""
        line, node, before = self._line, f"doctor-{secrets.token_hex(4)}", time.time()
        ((server, now),) = line.rows(
            "SELECT current_setting('server_version'),"
            " extract(epoch FROM clock_timestamp())::float8"
        )
        skew = (before + time.time()) / 2 - now
        replicas = line.rows(
            "SELECT application_name, coalesce(sync_state, '?') FROM pg_stat_replication"
        )
        ((unread, oldest),) = line.rows(
            "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp()) - min(time), 0)::float8"
            " FROM home.inbox WHERE NOT consumed"
        )
        return HomeReport(
            server=server.split()[0],
            bell=self._round_trip(node),
            skew=skew,
            replicas=dict(replicas),
            nodes=tuple(self._nodes.rows()),
            unread=unread,
            oldest=max(0.0, oldest),
        )

    def reopen(self) -> None:
        """Try the connection; it is made again when it is lost. Raises `StoreError` if it cannot be."""
        self._line.rows("SELECT 1")

    def close(self) -> None:
        """Release all leases, wake the threads that wait, close. Idempotent."""
        if self._presence.is_closed:
            return
        self._line.hurry()
        with suppress(StoreError):  # others may take over what could not be released
            self._nodes.release_many(self._nodes.leases())
        self._presence.close()
        self._line.close()

    def _read(self, session: str, work: Callable[[Sql], T], *, is_one_moment: bool = False) -> T:
        check_identifier("session", session)
        if not is_one_moment:
            return self._line.run(work)

        def read(raw: Raw) -> T:
            with raw.transaction():
                raw.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(raw)

        return self._line.run(read)

    def _look(self, work: Callable[[Sql], T], nothing: T) -> T:
        return self._line.run(work)

    def _write(self, work: Callable[[Sql], T]) -> T:
        def write(raw: Raw) -> T:
            with raw.transaction():
                return work(raw)

        return self._line.run(write)

    @property
    def _is_over(self) -> bool:
        return self._presence.is_closed

    def _inbox(self, connection: Sql, session: str) -> tuple[Posted, ...]:
        return tables.read_inbox(connection, session)

    def _found(self, connection: Sql, text: str) -> list[tuple[str, StoredEntry]]:
        return tables.search_entries(connection, text)

    def _forget_replies(self, before: float) -> None:
        self._line.run(lambda raw: tables.forget_replies(raw, before))

    def _owners(self, condition: str, *values: str) -> dict[str, Owner]:
        """Map sessions to live owners; one that seems dead gets the grace to show that it lives.

        Sessions without an owner may be deleted: a connection that was just reset must not look like one.
        """
        query = (
            f"SELECT session, pid, node, since, host, node IN ({SEEN}) FROM home.sessions"
            f" JOIN home.nodes USING (node) WHERE {condition} AND node IN ({LIVE})"
        )
        found = self._line.rows(query, *values)
        if not all(is_seen for *_, is_seen in found) and (grace := self._nodes.suspects()):
            time.sleep(grace)
            found = self._line.rows(query, *values)
        return {
            session: Owner(pid=pid, node=node, started=since, host=host)
            for session, pid, node, since, host, _ in found
        }

    def _round_trip(self, node: str) -> float | None:
        """Time a ring from this process to itself, through the server; none if it cannot listen."""
        self.wait(node, 0.0)
        if not self.can_listen:
            return None
        began = time.monotonic()
        self._nodes.ring(node, "")
        self.wait(node, _NOTIFY_TIMEOUT)
        return time.monotonic() - began

    def _unread(self, node: str) -> list[str]:
        """Let the node be rung again, and then read: what came before that is found."""
        self._line.rows("UPDATE home.nodes SET is_rung = false WHERE node = %s AND is_rung", node)
        return self._line.run(lambda raw: tables.unread_sessions(raw, node))
