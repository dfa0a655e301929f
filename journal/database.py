"""One SQLite connection that keeps its promises or stops.

Write-ahead log with `synchronous=FULL`: nothing acknowledged is lost when the power goes. What
SQLite would do silently is done in the open here: the journal mode is verified, automatic
checkpoints (which swallow I/O errors) are off, checkpoints are explicit and checked. After the
first I/O error the connection accepts nothing more, because a second fsync may succeed falsely
(https://wiki.postgresql.org/wiki/Fsync_Errors). Nothing else in this process may open the
database file: closing any descriptor of it cancels SQLite's locks
(https://sqlite.org/howtocorrupt.html).
"""

import os
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Self
from urllib.parse import quote

import apsw

from ..machines.errors import StoreBusy, StoreDamaged, StoreError, StoreFailed
from .connection import Connection
from .folder import PrivateFolder
from .lock import Lock
from .tables import check_readable, check_version, migrate

FILE = "journal.db"
_OPENING = "journal"  # journal.lock: held while a process opens, and the model of all file modes
_CHECKPOINT_PAGES = 2000  # of 4 KiB: a log of about 8 MB
_WORTH_COMPACTING = 1 << 20  # bytes of unused pages
_FIXED_SQLITE = (3, 51, 3)  # earlier ones can corrupt a log that two connections write
_FLAGS = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW


class Database:
    """The connection, one thread at a time; see the module for what it promises."""

    def __init__(self, connection: Connection, patience: float) -> None:
        self._connection: Connection | None = connection
        self._file = connection.name
        self._patience = patience
        self._fault: StoreError | None = None
        self._mutex = threading.Lock()
        self._log_pages = 0
        self._checkpoint_at = _CHECKPOINT_PAGES

    @classmethod
    def open(cls, folder: PrivateFolder, patience: float) -> Self:
        """Open for writing; makes and upgrades the database under a lock of its own.

        `patience`: seconds to wait for a lock of another process, here and later.
        """
        _check_library()
        opening = Lock(folder, _OPENING)
        opening.take_within(2 * patience)
        try:
            return cls._open_writable(folder, patience)
        finally:
            opening.release()

    @classmethod
    def open_for_reading(cls, folder: PrivateFolder, patience: float) -> Self | None:
        """Open without the right to write; none if there is no database yet.

        Where the folder cannot be written either, the file is read as it lies, which is right
        as long as no log lies beside it.
        """
        if not _check_files(folder):
            return None
        try:
            return cls._open_readable(folder, patience, "mode=ro")
        except StoreFailed as fault:
            is_locked_away = isinstance(fault.__cause__, apsw.ReadOnlyError | apsw.CantOpenError)
            if not is_locked_away or folder.check_file(f"{FILE}-wal"):
                raise
            return cls._open_readable(folder, patience, "mode=ro&immutable=1")

    @classmethod
    def in_memory(cls, content: bytes) -> Self:
        """Open a database that no file holds, with what `copied` returned, or empty."""
        raw = apsw.Connection(":memory:")
        if content:
            raw.deserialize("main", content)  # pyright: ignore[reportUnknownMemberType]
        database = cls(Connection(raw), 0.0)
        with database._opening() as connection:
            migrate(connection)
        return database

    def copied(self) -> bytes:
        """Copy all that is in it, as a file would hold it."""
        with self._used() as connection:
            return connection.raw.serialize("main")

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Read one state of the database. Raises `StoreError` and its kin."""
        with self._used() as connection, connection.reading():
            yield connection

    @contextmanager
    def writing(self, *, is_synced: bool = True) -> Generator[Connection]:
        """Write in one transaction, durable when the block has ended without an exception.

        If not `is_synced`, it is durable with the next transaction that is: the log is synced as a whole,
        and what precedes in it is there first.
        """
        with self._used() as connection:
            if not is_synced:
                connection.change("PRAGMA synchronous = normal")
            try:
                with connection.writing():
                    yield connection
            finally:
                if not is_synced:
                    connection.change("PRAGMA synchronous = full")
            if self._log_pages >= self._checkpoint_at:
                self._checkpoint(connection)

    @property
    def has_failed(self) -> bool:
        """Whether an error was reported after which nothing is accepted."""
        return self._fault is not None

    def checkpoint(self) -> None:
        """Move the log into the database, as far as readers allow; for an idle moment."""
        with self._used() as connection:
            if self._log_pages:
                self._checkpoint(connection)
            if self._fault is not None:
                raise self._fault

    def compact(self) -> int:
        """Rewrite the file without its unused pages, if these take much; returns bytes given back."""
        with self._used() as connection:
            ((free, size),) = connection.rows(
                "SELECT freelist_count, page_size FROM pragma_freelist_count, pragma_page_size"
            )
            if free * size < _WORTH_COMPACTING:
                return 0
            connection.change("VACUUM")
            connection.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return int(free * size)

    def close(self) -> None:
        """Empty the log if no other process has the database open, and close. Idempotent."""
        with self._mutex:
            connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._fault is not None or connection.raw.readonly("main"):
            _abandon(connection)
            return
        try:
            connection.raw.set_busy_timeout(0)
            connection.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.BusyError, apsw.LockedError):
            return  # another process works on, and will fold the log
        except apsw.Error as fault:
            raise self._stopped(fault) from fault
        finally:
            connection.raw.close()

    @classmethod
    def _open_writable(cls, folder: PrivateFolder, patience: float) -> Self:
        _check_files(folder)
        model = quote(os.fsencode(folder.path / f"{_OPENING}.lock"))
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        database = cls._connected(folder, patience, f"mode=rwc&modeof={model}", flags)
        with database._opening() as connection:
            check_version(connection)
            connection.raw.wal_autocheckpoint(0)
            connection.raw.set_wal_hook(database._log_grew)
            mode = connection.rows("PRAGMA journal_mode = wal")
            connection.change("PRAGMA synchronous = full")
            if mode + connection.rows("PRAGMA synchronous") != [("wal",), (2,)]:
                raise apsw.IOError(f"the journal mode stayed {mode}")
            migrate(connection)
            folder.sync()
        return database

    @classmethod
    def _open_readable(cls, folder: PrivateFolder, patience: float, query: str) -> Self | None:
        database = cls._connected(folder, patience, query, apsw.SQLITE_OPEN_READONLY)
        with database._opening() as connection:
            is_filled = check_readable(connection)
        if is_filled:
            return database
        database.close()  # another process is about to make it
        return None

    @classmethod
    def _connected(cls, folder: PrivateFolder, patience: float, query: str, flags: int) -> Self:
        file = str(folder.path / FILE)
        try:
            address = f"file:{quote(os.fsencode(file))}?{query}"
            connection = apsw.Connection(address, flags=flags | _FLAGS)
        except apsw.Error as fault:
            raise _translated(fault, file, patience) from fault
        connection.set_busy_timeout(int(patience * 1000))
        return cls(Connection(connection), patience)

    @contextmanager
    def _opening(self) -> Generator[Connection]:
        """Close the connection again if opening it fails."""
        with ExitStack() as undo:
            undo.callback(self._give_up)
            with self._used() as connection:
                connection.change("PRAGMA mmap_size = 0")
                connection.change("PRAGMA trusted_schema = off")
                yield connection
            undo.pop_all()

    def _give_up(self) -> None:
        if self._connection is not None:
            _abandon(self._connection)
            self._connection = None

    @contextmanager
    def _used(self) -> Generator[Connection]:
        """Give the connection to one thread, unless it stopped; stop it on what SQLite reports."""
        with self._mutex:
            if self._fault is not None:
                raise StoreFailed(
                    f"the journal stopped after: {self._fault.message}",
                    "Reopen it; nothing that was acknowledged is lost.",
                ) from self._fault
            if self._connection is None:
                raise StoreError("the journal is closed", "Open it again.")
            try:
                yield self._connection
            except apsw.Error as fault:
                raise self._stopped(fault) from fault

    def _checkpoint(self, connection: Connection) -> None:
        """Fold the log; a fault stops the next use, for the transaction before it is durable."""
        try:
            pages, folded = connection.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._log_pages = pages - folded
        except (apsw.BusyError, apsw.LockedError):
            pass  # another process is at it
        except apsw.Error as fault:
            self._stopped(fault)
        self._checkpoint_at = self._log_pages + _CHECKPOINT_PAGES

    def _log_grew(self, _: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _stopped(self, fault: apsw.Error) -> StoreError:
        error = _translated(fault, self._file, self._patience)
        if not isinstance(error, StoreBusy):
            self._fault = error
        return error


def _abandon(connection: Connection) -> None:
    """Close without touching the log, which belongs to the next process that opens the database."""
    connection.raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.raw.close()


def _check_files(folder: PrivateFolder) -> bool:
    """Refuse planted links, narrow the modes; whether there is a database."""
    sizes = [folder.check_file(f"{FILE}{suffix}") for suffix in ("", "-wal", "-shm")]
    return sizes[0] is not None


def _check_library() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split(".")[:3])) < _FIXED_SQLITE:
        raise StoreError(
            f"SQLite {version} can corrupt a journal that two processes write",
            "Install apsw from PyPI, which brings its own SQLite.",
        )


def _translated(fault: apsw.Error, file: str, patience: float) -> StoreError:
    """Say in our words what SQLite reported."""
    match fault:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StoreBusy(
                f"`{file}` was locked by another process for {patience:g} s",
                "Try again; if it stays, look for a stopped steersman process.",
            )
        case apsw.NotADBError() | apsw.CorruptError() | apsw.FormatError():
            return StoreDamaged(
                f"`{file}` is damaged or not a database ({fault})",
                "`steersman home salvage TO` writes what can be read to a new home; nothing was deleted.",
            )
        case _:
            return StoreFailed(
                f"`{file}` cannot be used ({fault})",
                "Make room there, or correct quotas and permissions, then try again: "
                "nothing accepted is lost.",
            )
