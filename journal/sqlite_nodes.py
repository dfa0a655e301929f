"""The nodes of a SQLite home: processes of this host, each alive as long as its wake-up socket is."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from msgspec.structs import replace

from ..machines.errors import StoreError
from . import node_tables, tables
from .lock import this_process
from .node_tables import Member
from .presence import Presence, SessionLock
from .sqlite_home import SqliteHome
from .store import Lease, NodeRow, NodeState, check_identifier


class SqliteNodes:
    """See `store.Nodes` for each method."""

    def __init__(self, home: SqliteHome, clock: Callable[[], float]) -> None:
        self._home = home
        self._clock = clock
        self._joined: set[str] = set()

    def join(self, node: str, place: str, capacity: int) -> None:
        """Bind the node's wake-up socket and write its row; rows of dead nodes go."""
        check_identifier("node", node)
        presence = self._home.present()
        with self._home.translated():
            presence.wake_socket(node)
        now, process = self._clock(), this_process(node, 0.0)
        row = NodeRow(
            node=node,
            place=place,
            host=process.host,
            pid=process.pid,
            capacity=capacity,
            since=now,
            beat=now,
        )
        gone = [known.node for known in self.rows() if not known.is_alive and not known.sessions]
        with self._home.writing() as connection:
            node_tables.delete_nodes(connection, gone)
            node_tables.insert_node(connection, row)
        self._joined.add(node)
        presence.ring(node)  # the first wait answers at once for what is unread

    def beat(self, node: str) -> bool:
        """Note the time, for display: the sockets and locks of this process say that it lives."""
        with self._home.writing(is_synced=False) as connection:
            return node_tables.update_beat(connection, node, self._clock())

    def direct(self, node: str, state: NodeState) -> bool:
        """Set a node's state, and ring it."""
        check_identifier("node", node)
        with self._home.writing() as connection:
            is_known = node_tables.update_state(connection, node, state)
        with suppress(OSError, StoreError):
            self._home.present().ring(node)
        return is_known

    def leave(self, node: str) -> None:
        """Remove the node's row; its socket stays for the sessions that it still owns."""
        self._joined.discard(node)
        with self._home.writing() as connection:
            node_tables.delete_nodes(connection, [node])

    def ring(self, place: str) -> None:
        """Ring the nodes that may take a session of a place."""
        with self._home.writable().reading() as connection:
            found = node_tables.read_nodes_at(connection, place)
        for node in found:
            self._home.present().ring(node)

    def close(self) -> None:
        """Leave with all nodes that joined here; a home that failed keeps their rows."""
        with suppress(StoreError):
            for node in tuple(self._joined):
                self.leave(node)

    def rows(self) -> list[NodeRow]:
        """List the nodes, dead ones too."""
        with self._home.looking() as connection:
            found = node_tables.read_node_rows(connection) if connection is not None else []
        presence = self._home.presence
        with self._home.translated():
            return [
                replace(row, is_alive=presence is not None and presence.is_bound(row.node))
                for row in found
            ]

    def claim_many(self, node: str, place: str, limit: int) -> list[Lease]:
        """Lock the sessions of families that need an owner, then raise their epochs together."""
        check_identifier("node", node)
        presence = self._home.present()
        with self._home.writable().reading() as connection:
            families = node_tables.read_families(connection, place)
            claimed = tables.read_nodes(connection)
        with self._home.translated():
            owned = presence.owners(claimed)
        locks: dict[str, SessionLock] = {}
        with ExitStack() as undo:
            for members in families.values():
                if limit <= 0:
                    break
                if not any(session in owned for session, _ in members):
                    taken = self._lock(presence, node, members, undo)
                    locks |= taken
                    limit -= bool(taken)
            with self._home.writing(is_synced=False) as connection:
                leases = [
                    Lease(
                        session=session,
                        node=node,
                        epoch=tables.raise_epoch(connection, session, node),
                    )
                    for session in locks
                ]
            undo.pop_all()
        for lease in leases:
            presence.keep(lease, locks[lease.session])
        return leases

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Take the owner out of all rows, then let go of the locks."""
        presence = self._home.presence
        held = [(lease, presence.drop(lease)) for lease in leases] if presence else []
        with ExitStack() as releasing:
            for _, lock in held:
                if lock is not None:
                    releasing.callback(lock.release)
            if not held or self._home.writable().has_failed:
                return  # reported where it failed; the locks are what others wait for
            with self._home.writing() as connection:
                for lease, lock in held:
                    if lock is not None:
                        tables.clear_owner(connection, lease.session, lease.epoch)

    def _lock(
        self, presence: Presence, node: str, members: Sequence[Member], undo: ExitStack
    ) -> dict[str, SessionLock]:
        """Lock all sessions of a family, or none: then a live process has one of them."""
        owner, taken = this_process(node, self._clock()), dict[str, SessionLock]()
        with ExitStack() as own, self._home.translated():
            for session, _ in members:
                lock = presence.take(session, owner)
                if lock is None:
                    return {}
                own.callback(lock.release)
                taken[session] = lock
            undo.push(own.pop_all().__exit__)
        return taken
