"""The statements that SQLite and PostgreSQL both run, one function for each kind of access.

They are written with `?` for a value and with `home.` before a table, which each connection replaces by
its own. `tables.py` has what only SQLite runs, `extensions/postgres/tables.py` what only PostgreSQL does.
The functions run inside a transaction of the caller, or are one statement; none commits.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ..machines.errors import StoreDamaged
from .chain import Linked
from .encoding import column_text, decode, decode_row, listing_of, readable
from .store import (
    EVERY,
    REMEMBERED,
    Occurrence,
    Position,
    RowFilter,
    SessionRow,
    Snapshot,
    StoredEntry,
    Watch,
    unknown_session,
)

_ROWS = "SELECT session, row, seq, root, place, updated FROM home.sessions"
_PAGE = 200  # rows read at once where not all are wanted
_SNAPSHOTS_KEPT = 3
_SNAPSHOT_GAP = 1000  # entries; of older snapshots the first in each stretch of so many is kept
LAST = (1 << 63) - 1  # greater than any sequence number


class Sql(Protocol):
    """A connection as these statements see it; `name` is that of the database, for errors."""

    @property
    def name(self) -> str:
        """Return the file or address."""
        ...

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement and read all its rows."""
        ...

    def row(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Run a statement and read its only row, or none."""
        ...

    def change(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        ...


# One session --------------------------------------------------------------------------------------


def read_row(sql: Sql, session: str) -> SessionRow:
    """Read a session's row; raises `UnknownSession`."""
    found = sql.row(f"{_ROWS} WHERE session = ?", session)
    if found is None:
        raise unknown_session(session)
    return decode_row(*found)


def read_position(sql: Sql, session: str) -> Position:
    """Read the newest lease and the last entry of a session; raises `UnknownSession`."""
    found = sql.row("SELECT epoch, node, seq, head FROM home.sessions WHERE session = ?", session)
    if found is None:
        raise unknown_session(session)
    epoch, node, seq, head = found
    return Position(epoch=epoch, node=node, seq=seq, head=head)


def read_snapshot(sql: Sql, session: str, upto: int = LAST) -> Snapshot | None:
    """Read the newest snapshot at or before entry `upto`."""
    found = sql.row(
        "SELECT seq, state FROM home.snapshots WHERE session = ? AND seq <= ?"
        " ORDER BY seq DESC LIMIT 1",
        session,
        upto,
    )
    if found is None:
        return None
    seq, state = found
    try:
        return Snapshot(seq=seq, state=decode(_what(sql, session, "a snapshot"), state))
    except StoreDamaged:  # the journal and an older one give the same state
        return read_snapshot(sql, session, seq - 1)


def read_entries(sql: Sql, session: str, after: int, upto: int) -> tuple[StoredEntry, ...]:
    """Read `after` < seq <= `upto`; raises `StoreDamaged` if one is missing."""
    found = sql.rows(
        "SELECT seq, time, data FROM home.entries WHERE session = ? AND seq > ? AND seq <= ?"
        " ORDER BY seq",
        session,
        after,
        upto,
    )
    if [seq for seq, _, _ in found] != list(range(after + 1, upto + 1)):
        raise StoreDamaged(
            f"{_what(sql, session, 'the journal')} lacks entries of {after + 1} to {upto}",
            "Restore the home from a copy; nothing was deleted.",
        )
    return tuple(
        StoredEntry(seq=seq, time=time, data=decode(_what(sql, session, f"entry {seq}"), data))
        for seq, time, data in found
    )


def read_links(sql: Sql, session: str, after: int, number: int) -> list[Linked]:
    """Read entries as they are stored, with their hashes; none that cannot be read fails."""
    return sql.rows(
        "SELECT seq, time, data, hash FROM home.entries WHERE session = ? AND seq > ?"
        " ORDER BY seq LIMIT ?",
        session,
        after,
        number,
    )


def write_snapshot(sql: Sql, session: str, snapshot: tuple[int, bytes]) -> None:
    """Keep a snapshot; the one that is no longer among the newest stays if it begins a stretch."""
    sql.change(
        "INSERT INTO home.snapshots (session, seq, state) VALUES (?, ?, ?)"
        " ON CONFLICT (session, seq) DO UPDATE SET state = excluded.state",
        session,
        *snapshot,
    )
    sql.change(
        "DELETE FROM home.snapshots AS old WHERE session = ? AND seq ="
        " (SELECT seq FROM home.snapshots WHERE session = old.session ORDER BY seq DESC"
        " LIMIT 1 OFFSET ?)"
        " AND EXISTS (SELECT 1 FROM home.snapshots WHERE session = old.session AND seq < old.seq"
        " AND seq >= old.seq - old.seq % ?)",
        session,
        _SNAPSHOTS_KEPT,
        _SNAPSHOT_GAP,
    )


def thin_snapshots(sql: Sql, session: str) -> None:
    """Drop all but the newest snapshot of a session."""
    sql.change(
        "DELETE FROM home.snapshots AS old WHERE session = ?"
        " AND seq < (SELECT max(seq) FROM home.snapshots WHERE session = old.session)",
        session,
    )


def delete_session(sql: Sql, session: str, epoch: int) -> bool:
    """Delete every row of a session; False, and nothing is deleted, if its epoch is another."""
    gone = sql.change("DELETE FROM home.sessions WHERE session = ? AND epoch = ?", session, epoch)
    if gone:
        for table in ("entries", "snapshots", "inbox"):
            sql.change(f"DELETE FROM home.{table} WHERE session = ?", session)
    return bool(gone)


def read_reply(sql: Sql, message: int) -> dict[str, Any] | None:
    """Read the reply to a message; none if there is none yet, or no longer."""
    found = sql.row("SELECT reply FROM home.inbox WHERE id = ? AND reply IS NOT NULL", message)
    return None if found is None else decode(f"the reply to message {message}", found[0])


def _what(sql: Sql, session: str, part: str) -> str:
    """Name a part of a session and where it is, for an error."""
    return f"`{sql.name}`: {part} of session `{session}`"


# All sessions -------------------------------------------------------------------------------------


def read_rows(sql: Sql, wanted: RowFilter = EVERY) -> list[SessionRow]:
    """Read the rows that are wanted, newest activity first."""
    terms, values = list[str](), list[str]()
    for column, text in (("folder", wanted.folder), ("name", wanted.name)):
        if text:
            terms.append(f"{column} = ?")
            values.append(column_text(text))
    if wanted.begins:
        terms.append("session >= ? AND session < ?")
        values += [column_text(wanted.begins), f"{column_text(wanted.begins)}\U0010ffff"]
    if wanted.has_work:
        terms.append("has_work = 1")
    if wanted.is_named or wanted.name:
        terms.append("name <> ''")
    if wanted.is_top:
        terms.append("root = session")
    if wanted.most:
        terms.append("hour >= 0")  # so that SQLite goes through them by the hour, and sorts few
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    statement = f"{_ROWS}{where} ORDER BY hour DESC, updated DESC, session"
    if not wanted.most:
        return [row for row in _decoded(sql.rows(statement, *values)) if wanted.fits(row)]
    found, page, read = list[SessionRow](), max(wanted.most, _PAGE), 0
    while len(found) < wanted.most:
        rows = sql.rows(f"{statement} LIMIT {page} OFFSET {read}", *values)
        found += [row for row in _decoded(rows) if wanted.fits(row)]
        read += len(rows)
        if len(rows) < page:
            break
    return found[: wanted.most]


def _decoded(rows: Iterable[tuple[Any, ...]]) -> Iterator[SessionRow]:
    return (decode_row(*row) for row in rows)


def read_hours(sql: Sql) -> list[int]:
    """Read the hours in which sessions were last active, by one look into the index for each."""
    found = sql.rows(
        "WITH RECURSIVE known (hour) AS (SELECT min(hour) FROM home.sessions"
        " UNION ALL SELECT (SELECT min(hour) FROM home.sessions WHERE hour > known.hour)"
        " FROM known WHERE known.hour IS NOT NULL)"
        " SELECT hour FROM known WHERE hour IS NOT NULL"
    )
    return [int(hour) for (hour,) in found]


def complete_listings(sql: Sql) -> None:
    """Fill in the columns by which rows are found, where an earlier version left them out."""
    while rows := sql.rows(f"{_ROWS} WHERE hour IS NULL LIMIT {_PAGE}"):
        for row in _decoded(rows):
            sql.change(
                "UPDATE home.sessions SET folder = ?, name = ?, hour = ?, has_work = ?"
                " WHERE session = ?",
                *listing_of(row),
                row.session,
            )


def read_family(sql: Sql, root: str) -> list[SessionRow]:
    """Read the rows of a session and of all below it."""
    return [decode_row(*row) for row in sql.rows(f"{_ROWS} WHERE root = ?", root)]


def read_sizes(sql: Sql) -> dict[str, int]:
    """Add up what is stored of each session, in bytes of text."""
    found = sql.rows(
        "SELECT session, sum(size) FROM (SELECT session, octet_length(data) AS size FROM home.entries"
        " UNION ALL SELECT session, octet_length(state) FROM home.snapshots) AS parts GROUP BY 1"
    )
    return {session: int(size) for session, size in found}


# Schedules ----------------------------------------------------------------------------------------


def write_watch(sql: Sql, watch: Watch) -> None:
    """Keep how far a schedule was looked at, and forget its occurrences of long ago."""
    sql.change(
        "INSERT INTO home.watches (schedule, timing, upto, floor) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (schedule) DO UPDATE SET timing = excluded.timing, upto = excluded.upto,"
        " floor = CASE WHEN watches.floor > excluded.floor THEN watches.floor"
        " ELSE excluded.floor END",
        watch.schedule,
        watch.timing,
        watch.upto,
        watch.floor,
    )
    gone = sql.rows(
        "DELETE FROM home.occurrences AS old WHERE schedule = ? AND planned < ?"
        " AND state <> 'due' AND planned < (SELECT max(planned) FROM home.occurrences"
        " WHERE schedule = old.schedule) RETURNING planned",
        watch.schedule,
        watch.upto - REMEMBERED,
    )
    if gone:
        floor = max(planned for (planned,) in gone)
        sql.change(
            "UPDATE home.watches SET floor = ? WHERE schedule = ? AND floor < ?",
            floor,
            watch.schedule,
            floor,
        )


def insert_occurrence(sql: Sql, found: Occurrence) -> bool:
    """Add an occurrence; False if it is known, and was more than missed. Repeatable."""
    values = (found.state, found.session, found.noted, found.reason, found.count)
    changed = sql.change(
        "INSERT INTO home.occurrences AS known"
        " (schedule, planned, state, session, noted, reason, count)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (schedule, planned) DO UPDATE SET"
        " state = excluded.state, session = excluded.session, noted = excluded.noted,"
        " reason = excluded.reason, count = excluded.count"
        " WHERE (known.state = 'missed' AND excluded.state <> 'missed')"
        " OR (known.session <> '' AND (known.state, known.session, known.noted, known.count)"
        " = (excluded.state, excluded.session, excluded.noted, excluded.count))",
        found.schedule,
        found.planned,
        *values,
    )
    return bool(changed)


def update_occurrence(sql: Sql, found: Occurrence) -> None:
    """Change what became of an occurrence."""
    sql.change(
        "UPDATE home.occurrences SET state = ?, session = ?, reason = ?"
        " WHERE schedule = ? AND planned = ?",
        found.state,
        found.session,
        found.reason,
        found.schedule,
        found.planned,
    )


def read_watches(sql: Sql) -> list[Watch]:
    """List how far schedules were looked at, by name."""
    found = sql.rows("SELECT schedule, timing, upto, floor FROM home.watches")
    return readable(Watch, Watch.__struct_fields__, sorted(found))


def read_occurrences(sql: Sql) -> list[Occurrence]:
    """List all occurrences, the newest first."""
    found = sql.rows(
        "SELECT schedule, planned, state, session, noted, reason, count FROM home.occurrences"
    )
    made = readable(Occurrence, Occurrence.__struct_fields__, found)
    return sorted(made, key=lambda one: (-one.planned, one.schedule))
