"""What is read from the tables and written to them, a function for each thought.

All of them run inside a transaction of the caller (`database.py`); none commits.
"""

from collections.abc import Sequence

from ..machines.errors import StoreDamaged
from .connection import Connection
from .encoding import EncodedCommit, decode, decode_row, encode_row
from .fault import missing_message, session_exists, unknown_session
from .store import Posted, SessionRow, Snapshot, StoredEntry

_SNAPSHOTS_KEPT = 3
_SNAPSHOT_GAP = 1000  # entries; of older snapshots the first in each stretch of so many is kept
LAST = (1 << 63) - 1  # greater than any sequence number


def insert_session(connection: Connection, row: SessionRow) -> None:
    """Add a session with an empty journal; raises `StoreError` if the id is taken."""
    added = connection.change(
        "INSERT INTO sessions (session, updated, row) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        row.session,
        row.updated,
        encode_row(row),
    )
    if not added:
        raise session_exists(row.session)


def raise_epoch(connection: Connection, session: str, node: str) -> int:
    """Make the node the owner under a new epoch, which is returned."""
    found = connection.row(
        "UPDATE sessions SET epoch = epoch + 1, node = ? WHERE session = ? RETURNING epoch",
        node,
        session,
    )
    if found is None:
        raise unknown_session(session)
    return int(found[0])


def clear_owner(connection: Connection, session: str, epoch: int) -> None:
    """Let nobody own the session, unless the epoch moved."""
    connection.change(
        "UPDATE sessions SET node = '' WHERE session = ? AND epoch = ?", session, epoch
    )


def write_commits(connection: Connection, commits: Sequence[EncodedCommit]) -> list[bool]:
    """Write a group; False, and nothing written, for each whose lease is no longer the session's.

    Raises `MachineError` if one does not follow its journal: then the transaction must not commit.
    """
    results = [_write_row(connection, commit) for commit in commits]
    kept = [commit for commit, is_kept in zip(commits, results, strict=True) if is_kept]
    connection.change_many(
        "INSERT INTO entries (session, seq, time, data) VALUES (?, ?, ?, ?)",
        [(commit.lease.session, *entry) for commit in kept for entry in commit.entries],
    )
    for commit in kept:
        _consume(connection, commit.lease.session, commit.consumed)
        if commit.snapshot is not None:
            _write_snapshot(connection, commit.lease.session, commit.snapshot)
    return results


def insert_message(
    connection: Connection,
    session: str,
    lane: int,
    client_id: str,
    time: float,
    message: str,
) -> tuple[int, str]:
    """Put a message into the inbox, once for a client id; give its id and the node to ring."""
    owner = connection.row("SELECT node FROM sessions WHERE session = ?", session)
    if owner is None:
        raise unknown_session(session)
    known = connection.row(
        "SELECT id FROM inbox WHERE session = ? AND client_id = ? AND client_id <> ''",
        session,
        client_id,
    )
    added = known or connection.row(
        "INSERT INTO inbox (session, lane, client_id, time, message) VALUES (?, ?, ?, ?, ?)"
        " RETURNING id",
        session,
        lane,
        client_id,
        time,
        message,
    )
    assert added is not None
    return added[0], owner[0]


def read_row(connection: Connection, session: str) -> SessionRow:
    """Read a session's row; raises `UnknownSession`."""
    found = connection.row("SELECT row, seq FROM sessions WHERE session = ?", session)
    if found is None:
        raise unknown_session(session)
    return decode_row(_what(connection, session, "the row"), *found)


def read_rows(connection: Connection) -> list[SessionRow]:
    """Read all rows, newest activity first."""
    found = connection.rows("SELECT session, row, seq FROM sessions ORDER BY updated DESC, session")
    return [
        decode_row(_what(connection, session, "the row"), row, seq) for session, row, seq in found
    ]


def last_seq(connection: Connection, session: str) -> int:
    """Give the last sequence number of a session; raises `UnknownSession`."""
    found = connection.row("SELECT seq FROM sessions WHERE session = ?", session)
    if found is None:
        raise unknown_session(session)
    return int(found[0])


def read_epoch(connection: Connection, session: str) -> int:
    """Give the epoch of a session's newest lease; raises `UnknownSession`."""
    found = connection.row("SELECT epoch FROM sessions WHERE session = ?", session)
    if found is None:
        raise unknown_session(session)
    return int(found[0])


def read_snapshot(connection: Connection, session: str, upto: int | None = None) -> Snapshot | None:
    """Read the newest snapshot, or the newest at or before entry `upto`."""
    found = connection.row(
        "SELECT seq, state FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
        session,
        LAST if upto is None else upto,
    )
    if found is None:
        return None
    return Snapshot(found[0], decode(_what(connection, session, "a snapshot"), found[1]))


def read_entries(
    connection: Connection, session: str, after: int, upto: int
) -> tuple[StoredEntry, ...]:
    """Read `after` < seq <= `upto`; raises `StoreDamaged` if one is missing."""
    found = connection.rows(
        "SELECT seq, time, data FROM entries WHERE session = ? AND seq > ? AND seq <= ?"
        " ORDER BY seq",
        session,
        after,
        upto,
    )
    if [seq for seq, _, _ in found] != list(range(after + 1, upto + 1)):
        raise StoreDamaged(
            f"{_what(connection, session, 'the journal')} lacks entries of {after + 1} to {upto}",
            "Restore the home from a copy; nothing was deleted.",
        )
    return tuple(
        StoredEntry(seq, time, decode(_what(connection, session, f"entry {seq}"), data))
        for seq, time, data in found
    )


def read_inbox(connection: Connection, session: str) -> tuple[Posted, ...]:
    """Read the unread messages, by lane and then by id."""
    found = connection.rows(
        "SELECT id, lane, message, client_id, time FROM inbox"
        " WHERE session = ? AND consumed = 0 ORDER BY lane, id",
        session,
    )
    return tuple(
        Posted(
            id,
            session,
            lane,
            decode(_what(connection, session, f"message {id}"), message),
            client_id,
            time,
        )
        for id, lane, message, client_id, time in found
    )


def unread_sessions(connection: Connection, node: str) -> list[str]:
    """List the sessions of a node that have unread messages."""
    found = connection.rows(
        "SELECT session FROM sessions WHERE node = ? AND EXISTS"
        " (SELECT * FROM inbox WHERE inbox.session = sessions.session AND consumed = 0)"
        " ORDER BY session",
        node,
    )
    return [session for (session,) in found]


def _write_row(connection: Connection, commit: EncodedCommit) -> bool:
    """Count the entries and show the row; False if the lease is lost."""
    lease, number = commit.lease, len(commit.entries)
    found = connection.row(
        "UPDATE sessions SET seq = seq + ?, updated = ?, row = ?"
        " WHERE session = ? AND epoch = ? AND node = ? RETURNING seq",
        number,
        commit.updated,
        commit.row,
        lease.session,
        lease.epoch,
        lease.node,
    )
    if found is not None:
        commit.check_follows(found[0] - number)
    return found is not None


def _consume(connection: Connection, session: str, ids: Sequence[int]) -> None:
    """Mark messages as read; a message with a client id stays known, the others go."""
    for id in ids:
        changed = connection.change(
            "UPDATE inbox SET consumed = 1, message = '' WHERE id = ? AND session = ?"
            " AND consumed = 0",
            id,
            session,
        )
        if not changed:
            raise missing_message(session, id)
        connection.change("DELETE FROM inbox WHERE id = ? AND client_id = ''", id)


def _write_snapshot(connection: Connection, session: str, snapshot: tuple[int, str]) -> None:
    connection.change(
        "INSERT OR REPLACE INTO snapshots (session, seq, state) VALUES (?, ?, ?)",
        session,
        *snapshot,
    )
    connection.change(
        "DELETE FROM snapshots WHERE session = ?1 AND seq NOT IN"
        " (SELECT seq FROM snapshots WHERE session = ?1 ORDER BY seq DESC LIMIT ?2) AND seq NOT IN"
        " (SELECT min(seq) FROM snapshots WHERE session = ?1 GROUP BY seq / ?3)",
        session,
        _SNAPSHOTS_KEPT,
        _SNAPSHOT_GAP,
    )


def _what(connection: Connection, session: str, part: str) -> str:
    """Name a part of a session and its file, for an error."""
    return f"`{connection.file}`: {part} of session `{session}`"
