"""The tables, and how an older database becomes today's.

`PRAGMA user_version` counts the migrations that were applied, from `NEVER_RELEASED` on; each is one step
from version n to n+1 and runs in one transaction with the change of that number. Never edit a
migration that was released: add one. `application_id` tells our file from any other SQLite database.

`sessions.seq` is the last sequence number of the session, `epoch` the number of its claims,
`node` the owner to ring. A consumed message keeps its row, emptied, when it has a client id:
the same id must not run twice, however late it comes again. `AUTOINCREMENT` keeps message ids
rising when rows go.
"""

from collections.abc import Sequence

from ..machines.errors import StoreDamaged, StoreError, StoreTooNew, StoreTooOld
from .connection import Connection

APPLICATION_ID = 0x53545253  # "STRS"

NEVER_RELEASED = 1
"""The newest version that nobody was given: such a journal says things that mean nothing any more."""

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
            f"`{connection.file}` is a database of another program",
            "Move it away; nothing in it was changed.",
        )
    if 0 < version <= NEVER_RELEASED:
        raise StoreTooOld(
            f"`{connection.file}` is from before the first release, and can't be read any more",
            "Move its folder away, or set STEERSMAN_HOME to another; nothing in it was changed.",
        )
    known = NEVER_RELEASED + len(migrations)
    if version > known:
        raise StoreTooNew(
            f"`{connection.file}` has version {version}; this program knows versions up to {known}",
            "Install the newest steersman, or set STEERSMAN_HOME to another folder.",
        )
    return max(0, int(version) - NEVER_RELEASED)


def check_readable(connection: Connection, migrations: Sequence[str] = MIGRATIONS) -> bool:
    """Whether there is anything to read; raises `StoreError` if it must be upgraded first."""
    version = check_version(connection, migrations)
    if 0 < version < len(migrations):
        raise StoreError(
            f"`{connection.file}` was written by an earlier version of this program",
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
        connection.change(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.change(f"PRAGMA user_version = {NEVER_RELEASED + len(migrations)}")
