"""What is read and written for all sessions at once: lists, searches, sizes, deletion.

Like `table.py`: all of it runs inside a transaction of the caller, none commits.
"""

import json

from ..machines.errors import LeaseLost
from .connection import Connection
from .encoding import decode
from .store import StoredEntry

_OF_SESSION = ("entries", "snapshots", "inbox")


def read_nodes(connection: Connection) -> dict[str, list[str]]:
    """List the sessions that each node claimed and did not give back."""
    found: dict[str, list[str]] = {}
    for session, node in connection.rows("SELECT session, node FROM sessions WHERE node <> ''"):
        found.setdefault(node, []).append(session)
    return found


def read_sizes(connection: Connection) -> dict[str, int]:
    """Add up what is stored of each session, in bytes of text."""
    sizes: dict[str, int] = {}
    for table, column in (("entries", "data"), ("snapshots", "state")):
        rows = connection.rows(f"SELECT session, sum(length({column})) FROM {table} GROUP BY 1")
        for session, size in rows:
            sizes[session] = sizes.get(session, 0) + int(size)
    return sizes


def search_entries(connection: Connection, text: str) -> list[tuple[str, StoredEntry]]:
    """Find the entries that hold a text as JSON writes it, newest session first."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    for char in "\\%_":
        written = written.replace(char, f"\\{char}")
    found = connection.rows(
        "SELECT entries.session, entries.seq, time, data FROM entries JOIN sessions USING (session)"
        " WHERE data LIKE ? ESCAPE '\\' ORDER BY sessions.updated DESC, session, entries.seq",
        f"%{written}%",
    )
    return [
        (session, StoredEntry(seq, time, decode(f"entry {seq} of `{session}`", data)))
        for session, seq, time, data in found
    ]


def delete_session(connection: Connection, session: str, epoch: int) -> None:
    """Delete every row of a session, and overwrite what they held. Raises `LeaseLost`."""
    connection.change("PRAGMA secure_delete = on")
    known = connection.row("SELECT epoch FROM sessions WHERE session = ?", session)
    if known is None or known[0] != epoch:
        raise LeaseLost(f"another program has taken session `{session}` over")
    for table in _OF_SESSION:
        connection.change(f"DELETE FROM {table} WHERE session = ?", session)
    connection.change("DELETE FROM sessions WHERE session = ?", session)


def thin_snapshots(connection: Connection, session: str) -> None:
    """Drop all but the newest snapshot of a session."""
    connection.change(
        "DELETE FROM snapshots WHERE session = ?1"
        " AND seq < (SELECT max(seq) FROM snapshots WHERE session = ?1)",
        session,
    )
