"""The tables of the SQLite database: their migrations, and the access that only SQLite has.

The functions of access run inside a transaction of the caller (`database.py`); none commits. `sql.py`
has those that PostgreSQL runs, too.

`PRAGMA user_version` counts the migrations that were applied, from `NEVER_RELEASED` on; each is one step
from version n to n+1 and runs in one transaction with the change of that number. Never edit a
migration that was released: add one. `application_id` tells our file from any other SQLite database.

`sessions.seq` is the last sequence number of the session, `head` the hash of that entry (`chain.py`),
`epoch` the number of its claims, `node` the owner to ring. A consumed message keeps its row, emptied, for
`ANSWERS_KEPT` seconds with its reply; for ever when it has a client id: the same id must not run twice,
however late it comes again.
`AUTOINCREMENT` keeps message ids rising when rows go. The tables of nodes are in `node_tables.py`.
"""

import json
from collections.abc import Sequence

from ..machines.errors import StoreDamaged, StoreError, StoreTooNew, StoreTooOld
from . import sql
from .chain import Linked, chained
from .connection import Connection
from .encoding import EncodedCommit, encode_row, listing_of, posted, readable_entries
from .sql import Sql
from .store import (
    Lease,
    Posted,
    SessionRow,
    StoredEntry,
    missing_message,
    session_exists,
    unknown_session,
)

APPLICATION_ID = 0x53545253  # "STRS"

NEVER_RELEASED = 1
"""The newest version that was never released: journals of it cannot be read any more."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE sessions (
        session TEXT PRIMARY KEY NOT NULL,
        epoch   INTEGER NOT NULL DEFAULT 0,
        node    TEXT NOT NULL DEFAULT '',
        seq     INTEGER NOT NULL DEFAULT 0,
        updated REAL NOT NULL,
        row     TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE entries (
        session TEXT NOT NULL REFERENCES sessions,
        seq     INTEGER NOT NULL,
        time    REAL NOT NULL,
        data    TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;
    CREATE TABLE snapshots (
        session TEXT NOT NULL REFERENCES sessions,
        seq     INTEGER NOT NULL,
        state   TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    );
    CREATE TABLE inbox (
        id        INTEGER PRIMARY KEY AUTOINCREMENT,
        session   TEXT NOT NULL REFERENCES sessions,
        lane      INTEGER NOT NULL,
        client_id TEXT NOT NULL,
        time      REAL NOT NULL,
        message   TEXT NOT NULL,
        consumed  INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX inbox_client ON inbox (session, client_id) WHERE client_id <> '';
    CREATE INDEX inbox_unread ON inbox (session, lane, id) WHERE consumed = 0;
    """,
    """
    CREATE TABLE watches (
        schedule TEXT PRIMARY KEY NOT NULL,
        timing   TEXT NOT NULL,
        upto     REAL NOT NULL,
        floor    REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE occurrences (
        schedule TEXT NOT NULL,
        planned  REAL NOT NULL,
        state    TEXT NOT NULL,
        session  TEXT NOT NULL,
        noted    REAL NOT NULL,
        reason   TEXT NOT NULL,
        count    INTEGER NOT NULL,
        PRIMARY KEY (schedule, planned)
    ) WITHOUT ROWID;
    """,
    "-- From here on snapshots are compressed and name ranges of entries: nothing older reads them.",
    """
    ALTER TABLE sessions ADD COLUMN root TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN place TEXT NOT NULL DEFAULT '';
    WITH RECURSIVE
        known AS MATERIALIZED (
            SELECT session, CASE WHEN json_valid(row) THEN row ->> '$.parent' ELSE '' END AS parent
            FROM sessions
        ),
        family AS (
            SELECT session, session AS root FROM known
            WHERE parent IS NULL OR parent NOT IN (SELECT session FROM sessions)
            UNION
            SELECT known.session, family.root FROM family JOIN known ON known.parent = family.session
        )
    UPDATE sessions SET root = family.root FROM family WHERE family.session = sessions.session;
    UPDATE sessions SET root = session WHERE root = '';
    CREATE INDEX sessions_root ON sessions (root);
    CREATE INDEX sessions_node ON sessions (node) WHERE node <> '';
    ALTER TABLE inbox ADD COLUMN reply TEXT;
    ALTER TABLE inbox ADD COLUMN settled REAL NOT NULL DEFAULT 0;
    CREATE INDEX inbox_settled ON inbox (settled)
        WHERE consumed = 1 AND (client_id = '' OR reply IS NOT NULL);
    CREATE TABLE nodes (
        node     TEXT PRIMARY KEY NOT NULL,
        place    TEXT NOT NULL,
        host     TEXT NOT NULL,
        pid      INTEGER NOT NULL,
        capacity INTEGER NOT NULL,
        state    TEXT NOT NULL,
        since    REAL NOT NULL,
        beat     REAL NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE sessions ADD COLUMN head BLOB NOT NULL DEFAULT x'';
    ALTER TABLE entries ADD COLUMN hash BLOB NOT NULL DEFAULT x'';
    """,
    """
    ALTER TABLE sessions ADD COLUMN folder TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN name TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN hour INTEGER;
    ALTER TABLE sessions ADD COLUMN has_work INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX sessions_hour ON sessions (hour);
    CREATE INDEX sessions_folder ON sessions (folder, hour);
    CREATE INDEX sessions_name ON sessions (name) WHERE name <> '';
    CREATE INDEX sessions_work ON sessions (hour) WHERE has_work = 1;
    """,
)


def check_version(connection: Connection, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Return how many migrations the database has had, 0 for an empty one. Changes nothing.

    Raises `StoreTooNew` for a later version, `StoreTooOld` for one from before the first release, and
    `StoreDamaged` for a file of another program.
    """
    found = connection.rows(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)"
        " FROM pragma_user_version, pragma_application_id"
    )
    version, application, tables = found[0]
    if (version or tables) and application != APPLICATION_ID:
        raise StoreDamaged(
            f"`{connection.name}` is a database of another program",
            "Move it away; nothing in it was changed.",
        )
    if 0 < version <= NEVER_RELEASED:
        raise StoreTooOld(
            f"`{connection.name}` is from before the first release, and can't be read any more",
            "Move its folder away, or set STEERSMAN_HOME to another; nothing in it was changed.",
        )
    known = NEVER_RELEASED + len(migrations)
    if version > known:
        raise StoreTooNew(
            f"`{connection.name}` has version {version}; this program knows versions up to {known}",
            "Install the newest steersman, or set STEERSMAN_HOME to another folder.",
        )
    return max(0, int(version) - NEVER_RELEASED)


def check_readable(connection: Connection, migrations: Sequence[str] = MIGRATIONS) -> bool:
    """Whether there is anything to read; raises `StoreError` if it must be upgraded first."""
    version = check_version(connection, migrations)
    if 0 < version < len(migrations):
        raise StoreError(
            f"`{connection.name}` was written by an earlier version of this program",
            "Run a command that writes, such as `steersman chat`, which upgrades it.",
        )
    return version > 0


def migrate(connection: Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring the database to today's version, all steps in one transaction, or change nothing."""
    if check_version(connection, migrations) == len(migrations):
        return
    with connection.writing():
        # Another process may have been faster: look again under the write lock.
        for step in range(check_version(connection, migrations), len(migrations)):
            connection.change(migrations[step])
        sql.complete_listings(connection)
        connection.change(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.change(f"PRAGMA user_version = {NEVER_RELEASED + len(migrations)}")


# Access to one session ----------------------------------------------------------------------------


def insert_session(connection: Connection, row: SessionRow) -> None:
    """Add a session with an empty journal; raises `StoreError` if the id is taken.

    It belongs to the family of its parent, and is in its place unless it names another.
    """
    above = connection.row("SELECT root, place FROM sessions WHERE session = ?", row.parent)
    root, place = above or (row.session, "")
    added = connection.change(
        "INSERT INTO sessions (session, updated, row, root, place, folder, name, hour, has_work)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        row.session,
        row.updated,
        encode_row(row),
        root,
        row.place or place,
        *listing_of(row),
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
    """Take the session from its owner, unless the epoch moved."""
    connection.change(
        "UPDATE sessions SET node = '' WHERE session = ? AND epoch = ?", session, epoch
    )


def write_commits(
    connection: Connection, commits: Sequence[EncodedCommit], now: float
) -> list[bool]:
    """Write a group; False, and nothing written, for each whose lease is no longer the session's.

    Raises `MachineError` if one does not follow its journal: then the transaction must not commit.
    """
    written = [_write_row(connection, commit) for commit in commits]
    connection.change_many(
        "INSERT INTO entries (session, seq, time, data, hash) VALUES (?, ?, ?, ?, ?)",
        [
            (commit.lease.session, *linked)
            for commit, links in zip(commits, written, strict=True)
            for linked in links or ()
        ],
    )
    results = [links is not None for links in written]
    for commit in (commit for commit, is_kept in zip(commits, results, strict=True) if is_kept):
        if commit.consumed:
            _consume(connection, commit.lease.session, commit.consumed, now)
        if commit.snapshot is not None:
            sql.write_snapshot(connection, commit.lease.session, commit.snapshot)
    return results


def insert_message(
    connection: Connection,
    session: str,
    lane: int,
    client_id: str,
    time: float,
    message: str,
) -> tuple[int, str, str]:
    """Put a message into the inbox, once for a client id; return its id, the owner, and the place."""
    owner = connection.row("SELECT node, place FROM sessions WHERE session = ?", session)
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
    return added[0], *owner


def read_inbox(connection: Sql, session: str) -> tuple[Posted, ...]:
    """Read the unread messages, by lane and then by id."""
    found = connection.rows(
        "SELECT id, lane, message, client_id, time FROM inbox"
        " WHERE session = ? AND consumed = 0 ORDER BY lane, id",
        session,
    )
    return posted(session, found)


def write_reply(connection: Connection, lease: Lease, id: int, reply: str, now: float) -> bool:
    """Answer a message, unless it is answered; False if the lease is lost."""
    held = connection.row(
        "SELECT session FROM sessions WHERE session = ? AND epoch = ? AND node = ?",
        lease.session,
        lease.epoch,
        lease.node,
    )
    if held is None:
        return False
    changed = connection.change(
        "UPDATE inbox SET consumed = 1, message = '', reply = ifnull(reply, ?), settled = ?"
        " WHERE id = ? AND session = ?",
        reply,
        now,
        id,
        lease.session,
    )
    if not changed:
        raise missing_message(lease.session, id)
    return True


def has_old_replies(connection: Connection, before: float) -> bool:
    """Whether messages were settled before that time that need not be kept."""
    found = connection.row(
        "SELECT 1 FROM inbox WHERE settled < ? AND consumed = 1"
        " AND (client_id = '' OR reply IS NOT NULL) LIMIT 1",
        before,
    )
    return found is not None


def forget_replies(connection: Connection, before: float) -> None:
    """Drop what was settled before that time; a message with a client id stays known."""
    connection.change(
        "DELETE FROM inbox WHERE settled < ? AND consumed = 1 AND client_id = ''", before
    )
    connection.change(
        "UPDATE inbox SET reply = NULL WHERE settled < ? AND consumed = 1 AND reply IS NOT NULL",
        before,
    )


def unread_sessions(connection: Sql, node: str) -> list[str]:
    """List the sessions of a node that have unread messages."""
    found = connection.rows(
        "SELECT DISTINCT session FROM inbox CROSS JOIN sessions USING (session)"
        " WHERE consumed = 0 AND node = ? ORDER BY session",
        node,
    )
    return [session for (session,) in found]


def _write_row(connection: Connection, commit: EncodedCommit) -> list[Linked] | None:
    """Count the entries and show the row; return the entries with hashes, none if the lease is lost."""
    lease = commit.lease
    found = connection.row(
        "SELECT seq, head FROM sessions WHERE session = ? AND epoch = ? AND node = ?",
        lease.session,
        lease.epoch,
        lease.node,
    )
    if found is None:
        return None
    last, head = found
    links = chained(head, lease.session, commit.entries)
    connection.change(
        "UPDATE sessions SET seq = ?, head = ?, updated = ?, row = ?, folder = ?, name = ?, hour = ?,"
        " has_work = ? WHERE session = ?",
        commit.check_follows(last),
        links[-1][3] if links else head,
        commit.updated,
        commit.row,
        *commit.listing,
        lease.session,
    )
    return links


def _consume(
    connection: Connection, session: str, read: Sequence[tuple[int, str | None]], now: float
) -> None:
    """Empty messages that were read, and keep the replies to them."""
    for id, reply in read:
        changed = connection.change(
            "UPDATE inbox SET consumed = 1, message = '', reply = ?, settled = ?"
            " WHERE id = ? AND session = ? AND consumed = 0",
            reply,
            now,
            id,
            session,
        )
        if not changed:
            raise missing_message(session, id)


# Access to all sessions, deletion -----------------------------------------------------------------


def read_nodes(connection: Connection) -> dict[str, list[str]]:
    """List the sessions that each node claimed and did not release."""
    found: dict[str, list[str]] = {}
    for session, node in connection.rows("SELECT session, node FROM sessions WHERE node <> ''"):
        found.setdefault(node, []).append(session)
    return found


def search_entries(connection: Sql, text: str) -> list[tuple[str, StoredEntry]]:
    """Find the entries that hold a text as JSON writes it, newest session first."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    for char in "\\%_":
        written = written.replace(char, f"\\{char}")
    found = connection.rows(
        "SELECT entries.session, entries.seq, time, data FROM entries JOIN sessions USING (session)"
        " WHERE data LIKE ? ESCAPE '\\' ORDER BY sessions.updated DESC, session, entries.seq",
        f"%{written}%",
    )
    return readable_entries(found)
