"""What a home on PostgreSQL survives: lost connections, servers and machines."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from journal.conftest import claimed
from support.cut_wire import CutWire
from support.patience import seconds
from support.postgres_server import PostgresServer, as_server
from support.until import until

from steersman.extensions.postgres.connection import without_password
from steersman.extensions.postgres.store import PostgresStore
from steersman.journal.commitment import COMMIT_TIMEOUT
from steersman.journal.store import Lease, Occurrence, RowFilter, SessionRow, Watch
from steersman.journal.writer import Result, Writer
from steersman.machines.errors import (
    StoreError,
    StoreFailed,
    StoreTooNew,
    StoreTooOld,
    UsageError,
)

Open = Callable[..., PostgresStore]
POOLER = 6432  # the name of a pooler's Unix socket ends with its port


@pytest.fixture
def opened(closing) -> Open:
    """Open homes, which are closed at the end of the test."""

    def open_store(url: str, **options: Any) -> PostgresStore:
        store = PostgresStore.open(url, **{"fence": seconds(10), "lease": seconds(20), **options})
        closing.callback(store.close)
        return store

    return open_store


@pytest.fixture
def wire(postgres_server: PostgresServer) -> Iterator[CutWire]:
    """A wire to the server that can be cut."""
    made = CutWire(postgres_server.folder / ".s.PGSQL.5432")
    yield made
    made.close()


class Writing:
    """A session that the node `n1` owns, and a writer whose results are kept by the entry's number."""

    def __init__(
        self, store: PostgresStore, make: Any, session: str = "s1", patience: float = COMMIT_TIMEOUT
    ) -> None:
        store.create(make.row(session))
        self.lease = claimed(store, session)
        self.results: dict[int, Result] = {}
        self.writer = Writer[int](store, lambda results: self.results.update(results), patience)
        self._make = make

    def submit(self, seq: int) -> None:
        """Submit a commit of one entry."""
        self.writer.submit(self._make.commit(self.lease, seq, seq), seq)

    def write(self, seq: int) -> Result:
        """Commit one entry and wait for its result."""
        self.submit(seq)
        self.writer.flush()
        return self.results[seq]


def through(url: str, wire: CutWire) -> str:
    """Return the address of a home through a wire."""
    schema = url.partition("schema=")[2]
    return f"postgresql://postgres@127.0.0.1:{wire.port}/postgres?schema={schema}"


def either(primary: PostgresServer, replica: PostgresServer) -> str:
    """Return the address of a home at the one of two servers that takes writes."""
    folders = f"{primary.folder},{replica.folder}"
    return primary.url("home", host=folders, target_session_attrs="read-write")


def exercise(store: PostgresStore, make: Any, session: str) -> None:
    """Do one of each thing that writes, as if no connection could be lost."""
    writing = Writing(store, make, session)
    lease = writing.lease
    assert writing.write(1) is True
    first = store.post(session, 1, {"n": 1}, "key")
    second = store.post(session, 1, {"n": 2})
    writing.writer.submit(make.commit(lease, 2, 3, consumed=(first,)), 2)
    writing.writer.flush()
    assert writing.results[2] is True
    assert store.answer(lease, second, {"ok": True})
    assert store.note(
        Watch(schedule=session, timing="x", upto=1.0),
        [Occurrence(schedule=session, planned=1.0, state="due", session=session, noted=1.0)],
    ) == [True]
    writing.writer.close()
    store.release(lease)
    store.post(session, 1, {"n": 3})
    (again,) = store.nodes.claim_many("n1", "", 5)
    assert again.epoch == lease.epoch + 1
    store.nodes.release_many([again])
    assert [entry.seq for entry in store.entries(session)] == [1, 2, 3]
    assert [message.message for message in store.unconsumed(session)] == [{"n": 3}]
    assert store.reply(second, 0) == {"ok": True}
    store.delete(store.claim(session, "n1"))


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_may_be_lost_at_any_message(postgres_url, wire, opened, make, side):
    """Whatever message is cut off, before or after it was carried out, nothing is lost or doubled."""
    store = opened(through(postgres_url, wire))
    exercise(store, make, "warm")
    number = 0
    while wire.cuts == number:
        number += 1
        wire.cut_at(number, side)
        exercise(store, make, f"s{number}")
    assert number > 25
    assert store.sessions() == []


def test_terminated_connections_are_made_again(postgres_server, postgres_url, opened, make):
    """The server ends both connections: the next commit is durable, and the session is still owned."""
    lasting = {"lease": seconds(60)}  # connections are made again within a 20th of it
    store, other = opened(postgres_url, **lasting), opened(postgres_url, **lasting)
    writing = Writing(store, make)
    for seq in range(1, 6):
        postgres_server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'steersman' AND pid <> pg_backend_pid()"
        )
        assert writing.write(seq) is True
        assert other.claim("s1", "n2") is None
    writing.writer.close()
    assert store.epoch("s1") == 1


def test_a_lock_that_is_found_free_has_its_grace(postgres_server, postgres_url, opened, make):
    """Its node is not dead before somebody has suspected it for a 20th of the lease."""
    lease = 20.0
    store, other = opened(postgres_url, lease=lease), opened(postgres_url, lease=lease)
    store.create(make.row("s1"))
    assert store.claim("s1", "n1") is not None
    schema = postgres_url.partition("schema=")[2]
    postgres_server.execute(
        f"UPDATE \"{schema}\".nodes SET lock = 999999, host = 'elsewhere' WHERE node = 'n1'"
    )
    began = time.monotonic()
    assert other.claim("s1", "n2") is not None
    assert time.monotonic() - began >= lease / 20


@pytest.mark.nightly
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_server_that_restarts_is_ridden_out(own_server, opened, make, how):
    """Commits wait for the server and are durable; nobody takes the session meanwhile."""
    server = own_server().make()
    url = server.url("home")
    PostgresStore.make_home(url)
    store, other = opened(url), opened(url)
    writing = Writing(store, make)
    assert writing.write(1) is True
    if how == signal.SIGKILL:
        server.kill()
    else:
        server.stop()
    writing.submit(2)
    server.start()
    writing.writer.flush()
    assert writing.results[2] is True
    assert other.claim("s1", "n2") is None
    assert writing.write(3) is True
    writing.writer.close()


@pytest.mark.nightly
def test_a_server_that_stays_away_breaks_the_session(own_server, opened, make):
    """After `fence` seconds the commit fails, and all that follow, until the writer begins again."""
    server = own_server().make()
    url = server.url("home")
    PostgresStore.make_home(url)
    store = opened(url, fence=0.5)
    writing = Writing(store, make)
    server.stop()
    assert isinstance(writing.write(1), StoreFailed)
    server.start()
    assert isinstance(writing.write(1), StoreFailed)
    writing.writer.resume()
    assert writing.write(1) is True
    writing.writer.close()


def test_a_replica_takes_over_without_a_loss(own_server, opened, make):
    """A synchronous replica is promoted: all that was acknowledged is there, and the lease holds."""
    primary = own_server(fsync="on").make()
    replica = own_server().copy_of(primary, "replica")
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    url = either(primary, replica)
    PostgresStore.make_home(url)
    store = opened(url, fence=seconds(30), lease=seconds(60))
    writing = Writing(store, make)
    for seq in range(1, 20):
        assert writing.write(seq) is True
    began = time.monotonic()
    primary.kill()
    writing.submit(20)
    replica.execute("SELECT pg_promote(wait => false)")
    writing.writer.flush()
    assert writing.results[20] is True
    print(f"the commit during the failover took {time.monotonic() - began:.2f} s")
    assert writing.write(21) is True
    writing.writer.close()
    assert [entry.seq for entry in store.entries("s1")] == list(range(1, 22))
    assert store.epoch("s1") == 1
    assert opened(url).claim("s1", "n2") is None


@pytest.mark.nightly
def test_a_primary_without_its_replica_breaks_the_session(own_server, opened, make):
    """No commit is answered: after `patience` the session stops, and nothing is written twice.

    When the primary waits for its replica no more, the entry is durable, and the journal goes on.
    """
    primary = own_server().make()
    replica = own_server().copy_of(primary, "replica")
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    url = primary.url("home")
    PostgresStore.make_home(url)
    store = opened(url, fence=1.0, lease=2.0)
    writing = Writing(store, make, patience=2.0)
    assert writing.write(1) is True
    replica.kill()
    assert isinstance(writing.write(2), StoreError)
    assert isinstance(writing.write(3), StoreError)
    primary.execute("ALTER SYSTEM RESET synchronous_standby_names")
    primary.execute("SELECT pg_reload_conf()")
    writing.writer.resume()
    wait_until(lambda: store.row("s1").seq == 2)
    assert writing.write(3) is True
    writing.writer.close()
    assert [entry.seq for entry in store.entries("s1")] == [1, 2, 3]


@pytest.mark.nightly
def test_a_replica_that_was_behind_breaks_the_session_loudly(own_server, opened, make):
    """Entries that were acknowledged are gone with the primary: nothing is renumbered."""
    primary = own_server().make()
    replica = own_server().copy_of(primary, "replica")
    url = either(primary, replica)
    PostgresStore.make_home(url)
    store = opened(url, fence=seconds(30), lease=seconds(60))
    writing = Writing(store, make)
    assert writing.write(1) is True
    wait_until(lambda: replica.execute("SELECT count(*) FROM home.entries")[0][0] == 1)
    replica.execute("SELECT pg_wal_replay_pause()")
    replica.stop()
    (replica.data / "standby.signal").rename(replica.data / "kept")
    assert writing.write(2) is True
    assert writing.write(3) is True
    primary.kill()
    replica.start()
    found = writing.write(4)
    assert isinstance(found, StoreError)
    assert [entry.seq for entry in store.entries("s1")] == [1]
    writing.writer.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition; while it cannot be looked at, it does not hold."""

    def holds() -> bool:
        with contextlib.suppress(Exception):
            return is_so()
        return False

    until(holds)


def test_a_database_without_room_says_so(postgres_server, postgres_url, opened, make):
    """A database that refuses writes is reported, and what was accepted stays; then writing goes on."""
    store = opened(postgres_url, fence=0.3)
    writing = Writing(store, make)
    assert writing.write(1) is True
    postgres_server.execute("ALTER ROLE postgres SET default_transaction_read_only = on")
    try:
        store._line._drop()
        found = writing.write(2)
        assert isinstance(found, StoreFailed)
        assert "read-only" in found.message
        assert [entry.seq for entry in store.entries("s1")] == [1]
    finally:
        postgres_server.execute("ALTER ROLE postgres RESET default_transaction_read_only")
    writing.writer.resume()
    store._line._drop()
    assert writing.write(2) is True
    writing.writer.close()


def test_a_killed_node_is_taken_over_at_once(postgres_url, opened, children):
    """All of a hundred sessions are claimed in one statement after the grace of the lock."""
    store = opened(postgres_url)
    names = [f"s{number:03}" for number in range(100)]
    for name in names:
        store.create(SessionRow(session=name, folder="/", place="here"))
    child = children.start("node", postgres_url, *names)
    assert child.stdout.readline() == "READY\n"
    assert store.nodes.claim_many("n1", "here", 1000) == []
    child.kill()
    child.wait()
    wait_until(lambda: not store.nodes.rows()[0].is_alive)
    assert len(store.nodes.claim_many("n1", "here", 1000)) == 100


def test_a_paused_node_is_refused_when_it_wakes(postgres_url, opened, children, make):
    """After its lease others take its session; its commit is refused, and its beat says so."""
    store = opened(postgres_url)
    store.create(SessionRow(session="s1", folder="/", place="here"))
    child = children.start("node", postgres_url, "s1")
    assert child.stdout.readline() == "READY\n"
    child.stdin.write("1\n")
    child.stdin.flush()
    assert [child.stdout.readline() for _ in range(2)] == ["ACK 1\n", "BEAT True\n"]
    os.kill(child.pid, signal.SIGSTOP)
    taken: list[Lease] = []
    wait_until(lambda: bool(taken.extend(store.nodes.claim_many("n1", "here", 9)) or taken))
    os.kill(child.pid, signal.SIGCONT)
    child.stdin.write("2\n")
    child.stdin.flush()
    assert [child.stdout.readline() for _ in range(2)] == ["LOST\n", "BEAT False\n"]
    assert store.commit([make.commit(taken[0], 2, 2)]) == [True]


def test_two_homes_share_a_database(postgres_server, opened):
    """The same session and node ids in both: each has its owner, its numbers and its bell."""
    urls = [postgres_server.url(name) for name in ("first", "second")]
    for url in urls:
        assert PostgresStore.make_home(url)
        assert not PostgresStore.make_home(url)
    first, second = (opened(url) for url in urls)
    for store in (first, second):
        store.create(SessionRow(session="s1", folder="/"))
        assert store.claim("s1", "n1")
        assert store.wait("n1", 0) == []
    first.post("s1", 1, {})
    assert second.wait("n1", 0) == []
    assert first.wait("n1", 60) == ["s1"]
    first.close()
    assert second.is_owned("s1")


def test_the_clocks_of_hosts_do_not_matter(postgres_url, opened):
    """A process whose clock is a year off neither loses its sessions nor takes those of others."""
    year = 366 * 86_400.0
    store = opened(postgres_url, clock=lambda: time.time() - year)
    other = opened(postgres_url, clock=lambda: time.time() + year)
    store.create(SessionRow(session="s1", folder="/", place="here"))
    assert store.claim("s1", "n1")
    other.post("s1", 1, {})
    assert other.claim("s1", "n2") is None
    assert other.nodes.claim_many("n2", "here", 9) == []
    assert store.wait("n1", 60) == ["s1"]


@pytest.mark.parametrize(("version", "oldest", "error"), [(9, 9, StoreTooNew), (0, 0, StoreTooOld)])
def test_another_version_is_refused(postgres_server, postgres_url, opened, version, oldest, error):
    """Tables of a later program are not touched, nor those of an earlier one."""
    schema = postgres_url.partition("schema=")[2]
    postgres_server.execute(f'UPDATE "{schema}".about SET version={version}, oldest={oldest}')
    with pytest.raises(error, match=f"version {version}"):
        opened(postgres_url)


def test_a_later_version_that_earlier_ones_can_use_is_opened(postgres_server, postgres_url, opened):
    """The oldest version that can use the tables counts, so that nodes are renewed one by one."""
    schema = postgres_url.partition("schema=")[2]
    postgres_server.execute(f'UPDATE "{schema}".about SET version = 9')
    assert opened(postgres_url).sessions() == []


def test_sessions_of_an_earlier_version_are_listed(postgres_server, postgres_url, opened):
    """The columns by which rows are found are made and filled in by `home init`, and at each opening."""
    schema = postgres_url.partition("schema=")[2]
    store = opened(postgres_url)
    for name in ("s1", "s2"):
        store.create(SessionRow(session=name, folder=f"/{name}", name=f"the {name}", updated=9e8))
    columns = ("folder", "name", "hour", "has_work")
    dropped = ", ".join(f"DROP COLUMN {column}" for column in columns)
    postgres_server.execute(f'ALTER TABLE "{schema}".sessions {dropped}')
    postgres_server.execute(f'UPDATE "{schema}".about SET version = 2')
    with pytest.raises(StoreError, match="version 2"):
        opened(postgres_url)
    assert not PostgresStore.make_home(postgres_url)
    found = opened(postgres_url)
    assert [row.session for row in found.sessions(RowFilter(folder="/s1"))] == ["s1"]
    postgres_server.execute(f"UPDATE \"{schema}\".sessions SET hour = NULL, name = ''")
    assert found.sessions(RowFilter(name="the s2")) == []
    assert [row.session for row in opened(postgres_url).sessions(RowFilter(name="the s2"))] == [
        "s2"
    ]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:geheim@127.0.0.1:1/x?connect_timeout=2",
        "postgresql://127.0.0.1:1/x?user=ann&password=geheim",
        "postgresql://ann:geheim%zz@127.0.0.1:1/x",
        "postgresql://ann:geheim@127.0.0.1:1/x?nonsense=geheim",
        "postgresql://ann:geheim@127.0.0.1:99999999/x?schema=A-B",
    ],
)
def test_a_password_is_in_no_message(url):
    """Neither in that of an address that is wrong, nor of a server that cannot be reached."""
    with pytest.raises((StoreError, UsageError)) as caught:
        PostgresStore.open(url)
    shown = f"{caught.value.message} {caught.value.hint} {caught.value!r}"
    assert "geheim" not in shown.replace("password=geheim&", "")
    assert "geheim" not in without_password(url).replace("nonsense=geheim", "")


def test_a_schema_without_a_home_has_the_next_step(postgres_server, opened):
    """`home init` is named."""
    with pytest.raises(StoreError, match="there is no home") as caught:
        opened(postgres_server.url("nothing"))
    assert "home init" in caught.value.hint


@pytest.fixture
def pooler(postgres_server: PostgresServer) -> Iterator[Callable[[str], Path]]:
    """Start a pooler in front of the server; returns the folder of its Unix socket."""
    program = Path("/usr/sbin/pgbouncer")
    if not program.exists():
        pytest.skip("there is no pgbouncer here: `apt-get install pgbouncer`")
    started: list[subprocess.Popen[bytes]] = []

    def start(mode: str) -> Path:
        folder = postgres_server.folder / f"pooler-{mode}"
        folder.mkdir(exist_ok=True)
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(
            f"[databases]\n* = host={postgres_server.folder} user=postgres\n[pgbouncer]\n"
            f"listen_addr =\nlisten_port = {POOLER}\nunix_socket_dir = {folder}\n"
            f"auth_type = any\nauth_file = {folder}/users\npool_mode = {mode}\n"
            "default_pool_size = 5\nserver_idle_timeout = 5\n"
        )
        account = as_server(folder)
        if account:
            for file in folder.iterdir():
                os.chmod(file, 0o644)
        started.append(
            subprocess.Popen(
                [str(program), "-q", str(folder / "ini")],
                cwd="/",
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                **account,
            )
        )

        def answers() -> bool:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"{folder}/.s.PGSQL.{POOLER}")
                return True

        wait_until(answers)
        return folder

    yield start
    for process in started:
        process.terminate()
        process.wait(seconds(30))


@pytest.mark.parametrize(("mode", "can_listen"), [("session", True), ("transaction", False)])
def test_a_pooler_in_between(postgres_url, pooler, opened, make, mode, can_listen):
    """Behind a session pooler all is as without; behind a transaction pooler the inbox is looked into."""
    schema = postgres_url.partition("schema=")[2]
    where = f"host={pooler(mode)}&port={POOLER}"
    url = f"postgresql://postgres@/postgres?{where}&schema={schema}"
    store, other = opened(url), opened(url)
    store.create(make.row("s1"))
    lease = store.claim("s1", "n1")
    assert store.can_listen == can_listen
    assert other.claim("s1", "n2") is None
    assert store.wait("n1", 0) == []
    posting = threading.Thread(target=other.post, args=("s1", 1, {}))
    posting.start()
    assert store.wait("n1", 60) == ["s1"]
    posting.join()
    for seq in range(1, 12):  # more often than until a statement is prepared
        assert store.commit([make.commit(lease, seq, seq)]) == [True]
    store.release(lease)
    assert other.claim("s1", "n2") is not None
