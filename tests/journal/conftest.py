"""What the journal's tests share: two kinds of store, and children that can be killed."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Protocol

import apsw
import pytest

import steersman
from steersman.journal.memory import MemoryStore
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Commit, Lease, SessionRow, Snapshot, Store, StoredEntry

CHILD = Path(__file__).with_name("child.py")


class Backend(Protocol):
    """One kind of store: `open` makes an empty one, `reopen` ends it and opens what is durable."""

    def open(self) -> Store:
        """Make an empty store."""
        ...

    def reopen(self, store: Store) -> Store:
        """End a store and go on with what is durable."""
        ...


class SqliteBackend:
    """Stores in one folder, with a clock that ticks once a call."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        self.folder = folder
        self.closing = closing

    def open(self) -> SqliteStore:
        """Open the folder's store, to be closed at the end of the test."""
        store = SqliteStore.open(self.folder, clock=count(1000.0).__next__)
        self.closing.callback(store.close)
        return store

    def reopen(self, store: Store) -> SqliteStore:
        """Close and open again."""
        store.close()
        return self.open()

    def alter(self, statements: str) -> SqliteStore:
        """Run statements in the database behind the store's back, and open it."""
        raw = apsw.Connection(str(self.folder / "journal.db"))
        raw.execute(statements)
        raw.close()
        return self.open()


class MemoryBackend:
    """Stores in memory, with a clock that ticks once a call."""

    def open(self) -> MemoryStore:
        """Make an empty store."""
        return MemoryStore(clock=count(1000.0).__next__)

    def reopen(self, store: Store) -> MemoryStore:
        """Close and go on with what is durable."""
        assert isinstance(store, MemoryStore)
        store.close()
        return store.survivor()


durable = pytest.mark.parametrize("backend", ["sqlite", "postgres"], indirect=True)
"""Of the kinds of store, those that have a database, which `alter` changes."""


def claimed(store: Store, session: str = "s1", node: str = "n1") -> Lease:
    """Claim a session that is free."""
    lease = store.claim(session, node)
    assert lease is not None
    return lease


class Maker:
    """Values for the stores: rows, entries, commits that follow one another."""

    def row(self, session: str, seq: int = 0, updated: float = 0.0) -> SessionRow:
        """Make a row."""
        return SessionRow(session=session, folder="/work", updated=updated, seq=seq, root=session)

    def entry(self, seq: int) -> StoredEntry:
        """Make the entry that belongs to a sequence number."""
        return StoredEntry(
            seq=seq, time=0.5 + seq, data={"kind": "noted", "n": seq, "text": f"é {seq} 📥"}
        )

    def commit(
        self,
        lease: Lease,
        first: int,
        last: int,
        *,
        consumed: tuple[int, ...] = (),
        snapshot: Snapshot | None = None,
    ) -> Commit:
        """Make a commit of the entries `first` to `last`."""
        entries = tuple(self.entry(seq) for seq in range(first, last + 1))
        row = self.row(lease.session, last, 0.5 + last)
        return Commit(lease=lease, entries=entries, row=row, consumed=consumed, snapshot=snapshot)


class Children:
    """Python processes that use the journal; whatever is left is killed at the end."""

    def __init__(self, library: Path) -> None:
        (library / "steersman").symlink_to(Path(steersman.__file__).parent)
        self._environment = {**os.environ, "PYTHONPATH": str(library), "PYTHONUNBUFFERED": "1"}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Start `child.py` with these arguments, under the command `before` if any."""
        child = subprocess.Popen(
            [*before, sys.executable, str(CHILD), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        self._started.append(child)
        return child

    def end(self) -> None:
        """Kill what still runs, close all pipes."""
        for child in self._started:
            child.kill()
            child.communicate()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder that does not exist yet."""
    return tmp_path / "home" / "state"


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """What is closed when the test ends."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def opened(home: Path, closing: ExitStack) -> Callable[..., SqliteStore]:
    """Open the home's durable store, closed when the test ends."""

    def open_store(
        folder: Path = home, *, read_only: bool = False, patience: float = 5.0
    ) -> SqliteStore:
        store = SqliteStore.open(folder, read_only=read_only, patience=patience)
        closing.callback(store.close)
        return store

    return open_store


class PostgresBackend:
    """Stores in one schema of the test server, with a clock that ticks once a call."""

    def __init__(self, request: pytest.FixtureRequest, closing: ExitStack) -> None:
        self.url = request.getfixturevalue("postgres_url")
        self.server = request.getfixturevalue("postgres_server")
        self.closing = closing

    def open(self) -> Store:
        """Open the schema's store, to be closed at the end of the test."""
        from steersman.extensions.postgres.store import PostgresStore

        store = PostgresStore.open(self.url, clock=count(1000.0).__next__)
        self.closing.callback(store.close)
        return store

    def reopen(self, store: Store) -> Store:
        """Close and open again."""
        store.close()
        return self.open()

    def alter(self, statements: str) -> Store:
        """Run statements in the home's schema behind the store's back, and open it."""
        schema = self.url.partition("schema=")[2]
        self.server.execute(f'SET search_path = "{schema}"; {statements}')
        return self.open()


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def backend(request: pytest.FixtureRequest, home: Path, closing: ExitStack) -> Backend:
    """Each kind of store in turn."""
    if request.param == "postgres":
        return PostgresBackend(request, closing)
    return SqliteBackend(home, closing) if request.param == "sqlite" else MemoryBackend()


@pytest.fixture
def store(backend: Backend) -> Store:
    """An empty store of each kind, with a session `s1`."""
    store = backend.open()
    store.create(SessionRow(session="s1", folder="/work"))
    return store


@pytest.fixture
def make() -> Maker:
    """Values to store."""
    return Maker()


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Processes of their own."""
    library = tmp_path / "library"
    library.mkdir()
    children = Children(library)
    yield children
    children.end()
