"""The embedded store as a file among processes: opening, sharing, ageing, breaking."""

import os
import signal
import threading
from pathlib import Path

import apsw
import pytest
from support.patience import seconds

from steersman.journal import tables
from steersman.journal.connection import Connection
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Commit, Snapshot, StoredEntry
from steersman.machines.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreTooNew,
    StoreTooOld,
    UnknownSession,
)


def files(folder: Path) -> set[str]:
    """All names beneath a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def acknowledged(text: str) -> list[int]:
    """The numbers that a child acknowledged."""
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("ACK")]


@pytest.fixture
def store(opened, make) -> SqliteStore:
    """The home's store, with a session `s1`."""
    store = opened()
    store.create(make.row("s1"))
    return store


@pytest.mark.parametrize("number", [3, pytest.param(20, marks=pytest.mark.nightly)])
def test_every_message_of_many_processes_lands(home, opened, children, make, number):
    """Of processes that post at once, every acknowledged message is there, once and in order."""
    posters = [children.start("post", home, "inbox", f"p{n}", 5) for n in range(number)]
    store = opened()
    store.create(make.row("inbox"))
    acks: list[int] = []
    for poster in posters:
        print(file=poster.stdin, flush=True)
    for poster in posters:
        out, _ = poster.communicate(timeout=seconds(60))
        assert poster.returncode == 0
        acks += acknowledged(out)
    found = store.unconsumed("inbox")
    assert sorted(acks) == [message.id for message in found]
    assert len(found) == 5 * number
    for n in range(number):
        mine = [one.message["n"] for one in found if one.message["from"] == f"p{n}"]
        assert mine == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("number", [3, pytest.param(20, marks=pytest.mark.nightly)])
def test_many_processes_create_a_home_at_once(home, opened, children, number):
    """Of processes that begin together in the same empty place, each succeeds."""
    makers = [children.start("post", home, "none", f"p{n}", 0) for n in range(number)]
    for maker in makers:
        print(file=maker.stdin, flush=True)
    assert [maker.wait(seconds(60)) for maker in makers] == [0] * number
    assert opened().sessions() == []


def test_a_killed_owner_loses_the_session_at_once(home, store, children, make):
    """While the owner lives a claim gets nothing; after its kill the next epoch begins."""
    owner = children.start("own", home, "s1")
    assert owner.stdout.readline() == "EPOCH 1\n"
    assert store.is_owned("s1")
    assert store.claim("s1", "n2") is None
    shown = store.owner("s1")
    assert (shown.pid, shown.node) == (owner.pid, f"n{owner.pid}")
    print(1, file=owner.stdin, flush=True)
    assert owner.stdout.readline() == "ACK 1\n"

    owner.send_signal(signal.SIGKILL)
    owner.wait(seconds(30))
    assert not store.is_owned("s1")
    assert store.owner("s1") is None
    lease = store.claim("s1", "n2")
    assert lease.epoch == 2
    assert store.commit([make.commit(lease, 2, 2)]) == [True]


def test_an_owner_that_was_overtaken_is_refused(home, store, children):
    """A live process whose lock was lost, as on a broken disk, cannot write past a new epoch."""
    owner = children.start("own", home, "s1")
    assert owner.stdout.readline() == "EPOCH 1\n"
    (home / "locks" / "s1.lock").unlink()
    lease = store.claim("s1", "n2")
    assert lease.epoch == 2
    print(1, file=owner.stdin, flush=True)
    assert owner.stdout.readline() == "LOST\n"
    assert store.load("s1").row.seq == 0


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1, "node": "n1", "started": 0}', "4711\n"])
def test_a_lock_file_left_behind_locks_nothing(home, store, text):
    """What stands in a lock file decides nothing: neither a live pid nor nonsense."""
    (home / "locks").mkdir(mode=0o700)
    (home / "locks" / "s1.lock").write_text(text)
    assert not store.is_owned("s1")
    assert store.owner("s1") is None
    assert store.claim("s1", "n1")


def test_looking_on_never_keeps_an_owner_out(home, store, make):
    """Probes from another thread do not make a claim of a free session fail."""
    store.release(store.claim("s1", "n1"))
    looking = SqliteStore.open(home, read_only=True)
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            looking.is_owned("s1")

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    leases = []
    for _ in range(30):
        leases.append(store.claim("s1", "n1"))
        if leases[-1]:
            store.release(leases[-1])
    is_over.set()
    for thread in threads:
        thread.join()
    looking.close()
    assert None not in leases


def test_reading_makes_nothing(home, opened):
    """A home that does not exist is read as an empty one, and still does not exist."""
    store = opened(read_only=True)
    assert store.sessions() == []
    assert not store.is_owned("s1")
    with pytest.raises(UnknownSession):
        store.load("s1")
    store.close()
    assert not home.parent.exists()


def test_a_reader_sees_a_home_that_comes_later(home, opened, make):
    """A reader of an empty store sees the sessions as soon as there are some."""
    looking = opened(read_only=True)
    assert looking.sessions() == []
    opened().create(make.row("s1"))
    assert looking.sessions() == [make.row("s1")]


def test_a_reader_changes_nothing(home, store, opened, make):
    """Reading beside a writer shows the newest state and is refused every change."""
    lease = store.claim("s1", "n1")
    looking = opened(read_only=True)
    store.commit([make.commit(lease, 1, 2)])
    before = files(home)
    assert looking.load("s1").row.seq == 2
    assert looking.is_owned("s1")
    for ask in (
        lambda: looking.create(make.row("s2")),
        lambda: looking.claim("s1", "n2"),
        lambda: looking.commit([make.commit(lease, 3, 3)]),
        lambda: looking.post("s1", 1, {}),
        lambda: looking.wait("n2", 0),
    ):
        with pytest.raises(StoreError, match="reading only"):
            ask()
    assert files(home) == before
    looking.close()
    assert store.commit([make.commit(lease, 3, 3)]) == [True]


def test_a_closed_home_is_one_file(home, store, make):
    """After the last close the log is folded in, so that the one file can be copied."""
    store.commit([make.commit(store.claim("s1", "n1"), 1, 9)])
    store.close()
    assert {name for name in files(home) if name.startswith("journal.db")} == {"journal.db"}


def test_the_log_does_not_grow_for_ever(home, store, make):
    """Without any idle moment the log is folded at about 8 MB."""
    lease = store.claim("s1", "n1")
    sizes = []
    for seq in range(1, 61):
        entry = StoredEntry(seq=seq, time=0.0, data={"pad": "x" * 500_000})
        store.commit([Commit(lease=lease, entries=[entry], row=make.row("s1"))])
        sizes.append((home / "journal.db-wal").stat().st_size)
    assert 8_000_000 < max(sizes) < 10_000_000
    assert len(list(store.entries("s1"))) == 60


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("garbage", StoreDamaged),
        ("short", StoreDamaged),
        ("header", StoreDamaged),
        ("truncated", StoreDamaged),
        ("page", StoreDamaged),
        ("foreign", StoreDamaged),
        ("newer", StoreTooNew),
        ("older", StoreTooOld),
        ("folder", StoreError),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_not_ours_is_named_and_kept(home, opened, make, kind, error, read_only):
    """Damage, strangers and the future are errors that name the file and a next step."""
    file = home / "journal.db"
    store = opened()
    store.create(make.row("s1"))
    store.commit([make.commit(store.claim("s1", "n1"), 1, 400)])
    store.close()
    spoil(file, kind)
    before = file.read_bytes() if file.is_file() else b""
    with pytest.raises(error, match=r"journal\.db") as caught:
        list(opened(read_only=read_only).entries("s1"))
    assert caught.value.hint
    assert (file.read_bytes() if file.is_file() else b"") == before


def spoil(file: Path, kind: str) -> None:
    """Turn a good database into something else. No connection is open."""
    good = file.read_bytes()
    match kind:
        case "garbage":
            file.write_bytes(b"\0garbage" * 4096)
        case "short":
            file.write_bytes(b"not a database")
        case "header":
            file.write_bytes(b"X" * 50 + good[50:])
        case "truncated":
            file.write_bytes(good[: len(good) // 2])
        case "page":
            file.write_bytes(good[:20_480] + b"\xff" * (len(good) - 20_480))
        case "foreign":
            file.unlink()
            execute(file, "CREATE TABLE bookmarks (url)")
        case "newer":
            execute(
                file, f"PRAGMA user_version = {tables.NEVER_RELEASED + len(tables.MIGRATIONS) + 1}"
            )
        case "older":
            execute(file, f"PRAGMA user_version = {tables.NEVER_RELEASED}")
        case "folder":
            file.unlink()
            file.mkdir()


def execute(file: Path, *statements: str) -> None:
    """Run statements on a file as another program would, in the plainest journal mode."""
    connection = apsw.Connection(str(file))
    for statement in ("PRAGMA journal_mode = delete", *statements):
        connection.execute(statement)
    connection.close()


def test_an_older_database_is_brought_up_to_date(store, home):
    """A migration changes version and tables in one step, keeps what is there, and runs once."""
    store.close()
    raw = apsw.Connection(str(home / "journal.db"))
    connection = Connection(raw)
    steps = (*tables.MIGRATIONS, "ALTER TABLE sessions ADD COLUMN extra TEXT NOT NULL DEFAULT 'e'")
    with pytest.raises(apsw.SQLError):
        tables.migrate(connection, (*steps, "CREATE TABLE half (a); SELECT nonsense"))
    known = len(tables.MIGRATIONS)
    assert tables.check_version(connection) == known
    for _ in range(2):
        tables.migrate(connection, steps)
        assert tables.check_version(connection, steps) == known + 1
        assert connection.rows("SELECT session, extra FROM sessions") == [("s1", "e")]
    raw.close()


def test_a_reader_does_not_upgrade(home, opened):
    """A reader leaves a database of an earlier version unchanged; the error has the next step."""
    opened().close()
    raw = apsw.Connection(str(home / "journal.db"), flags=apsw.SQLITE_OPEN_READONLY)
    with pytest.raises(StoreError, match="earlier version"):
        tables.check_readable(Connection(raw), (*tables.MIGRATIONS, "SELECT 1"))
    raw.close()


def test_missing_entries_are_not_passed_over(home, store, opened, make):
    """A journal with a hole is damaged, and says where."""
    store.commit([make.commit(store.claim("s1", "n1"), 1, 9)])
    store.close()
    execute(home / "journal.db", "DELETE FROM entries WHERE seq = 5")
    store = opened()
    with pytest.raises(StoreDamaged, match="lacks entries"):
        store.load("s1")


def test_old_snapshots_are_thinned(home, store, opened, make):
    """The newest three are kept, and of the others the first of each thousand entries."""
    lease = store.claim("s1", "n1")
    for seq in range(1, 8):
        store.commit([make.commit(lease, seq, seq, snapshot=Snapshot(seq=seq, state={}))])
    store.close()
    connection = apsw.Connection(str(home / "journal.db"))
    assert connection.execute("SELECT seq FROM snapshots").fetchall() == [(1,), (5,), (6,), (7,)]
    connection.close()
    store = opened(read_only=True)
    assert [
        store.snapshot("s1", upto) and store.snapshot("s1", upto).seq for upto in (0, 4, 6)
    ] == [
        None,
        1,
        6,
    ]
    store.close()


def test_a_locked_database_is_busy_not_broken(home, opened, make):
    """A write that waits too long for another process is refused, and a later one goes on."""
    store = opened(patience=0.05)
    other = apsw.Connection(str(home / "journal.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="locked by another process"):
        store.create(make.row("s1"))
    other.execute("ROLLBACK")
    other.close()
    store.create(make.row("s1"))
    assert store.sessions() == [make.row("s1")]


def test_a_full_disk_stops_the_store_and_loses_nothing(home, opened, children):
    """At the end of space the store fails loudly, refuses all else, and goes on once reopened."""
    child = children.start("fill", home, 400_000)
    out, _ = child.communicate(timeout=seconds(60))
    assert child.returncode == 0
    lines = out.splitlines()
    failed = next(n for n, line in enumerate(lines) if line.startswith("FAILED"))
    assert lines[failed + 1] == "REFUSED"
    acks = acknowledged(out)
    stored = [entry.seq for entry in opened().entries("s1")]
    assert len(acks) >= 10
    assert stored == list(range(1, len(stored) + 1))
    assert set(acks) <= set(stored)


def test_a_failed_store_says_so_until_reopened(home, store, opened, make):
    """After the first fault every call is refused, close still works, and nothing is lost."""
    lease = store.claim("s1", "n1")
    other = apsw.Connection(str(home / "journal.db"))
    other.execute("DROP TABLE snapshots")
    other.close()
    with pytest.raises(StoreFailed, match="snapshots"):
        store.load("s1")
    for ask in (store.sessions, lambda: store.commit([make.commit(lease, 1, 1)])):
        with pytest.raises(StoreFailed, match="stopped after") as caught:
            ask()
        assert "Reopen" in caught.value.hint
    store.close()
    assert opened().sessions() == [make.row("s1")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_that_cannot_be_written_can_be_read(home, store, opened, make, read_only):
    """Reading works in a read-only folder; writing is refused with a next step."""
    store.close()
    home.chmod(0o500)
    try:
        if read_only:
            assert opened(read_only=True).sessions() == [make.row("s1")]
        else:
            (home / "journal.lock").chmod(0o400)
            with pytest.raises(StoreFailed, match="journal") as caught:
                opened()
            assert "permissions" in caught.value.hint
    finally:
        home.chmod(0o700)


def test_what_an_entry_makes_durable_is_not_synced_for_itself(opened, make) -> None:
    """To make and to claim a session wait for no disk; whatever comes of it, the next commit does."""
    store = opened()
    modes: list[int] = []

    def mode() -> int:
        ((found,),) = store._home._database._connection.rows("PRAGMA synchronous")
        return found

    store._home._database._connection.raw.set_commit_hook(lambda: modes.append(mode()) or False)
    store.create(make.row("s1"))
    with pytest.raises(StoreError):
        store.create(make.row("s1"))
    lease = store.claim("s1", "node")
    assert store.commit([make.commit(lease, 1, 1)]) == [True]
    assert modes == [1, 1, 2]
