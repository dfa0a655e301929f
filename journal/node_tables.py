"""The table of nodes in the SQLite database, and which families need an owner; see `tables.py`."""

from collections.abc import Sequence

from .connection import Connection
from .encoding import readable
from .store import NodeRow, NodeState

Member = tuple[str, str]
"""A session of a family, and the node that claimed it last; empty if that released it."""


def insert_node(connection: Connection, row: NodeRow) -> None:
    """Add a node, or replace the row of a dead one with its id."""
    connection.change(
        "INSERT OR REPLACE INTO nodes (node, place, host, pid, capacity, state, since, beat)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        row.node,
        row.place,
        row.host,
        row.pid,
        row.capacity,
        row.state,
        row.since,
        row.beat,
    )


def update_beat(connection: Connection, node: str, now: float) -> bool:
    """Note that a node lives; False if it has no row."""
    return bool(connection.change("UPDATE nodes SET beat = ? WHERE node = ?", now, node))


def update_state(connection: Connection, node: str, state: NodeState) -> bool:
    """Set a node's state; False if it has no row."""
    return bool(connection.change("UPDATE nodes SET state = ? WHERE node = ?", state, node))


def delete_nodes(connection: Connection, nodes: Sequence[str]) -> None:
    """Remove the rows of nodes."""
    for node in nodes:
        connection.change("DELETE FROM nodes WHERE node = ?", node)


def read_node_rows(connection: Connection) -> list[NodeRow]:
    """List the nodes, the longest there first, with how many sessions each claimed."""
    found = connection.rows(
        "SELECT node, place, host, pid, capacity, state, since, beat,"
        " (SELECT count(*) FROM sessions WHERE sessions.node = nodes.node)"
        " FROM nodes ORDER BY since, node"
    )
    names = ("node", "place", "host", "pid", "capacity", "state", "since", "beat", "sessions")
    return readable(NodeRow, names, found)


def read_nodes_at(connection: Connection, place: str) -> list[str]:
    """List the active nodes that may take a session of a place; of no place, all may."""
    found = connection.rows(
        "SELECT node FROM nodes WHERE state = 'active' AND (place = ?1 OR ?1 = '') ORDER BY since",
        place,
    )
    return [node for (node,) in found]


def read_families(connection: Connection, place: str) -> dict[str, list[Member]]:
    """Map the roots of a place's families that may need an owner to what is to be claimed of each.

    These are the families with unread messages, oldest first, and then those of which a node claimed
    something and did not release it. Whether that one lives is for the caller to find out.
    """
    found = connection.rows(
        "WITH mail AS (SELECT session, min(id) AS first FROM inbox WHERE consumed = 0 GROUP BY 1),"
        " wanted AS (SELECT root, min(first) AS first FROM ("
        "  SELECT root, first FROM mail CROSS JOIN sessions USING (session)"
        "  UNION ALL SELECT root, NULL FROM sessions WHERE node <> '') GROUP BY root)"
        " SELECT member.root, member.session, member.node FROM wanted"
        " CROSS JOIN sessions AS top ON top.session = wanted.root AND top.place IN (?, '')"
        " CROSS JOIN sessions AS member ON member.root = wanted.root"
        " WHERE member.node <> '' OR member.session IN (SELECT session FROM mail)"
        " OR CASE WHEN json_valid(member.row)"
        " THEN member.row ->> '$.state' END IS NOT 'finalized'"
        " ORDER BY wanted.first IS NULL, wanted.first, member.root, member.session",
        place,
    )
    families: dict[str, list[Member]] = {}
    for root, session, node in found:
        families.setdefault(root, []).append((session, node))
    return families
