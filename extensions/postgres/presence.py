"""How a process shows in a PostgreSQL home that it lives, and how it is woken: a connection and a thread.

The connection holds one advisory lock, (the home's number, a number of the process), and listens. The
thread renews the rows of the process's nodes a few times in each lease. A node is dead when its row was
not renewed for the lease that stands in it; or when its lock is free and was taken in this run of the
server, and still is so a 20th of the lease after another process found it free. The run counts because
after a restart or a promotion no lock is held by anybody. The 20th, the grace, lets a process whose
connection was reset take its lock again. A process that finds the lock of one on its own host free
waits for the lease as long as that process is there: a signal may have stopped it. All times are the
server's: the clocks of the hosts do not matter.

Behind a transaction pooler there are neither locks nor notifications: then the row alone tells who
lives, and `wait` looks into the inbox several times a second.
"""

import contextlib
import threading
import time
from collections.abc import Generator
from typing import Any

import psycopg
from msgspec import Struct
from msgspec.structs import replace

from ...journal.lock import this_process
from ...machines.errors import ConnectionLost, StoreBusy, StoreError
from .connection import PostgresAddress, PostgresConnection, Raw

GRACE = "(lease / 20)"
"""Seconds for which the lock of a row's node has to be free before the node counts as dead."""
POLL = 0.2
"""Seconds between two looks into the inbox where nothing can be listened to."""
_BEATS = 4  # in each lease

_LOCKED = (
    "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
    " AND classid::bigint = (SELECT number FROM home.about)"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_RUN = "pg_postmaster_start_time()::text"
LATE = "beat < clock_timestamp() - lease * interval '1 second'"
UNLOCKED = f"(incarnation = {_RUN} AND lock::bigint NOT IN ({_LOCKED}))"
DEAD = (
    f"({LATE} OR ({UNLOCKED} AND"
    f" coalesce(suspected < clock_timestamp() - {GRACE} * interval '1 second', false)))"
)
"""Holds for the row of a node whose sessions others may take; one that was not suspected is not dead."""
LIVE = f"SELECT node FROM home.nodes WHERE NOT {DEAD}"
"""The nodes whose sessions they may not take."""
SEEN = f"SELECT node FROM home.nodes WHERE NOT ({LATE} OR {UNLOCKED})"
"""The nodes that are shown as alive."""


class _Node(Struct, kw_only=True):
    """What the row of a node of this process says, and what was noticed of it."""

    place: str = ""
    capacity: int = 0
    is_joined: bool = False
    is_lost: bool = False
    is_woken: bool = False
    has_waited: bool = False


_WRITE = f"""
WITH given AS (
    SELECT * FROM unnest(%s::text[], %s::text[], %s::int[], %s::boolean[])
    AS given (node, place, capacity, is_joined)
), before AS (
    SELECT known.node, known.is_lost OR {LATE} AS was_lost
    FROM home.nodes AS known JOIN given USING (node)
), written AS (
    INSERT INTO home.nodes (node, place, host, pid, capacity, state, is_joined, since, beat, lease,
        incarnation, lock)
    SELECT node, place, %s, %s, capacity, 'active', is_joined, %s, clock_timestamp(), %s,
        CASE WHEN %s THEN {_RUN} ELSE '' END, %s
    FROM given
    ON CONFLICT (node) DO UPDATE SET place = excluded.place, capacity = excluded.capacity,
        host = excluded.host, pid = excluded.pid, is_joined = excluded.is_joined,
        beat = excluded.beat, lease = excluded.lease, lock = excluded.lock,
        incarnation = excluded.incarnation, suspected = NULL, is_lost = false
    WHERE nodes.lock = excluded.lock OR nodes.node NOT IN ({LIVE})
    RETURNING node
)
SELECT given.node, written.node IS NOT NULL, coalesce(before.was_lost, false)
FROM given LEFT JOIN written USING (node) LEFT JOIN before USING (node)
"""
"""Renews the rows of this process; a row of a live process elsewhere stays."""


class PostgresPresence:
    """The nodes of this process in a home. The thread begins with the first of them.

    `data` is the connection of the store, on which rows are written that no thread may wait for.
    """

    def __init__(self, data: PostgresConnection, lease: float, fence: float) -> None:
        self._lease = lease
        self._fence = fence
        self._data = data
        self._line = PostgresConnection(data.address, fence, self._prepare)
        self._nodes: dict[str, _Node] = {}
        self._changed = threading.Condition()
        self._beating = threading.Lock()
        self._thread: threading.Thread | None = None
        self._lock = 0
        self.is_closed = False
        self.can_listen = True

    def enter(
        self, node: str, place: str = "", capacity: int = 0, *, is_joined: bool = False
    ) -> None:
        """Make a node known to others; one that joins says what it takes. Idempotent.

        Raises `StoreBusy` if a live process has the id.
        """
        self._begin()
        with self._changed:
            known = self._nodes.get(node)
            if known is not None and not is_joined:
                return
            before = self._nodes.get(node, _Node())
            self._nodes[node] = replace(before, place=place, capacity=capacity, is_joined=is_joined)
        if node not in self._beat(self._data):
            with self._changed:
                del self._nodes[node]
            raise StoreBusy(
                f"node `{node}` is a live process elsewhere", "Give each process its own id."
            )

    def beat(self, node: str) -> bool:
        """Renew the rows now; False if others may have taken over what the node owned since the last."""
        self._beat(self._data)
        with self._changed:
            known = self._nodes.get(node)
            if known is None:
                return False
            was_lost, known.is_lost = known.is_lost, False
            return known.is_joined and not was_lost

    def leave(self, node: str) -> None:
        """Take no more sessions: the node goes on as a process that owns what it owns."""
        with self._changed:
            if node not in self._nodes:
                return
            self._nodes[node].is_joined = False
        self._beat(self._data)

    def is_first_wait(self, node: str) -> bool:
        """Whether the node is about to wait for the first time."""
        self.enter(node)
        with self._changed:
            known = self._nodes[node]
            is_first, known.has_waited = not known.has_waited, True
            if is_first:
                known.is_woken = False
            return is_first

    def wait(self, node: str, timeout: float) -> bool:
        """Block until the node is woken, for `timeout` seconds at most; whether it was."""
        with self._changed:
            self._changed.wait_for(lambda: self._nodes[node].is_woken or self.is_closed, timeout)
            known = self._nodes[node]  # a node that joins again has a new one
            was_woken, known.is_woken = known.is_woken, False
            return was_woken

    def wake(self) -> None:
        """Wake all threads that wait: something may have been missed."""
        with self._changed:
            for known in self._nodes.values():
                known.is_woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Remove the rows of the process and let go of its lock; leases were released before."""
        with self._changed:
            self.is_closed = True
            nodes = list(self._nodes)
            self._changed.notify_all()
        self._line.close(is_cut=True)
        if self._thread is not None:
            self._thread.join()
        if nodes:
            with contextlib.suppress(StoreError):
                self._data.rows("DELETE FROM home.nodes WHERE node = ANY(%s)", nodes)

    def _begin(self) -> None:
        """Take the process's lock and start the thread, once."""
        with self._changed:
            if self._thread is not None or self.is_closed:
                return
        with self._bounded():
            self._line.run(lambda raw: None)
        with self._changed:
            if self._thread is None and not self.is_closed:
                self._thread = threading.Thread(
                    target=self._run, name="journal-presence", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        """Pass on notifications and renew the rows until the end, also when the server was away."""
        pause = self._lease / _BEATS
        while not self.is_closed:
            try:
                with self._bounded():
                    self._line.run(lambda raw: None)
                with contextlib.suppress(ConnectionLost):  # the next one is made below
                    self._line.run(lambda raw: self._listen(raw, pause), is_repeatable=False)
                with self._bounded():
                    self._beat(self._line)
            except StoreError:
                self._pause(POLL)
            self._data.cut_if_stuck(self._fence)

    @contextlib.contextmanager
    def _bounded(self) -> Generator[None]:
        """Cut each connection that is stuck for `fence` seconds while the block runs.

        A primary whose synchronous replica is gone answers no write, and keeps what that had locked.
        """
        is_over = threading.Event()

        def cut() -> None:
            while not is_over.wait(self._fence):
                self._line.cut()
                self._data.cut_if_stuck(self._fence)

        threading.Thread(target=cut, name="journal-late", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()

    def _listen(self, raw: Raw, seconds: float) -> None:
        if self.is_closed or not self.can_listen:
            self._pause(seconds)
            return
        for _ in raw.raw.notifies(timeout=seconds, stop_after=1):
            self.wake()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, seconds)

    def _beat(self, line: PostgresConnection) -> set[str]:
        """Write all rows, and return whose are ours; notice which could have been taken to be dead.

        A second thread waits, lest older rows are written over newer ones; but not long for a connection
        that is stuck.
        """
        is_alone = self._beating.acquire(timeout=self._fence / 2)
        try:
            return self._write(line)
        finally:
            if is_alone:
                self._beating.release()

    def _write(self, line: PostgresConnection) -> set[str]:
        with self._changed:
            rows = [
                (node, known.place, known.capacity, known.is_joined)
                for node, known in self._nodes.items()
            ]
        if not rows or self.is_closed:
            return set()
        process = this_process("", time.time())
        found = line.rows(
            _WRITE,
            *([row[at] for row in rows] for at in range(4)),
            *(process.host, process.pid, process.started, self._lease),
            *(self.can_listen, self._lock),
        )
        with self._changed:
            for node, is_ours, was_lost in found:
                if node in self._nodes and (was_lost or not is_ours):
                    self._nodes[node].is_lost = True
        return {node for node, is_ours, _ in found if is_ours}

    def _prepare(self, raw: Any) -> None:
        """Take the lock with a new connection, and listen; what was missed meanwhile wakes all."""
        own = Raw(raw, self._line.address.schema)
        if not self._lock:
            ((self._lock,),) = own.rows("SELECT nextval('home.locks')::int")
        self.can_listen = self.can_listen and is_lasting(raw, self._line.address)
        if self.can_listen:
            # The server process of the lost connection may still hold the lock.
            own.rows(f"SET lock_timeout = {max(1, round(1000 * self._fence))}")
            own.rows("SELECT pg_advisory_lock((SELECT number FROM home.about), %s)", self._lock)
            own.rows(f"LISTEN {channel(own.schema, self._lock)}")
            own.rows(
                f"UPDATE home.nodes SET suspected = NULL, incarnation = {_RUN} WHERE lock = %s",
                self._lock,
            )
            own.rows("RESET lock_timeout")
        self.wake()


def channel(schema: str, lock: int) -> str:
    """Return the name of the channel on which a process listens."""
    return f'"{schema}-{lock}"'


def is_lasting(raw: Any, address: PostgresAddress) -> bool:
    """Whether a connection keeps its server process between transactions; a transaction pooler does not.

    A second connection begins a transaction meanwhile: such a pooler either gives it the process of the
    first one, or the first one another. Without a pooler, the process has the number that it began with.
    """

    def process(connection: Any) -> int:
        return int(connection.execute("SELECT pg_backend_pid()").fetchone()[0])

    before = process(raw)
    if before == raw.info.backend_pid:
        return True
    raw.prepare_threshold = None
    with psycopg.connect(address.conninfo, prepare_threshold=None) as other:
        return process(other) != before and process(raw) == before
