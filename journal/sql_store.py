"""What a store is over SQLite and over PostgreSQL alike: all that reads, and schedules."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from . import sql
from .chain import Linked
from .sql import Sql
from .store import (
    ANSWERS_KEPT,
    EVERY,
    Loaded,
    Occurrence,
    Position,
    Posted,
    RowFilter,
    SessionRow,
    Snapshot,
    StoredEntry,
    Watch,
    looked_for,
)

T = TypeVar("T")

_HOUR = 3600.0
_PAGE = 500  # entries read at once, so that no reader holds a log for long


class SqlStore:
    """See `store.Store` for each method, and the two stores for what they add."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._forgotten = 0.0  # when replies were last looked through

    def load(self, session: str) -> Loaded:
        """Read row, snapshot, tail and inbox as of one moment."""

        def read(connection: Sql) -> Loaded:
            row = sql.read_row(connection, session)
            snapshot = sql.read_snapshot(connection, session)
            after = snapshot.seq if snapshot else 0
            return Loaded(
                row=row,
                snapshot=snapshot,
                tail=sql.read_entries(connection, session, after, row.seq),
                unconsumed=self._inbox(connection, session),
            )

        return self._read(session, read, is_one_moment=True)

    def entries(
        self, session: str, after: int = 0, upto: int | None = None
    ) -> Iterable[StoredEntry]:
        """Read the journal in pages, so that memory does not grow with its length."""
        last = self.position(session).seq
        return self._pages(session, max(0, after), last if upto is None else min(upto, last))

    def links(self, session: str) -> Iterator[Linked]:
        """Read all entries as they are stored, with their hashes, in pages."""
        after = 0
        while page := self._read(
            session, partial(sql.read_links, session=session, after=after, number=_PAGE)
        ):
            yield from page
            after = page[-1][0]

    def row(self, session: str) -> SessionRow:
        """Read what a list shows of one session."""
        return self._read(session, lambda connection: sql.read_row(connection, session))

    def snapshot(self, session: str, upto: int) -> Snapshot | None:
        """Read the newest snapshot at or before entry `upto`."""
        return self._read(session, lambda connection: sql.read_snapshot(connection, session, upto))

    def epoch(self, session: str) -> int:
        """Count the claims of a session."""
        return self.position(session).epoch

    def position(self, session: str) -> Position:
        """Read what the next commit is compared with."""
        return self._read(session, lambda connection: sql.read_position(connection, session))

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox, by lane and then by id."""
        self.position(session)
        return self._read(session, lambda connection: self._inbox(connection, session))

    def sessions(self, wanted: RowFilter = EVERY) -> list[SessionRow]:
        """List the sessions that are wanted, newest activity first."""
        return self._look(lambda connection: sql.read_rows(connection, wanted), [])

    def moments(self) -> list[float]:
        """List the hours in which sessions were last active, in seconds since 1970, the oldest first."""
        nothing: list[int] = []
        return [hour * _HOUR for hour in self._look(sql.read_hours, nothing)]

    def family(self, root: str) -> list[SessionRow]:
        """List a session that is nobody's subagent, and its subagents with theirs."""
        return self._look(lambda connection: sql.read_family(connection, root), [])

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the journal of each session takes."""
        return self._look(sql.read_sizes, {})

    def search(self, text: str) -> Iterator[tuple[str, StoredEntry]]:
        """Yield the entries that may hold a text, with their sessions; ASCII letters in any case."""
        nothing: list[tuple[str, StoredEntry]] = []
        yield from self._look(lambda connection: self._found(connection, text), nothing)

    def thin(self, sessions: Sequence[str]) -> None:
        """Drop all but the newest snapshot of these sessions."""

        def drop(connection: Sql) -> None:
            for session in sessions:
                sql.thin_snapshots(connection, session)

        self._write(drop)

    def reply(self, message: int, timeout: float) -> dict[str, Any] | None:
        """Look for the reply, at first often, until it is there, the time is over or the store closes."""

        def look() -> dict[str, Any] | None:
            return self._look(lambda connection: sql.read_reply(connection, message), None)

        return looked_for(look, timeout, lambda: self._is_over)

    def note(self, watch: Watch, occurrences: Sequence[Occurrence] = ()) -> list[bool]:
        """Keep how far a schedule was looked at, and what was found, in one transaction."""

        def write(connection: Sql) -> list[bool]:
            noted = [sql.insert_occurrence(connection, found) for found in occurrences]
            sql.write_watch(connection, watch)
            return noted

        return self._write(write)

    def conclude(self, occurrence: Occurrence) -> None:
        """Change what became of a noted occurrence."""
        self._write(lambda connection: sql.update_occurrence(connection, occurrence))

    def watches(self) -> list[Watch]:
        """List the schedules that were looked at, by name."""
        return self._look(sql.read_watches, [])

    def occurrences(self) -> list[Occurrence]:
        """List the occurrences that are remembered, the newest first."""
        return self._look(sql.read_occurrences, [])

    def settle(self) -> None:
        """Once an hour, forget old replies."""
        now = self._clock()
        if now - self._forgotten > _HOUR:
            self._forgotten = now
            self._forget_replies(now - ANSWERS_KEPT)

    def _pages(self, session: str, after: int, upto: int) -> Iterator[StoredEntry]:
        while after < upto:
            page_end = min(after + _PAGE, upto)
            read = partial(sql.read_entries, session=session, after=after, upto=page_end)
            yield from self._read(session, read)
            after = page_end

    def _rows(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        return self._look(lambda connection: connection.rows(query, *values), [])

    # What each database does in its own way ---------------------------------------------------------

    def _read(self, session: str, work: Callable[[Sql], T], *, is_one_moment: bool = False) -> T:
        """Run reads of a session; those of one moment see one state."""
        raise NotImplementedError

    def _look(self, work: Callable[[Sql], T], nothing: T) -> T:
        """Run reads of all sessions; `nothing` where there is no database yet."""
        raise NotImplementedError

    def _write(self, work: Callable[[Sql], T]) -> T:
        """Run writes that may be done twice, in one transaction."""
        raise NotImplementedError

    @property
    def _is_over(self) -> bool:
        """Whether the store closes."""
        raise NotImplementedError

    def _inbox(self, connection: Sql, session: str) -> tuple[Posted, ...]:
        raise NotImplementedError

    def _found(self, connection: Sql, text: str) -> list[tuple[str, StoredEntry]]:
        raise NotImplementedError

    def _forget_replies(self, before: float) -> None:
        """Forget what was settled before that time; a message with a client id stays known."""
        raise NotImplementedError
