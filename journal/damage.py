"""What of a store cannot be read, row by row, the same for SQLite and PostgreSQL; changes nothing.

Each query is one that both run (see `sql.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import ValidationError

from ..machines.errors import SteersmanError, StoreDamaged
from ..machines.value import Value
from .codec import decode_entry
from .encoding import decode, decode_row, readable
from .store import Occurrence, Watch

Read = Callable[..., Sequence[tuple[Any, ...]]]
"""Runs a query with its values, and reads all rows."""
_PAGE = 500  # entries read at once
_ENTRIES = "SELECT seq, data FROM home.entries WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
_PLANS = (("watches", Watch), ("occurrences", Occurrence))


class RowFault(Value):
    """A row that cannot be read, or is missing; `row` is its key, empty for a whole table."""

    table: str
    row: str
    what: str


@runtime_checkable
class Checkable(Protocol):
    """A store that can look through all its rows."""

    def faults(self) -> Iterator[RowFault]:
        """Name what cannot be read. Raises `StoreError` where reading cannot go on."""
        ...


def row_faults(read: Read) -> Iterator[RowFault]:
    """Look through every table."""
    lengths: dict[str, int] = {}
    for row in read(
        "SELECT session, row, seq, root, place, updated FROM home.sessions ORDER BY session"
    ):
        found = decode_row(*row)
        lengths[found.session] = found.seq
        if found.is_damaged:
            yield RowFault(
                table="sessions", row=found.session, what="the row is no row of a session"
            )
    yield from _texts(read)
    yield from _plans(read)
    kept = (session for (session,) in read("SELECT DISTINCT session FROM home.entries"))
    for session in sorted({*lengths, *kept}):
        yield from _journal(read, session, lengths.get(session))


def _texts(read: Read) -> Iterator[RowFault]:
    """Look through what else is JSON: snapshots, messages, replies."""
    for session, seq, state in read("SELECT session, seq, state FROM home.snapshots"):
        yield from _broken("snapshots", f"{session} {seq}", state)
    query = "SELECT session, id, message, consumed, reply FROM home.inbox ORDER BY id"
    for session, id, message, is_consumed, reply in read(query):
        if not is_consumed:
            yield from _broken("inbox", f"{session} {id}", message)
        if reply is not None:
            yield from _broken("inbox", f"{session} {id}", reply)


def _broken(table: str, row: str, text: object) -> Iterator[RowFault]:
    try:
        decode("it", text)
    except StoreDamaged:
        yield RowFault(table=table, row=row, what="it is no JSON object")


def _plans(read: Read) -> Iterator[RowFault]:
    for table, kind in _PLANS:
        names = kind.__struct_fields__
        for row in read(f"SELECT {', '.join(names)} FROM home.{table}"):
            if not readable(kind, names, [row]):
                yield RowFault(table=table, row=f"{row[0]}", what="a value is of the wrong kind")


def _journal(read: Read, session: str, length: int | None) -> Iterator[RowFault]:
    """Look through the entries of a session, which must be numbered from 1 to `length`."""
    if length is None:
        yield RowFault(table="entries", row=session, what="its session is missing")
    seq = 0
    while page := read(_ENTRIES, session, seq, _PAGE):
        for found, text in page:
            yield from _missing(session, seq, found)
            try:
                decode_entry(decode("it", text))
            except (SteersmanError, ValidationError, KeyError, TypeError) as fault:
                yield RowFault(table="entries", row=f"{session} {found}", what=f"{fault}")
            seq = found
    yield from _missing(session, seq, (length or seq) + 1)


def _missing(session: str, last: int, next: int) -> Iterator[RowFault]:
    if next > last + 1:
        row = f"{session} {last + 1}" + (f" to {next - 1}" if next > last + 2 else "")
        yield RowFault(table="entries", row=row, what="missing")


def sqlite_faults(read: Read) -> Iterator[RowFault]:
    """Have SQLite check the file itself, and then look through the rows."""
    for (line,) in read("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield RowFault(table="", row="", what=" ".join(str(line).split()))
    yield from row_faults(read)
