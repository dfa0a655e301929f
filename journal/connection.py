"""A SQLite connection as the tables see it: rows, changes, and transactions as blocks."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import apsw

Value = str | int | float | bytes | None


class Connection:
    """Statements with their values, read at once so that no statement stays open.

    Raises `apsw.Error`; `database.py` says in our words what that means.
    """

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw = raw
        self.name: str = raw.filename

    def rows(self, statement: str, *values: Value) -> list[tuple[Any, ...]]:
        """Run a statement and read all its rows."""
        cursor: Any = self.raw.execute(statement.replace("home.", ""), values)  # pyright: ignore[reportUnknownMemberType]
        return list(cursor)

    def row(self, statement: str, *values: Value) -> tuple[Any, ...] | None:
        """Run a statement and read its only row, or none."""
        found = self.rows(statement, *values)
        return found[0] if found else None

    def change(self, statement: str, *values: Value) -> int:
        """Run a statement and return how many rows it changed."""
        self.raw.execute(statement.replace("home.", ""), values)  # pyright: ignore[reportUnknownMemberType]
        return self.raw.changes()

    def change_many(self, statement: str, values: Iterable[tuple[Value, ...]]) -> None:
        """Run a statement once for each of the values."""
        self.raw.executemany(statement.replace("home.", ""), values)  # pyright: ignore[reportUnknownMemberType]

    @contextmanager
    def writing(self) -> Generator[None]:
        """Commit what the block did, or roll it back when an exception leaves it.

        The one write lock is taken at the start, so that what is read stays true until the end.
        """
        self.change("BEGIN IMMEDIATE")
        with self._ended():
            yield

    @contextmanager
    def reading(self) -> Generator[None]:
        """See one state of the database in all statements of the block."""
        self.change("BEGIN")
        with self._ended():
            yield

    @contextmanager
    def _ended(self) -> Generator[None]:
        try:
            yield
            self.change("COMMIT")
        finally:
            if self.raw.in_transaction:  # SQLite itself may have rolled back already
                self.change("ROLLBACK")
