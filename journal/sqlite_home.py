"""A SQLite home that is open: its folder, its database, and the locks and sockets in it."""

import contextlib
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..machines.errors import StoreError, StoreFailed
from .connection import Connection
from .database import Database
from .folder import PrivateFolder
from .presence import FolderPresence, Presence
from .store import check_identifier, unknown_session


class SqliteHome:
    """What the parts of a `SqliteStore` share: a database, and who is present. Thread-safe."""

    def __init__(
        self, name: str, database: Database | None = None, presence: Presence | None = None
    ) -> None:
        self._name = name
        self._database: Database | None = database
        self.presence: Presence | None = presence
        self.is_closed = False
        self._mutex = threading.Lock()  # held while opening late, and to close once

    @contextmanager
    def reading(self, session: str) -> Generator[Connection]:
        """Read one state of the database for a session. Raises `UnknownSession` without a database."""
        check_identifier("session", session)
        with self.looking() as connection:
            if connection is None:
                raise unknown_session(session)
            yield connection

    @contextmanager
    def looking(self) -> Generator[Connection | None]:
        """Read one state of the database, if there is one yet."""
        database = self.look()
        if database is None:
            yield None
            return
        with database.reading() as connection:
            yield connection

    @contextmanager
    def writing(self, *, is_synced: bool = True) -> Generator[Connection]:
        """Write in one transaction; see `Database.writing`."""
        with self.writable().writing(is_synced=is_synced) as connection:
            yield connection

    def present(self) -> Presence:
        """Return the locks and sockets, for changing them. Raises `StoreError` likewise."""
        self.writable()
        assert self.presence is not None
        return self.presence

    def begin_closing(self) -> bool:
        """Note that the home closes; False if it did already."""
        with self._mutex:
            was_closed, self.is_closed = self.is_closed, True
        return not was_closed

    @contextmanager
    def translated(self) -> Generator[None]:
        """Say in our words what the file system refused."""
        try:
            yield
        except OSError as fault:
            raise StoreFailed(
                f"`{fault.filename or self._name}` cannot be used: {fault.strerror or fault}",
                "Check free space and permissions there, or set STEERSMAN_HOME.",
            ) from fault

    def writable(self) -> Database:
        """Return the database. Raises `StoreError` if it is open for reading only."""
        if self._database is None:
            raise StoreError(f"`{self._name}` is open for reading only", "Open it for writing.")
        return self._database

    def look(self) -> Database | None:
        """Return the database, if there is one yet."""
        return self._database

    def reopen(self) -> None:
        """Put a new connection in the place of one that failed; locks and leases stay."""
        raise NotImplementedError

    def close(self) -> None:
        """Empty the log and close; leases were released before."""
        with ExitStack() as closing:
            for part in (self._database, self.presence):
                if part is not None:
                    closing.callback(part.close)


class FolderHome(SqliteHome):
    """A home in a folder; one that is read only may get its database while it is open."""

    def __init__(self, path: Path, patience: float, *, is_read_only: bool) -> None:
        super().__init__(str(path))
        self._path = path
        self._patience = patience
        self._is_read_only = is_read_only
        self._folder: PrivateFolder | None = None

    def open(self) -> None:
        """Open what is there; make it if need be, unless it is open for reading only."""
        if self._is_read_only:
            self.look()
            return
        with self.translated():
            self._enter(create=True)

    def writable(self) -> Database:
        """Return the database. Raises `StoreError` if it is open for reading only."""
        if self._is_read_only:
            raise StoreError(f"`{self._path}` is open for reading only", "Open it for writing.")
        return super().writable()

    def look(self) -> Database | None:
        """Find the database; a read-only home may get one while we look on."""
        with self._mutex, self.translated():
            if self._database is None and self._is_read_only and not self.is_closed:
                with contextlib.suppress(FileNotFoundError):
                    self._enter(create=False)
        return self._database

    def reopen(self) -> None:
        """Put a new connection in the place of one that failed; locks and leases stay."""
        with self._mutex, self.translated():
            failed, folder = self._database, self._folder
            if failed is not None and folder is not None and failed.has_failed:
                self._database = Database.open(folder, self._patience)
                failed.close()

    def close(self) -> None:
        """Close the folder, too."""
        with ExitStack() as closing:
            if self._folder is not None:
                closing.callback(self._folder.close)
            super().close()

    def _enter(self, *, create: bool) -> None:
        """Open folder and database; leave the folder open only if both are."""
        folder = PrivateFolder.open(self._path, create=create)
        with ExitStack() as undo:
            undo.callback(folder.close)
            open_database = Database.open if create else Database.open_for_reading
            opened = open_database(folder, self._patience)
            if opened is None:
                return
            self._folder, self._database, self.presence = folder, opened, FolderPresence(folder)
            undo.pop_all()
