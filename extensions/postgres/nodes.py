"""The nodes of a PostgreSQL home, and the claims of sessions; `presence.py` says who lives."""

import threading
import time
from collections.abc import Sequence

from ...journal.lock import host_name, is_running
from ...journal.store import Lease, NodeRow, NodeState, check_identifier, unknown_session
from ...machines.errors import ConnectionLost
from .connection import PostgresConnection, Raw
from .presence import DEAD, GRACE, LIVE, SEEN, UNLOCKED, PostgresPresence

_RUNG_AT_ONCE = 8  # nodes of a place that are woken for a message that has no owner

_RING = f"""
WITH chosen AS (
    SELECT node FROM home.nodes
    WHERE NOT is_rung AND CASE WHEN %s IN ({SEEN}) THEN node = %s
        ELSE is_joined AND state = 'active' AND (place = %s OR %s = '') END
    ORDER BY random() LIMIT {_RUNG_AT_ONCE}
), rung AS (
    UPDATE home.nodes AS known SET is_rung = true FROM chosen WHERE known.node = chosen.node
    RETURNING lock
)
SELECT pg_notify(%s || '-' || lock, '') FROM rung
"""
"""Notifies the owner, or nodes that may take the session; one that was and has not looked yet is not."""

_CLAIM_MANY = f"""
WITH live AS MATERIALIZED ({LIVE}), mail AS MATERIALIZED (
    SELECT session, min(id) AS first FROM home.inbox WHERE NOT consumed GROUP BY session
), wanted AS MATERIALIZED (
    SELECT root, min(first) AS first FROM (
        SELECT root, first FROM mail JOIN home.sessions USING (session)
        UNION ALL SELECT root, NULL FROM home.sessions
        WHERE node <> '' AND node NOT IN (SELECT node FROM live)
    ) AS causes GROUP BY root
), owned AS MATERIALIZED (
    SELECT DISTINCT root FROM home.sessions WHERE node <> '' AND node IN (SELECT node FROM live)
), families AS MATERIALIZED (
    SELECT top.session AS root FROM home.sessions AS top JOIN wanted ON wanted.root = top.session
    WHERE top.place IN (%s, '') AND top.session NOT IN (SELECT root FROM owned)
    ORDER BY wanted.first NULLS LAST, top.session LIMIT %s FOR UPDATE OF top SKIP LOCKED
), lost AS (
    UPDATE home.nodes SET is_lost = true
    WHERE NOT is_lost AND node NOT IN (SELECT node FROM live)
)
UPDATE home.sessions AS member SET epoch = member.epoch + 1, node = %s
FROM families WHERE member.root = families.root
    AND (member.node = '' OR member.node NOT IN (SELECT node FROM live))
    AND (member.node <> '' OR member.state <> 'finalized'
        OR member.session IN (SELECT session FROM mail))
RETURNING member.session, member.epoch
"""


class PostgresNodes:
    """See `store.Nodes` for each method. `held` are the leases of this process."""

    def __init__(self, line: PostgresConnection, presence: PostgresPresence) -> None:
        self._line = line
        self._presence = presence
        self._held: dict[str, Lease] = {}
        self._mutex = threading.Lock()  # of the dictionary
        self._claiming = threading.Lock()  # what a node owns and does not hold, it just claimed

    def join(self, node: str, place: str, capacity: int) -> None:
        """Enter this process; rows of dead nodes that own nothing go."""
        check_identifier("node", node)
        self._presence.enter(node, place, capacity, is_joined=True)

        def tidy(raw: Raw) -> None:
            raw.change("UPDATE home.nodes SET state = 'active' WHERE node = %s", node)
            raw.change(
                f"DELETE FROM home.nodes AS gone WHERE {DEAD} AND NOT EXISTS"
                " (SELECT 1 FROM home.sessions WHERE node = gone.node)"
            )

        self._line.run(tidy)

    def beat(self, node: str) -> bool:
        """Renew the row."""
        check_identifier("node", node)
        return self._presence.beat(node)

    def direct(self, node: str, state: NodeState) -> bool:
        """Set a node's state, and ring it."""
        check_identifier("node", node)
        found = self._line.rows(
            "UPDATE home.nodes SET state = %s WHERE node = %s AND is_joined RETURNING node",
            state,
            node,
        )
        self.ring(node, "")
        return bool(found)

    def leave(self, node: str) -> None:
        """Take no more sessions."""
        check_identifier("node", node)
        self._presence.leave(node)

    def rows(self) -> list[NodeRow]:
        """List the nodes, dead ones too."""
        found = self._line.rows(
            "SELECT node, place, host, pid, capacity, state, since,"
            f" extract(epoch FROM beat)::float8, incarnation, node IN ({SEEN}),"
            " (SELECT count(*) FROM home.sessions WHERE node = nodes.node)"
            " FROM home.nodes WHERE is_joined ORDER BY since, node"
        )
        names = NodeRow.__struct_fields__
        return [NodeRow(**dict(zip(names, row, strict=True))) for row in found]

    def claim_many(self, node: str, place: str, limit: int) -> list[Lease]:
        """Claim families; if the lock of a node is found free, after the grace that it has."""
        check_identifier("node", node)
        self._presence.enter(node)
        if limit <= 0:
            return []
        time.sleep(self.suspects())
        with self._claiming:
            found = self._many(node, place, limit)
            leases = [Lease(session=session, node=node, epoch=epoch) for session, epoch in found]
            return self._kept(sorted(leases, key=lambda lease: lease.session))

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Give sessions back."""
        with self._mutex:
            held = [lease for lease in leases if self._held.get(lease.session) == lease]
        if not held:
            return
        try:
            self._line.rows(
                "UPDATE home.sessions AS stored SET node = '' FROM"
                " unnest(%s::text[], %s::bigint[]) AS given (session, epoch)"
                " WHERE stored.session = given.session AND stored.epoch = given.epoch",
                [lease.session for lease in held],
                [lease.epoch for lease in held],
            )
        finally:
            with self._mutex:
                for lease in held:
                    self._held.pop(lease.session, None)

    def claim(self, session: str, node: str) -> Lease | None:
        """Take one session, or none if a live process owns it."""
        self._presence.enter(node)
        with self._claiming:
            lease = self._claimed(session, node)
            if lease is None and (grace := self.suspects(session)):
                time.sleep(grace)
                lease = self._claimed(session, node)
        return lease

    def leases(self) -> list[Lease]:
        """List what is held here."""
        with self._mutex:
            return list(self._held.values())

    def forget(self, lease: Lease) -> None:
        """Hold a lease no more, because its session is gone."""
        with self._mutex:
            self._held.pop(lease.session, None)

    def ring(self, node: str, place: str) -> None:
        """Notify the owner of a session, or nodes of its place if it has none that lives."""
        schema = self._line.address.schema
        self._line.rows(_RING, node, node, place, place, schema)

    def _claimed(self, session: str, node: str) -> Lease | None:
        """Raise the epoch of a session that is free, or is the node's by a claim without an answer."""
        with self._mutex:
            is_held = session in self._held

        def take(raw: Raw) -> list[tuple[object, ...]]:
            found = raw.rows(
                "WITH lost AS (UPDATE home.nodes SET is_lost = true"
                f"  WHERE NOT is_lost AND node NOT IN ({LIVE}))"
                " UPDATE home.sessions SET epoch = epoch + 1, node = %s WHERE session = %s"
                f" AND (node = '' OR (node = %s AND NOT %s) OR node NOT IN ({LIVE}))"
                " RETURNING epoch",
                *(node, session, node, is_held),
            )
            if not found and not raw.rows(
                "SELECT 1 FROM home.sessions WHERE session = %s", session
            ):
                raise unknown_session(session)
            return found

        found = self._line.run(take)
        leases = [Lease(session=session, node=node, epoch=int(str(epoch))) for (epoch,) in found]
        return self._kept(leases)[0] if leases else None

    def _many(self, node: str, place: str, limit: int) -> Sequence[tuple[str, int]]:
        """Run the claim; after a lost answer, only if it did not happen."""
        while True:
            try:
                return [
                    (session, epoch)
                    for session, epoch in self._line.change(_CLAIM_MANY, place, limit, node)
                ]
            except ConnectionLost:
                mine = "SELECT session, epoch FROM home.sessions WHERE node = %s"
                owned = self._line.rows(mine, node)
                with self._mutex:  # what the node owns and does not hold, it claimed
                    claimed = [(name, epoch) for name, epoch in owned if name not in self._held]
                if claimed:
                    return claimed

    def suspects(self, session: str = "") -> float:
        """Note whose locks are free; return the longest grace of those that own something.

        `session`: only of its owner. The grace is in seconds, 0 if there is nobody to wait for.

        The rows are locked before the locks are looked at: a node that takes its lock again meanwhile
        clears what is noted here after that, and not before. A process of this host that is there is not
        suspected: its connection was ended, and it may be stopped by a signal, with commands at work. Its
        lease tells.
        """

        def note(raw: Raw) -> list[tuple[object, ...]]:
            with raw.transaction():
                known = raw.rows("SELECT node, host, pid FROM home.nodes ORDER BY node FOR UPDATE")
                here = [
                    node for node, host, pid in known if host == host_name() and is_running(pid)
                ]
                return raw.rows(
                    "WITH cleared AS (UPDATE home.nodes SET suspected = NULL"
                    "  WHERE suspected IS NOT NULL AND node = ANY(%s)),"
                    " suspects AS (UPDATE home.nodes SET suspected = coalesce(suspected,"
                    f" clock_timestamp()) WHERE {UNLOCKED} AND node <> ALL(%s)"
                    f" RETURNING node, {GRACE} AS grace)"
                    " SELECT coalesce(max(grace), 0)::float8 FROM suspects"
                    " WHERE node IN (SELECT node FROM home.sessions WHERE session = %s OR %s = '')",
                    *(here, here, session, session),
                )

        ((grace,),) = self._line.run(note)
        return float(str(grace))

    def _kept(self, leases: list[Lease]) -> list[Lease]:
        with self._mutex:
            self._held.update((lease.session, lease) for lease in leases)
        return leases
