"""A home on PostgreSQL beside one on SQLite: commits, claims, takeover, messages between programs.

Run it as `python benchmarks/homes.py`, with the package installed and Debian's PostgreSQL here. It starts
a server of its own, which syncs as a real one. Both stores take turns in short rounds: read the ratios,
for another program slows down both.
"""

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import apsw
from table import head, row

from journal import Session, grouped, one_each
from steersman.extensions.postgres.store import PostgresStore
from steersman.gateway.home.home import store_at
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.encoding import encode, encode_row, listing_of
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Lease, SessionRow, Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.postgres_server import PostgresServer

ROUNDS = 20
SESSIONS = 64
MANY = 20_000
TAKEN = 100
NOTHING_FOUND = 1
"""The exit code of a search."""
MONTHS = 90 * 86_400.0
CONFIG = """
[home]
url = "{}"
[models.main]
provider = "openai"
base_url = "http://127.0.0.1:9/v1"
model = "bench"
[agents.assistant]
model = "main"
"""
MESSAGES = 40

_OWNER = """
import sys
from steersman.extensions.postgres.store import PostgresStore
store = PostgresStore.open(sys.argv[1])
store.nodes.join("owner", "here", 1000)
print(len(store.nodes.claim_many("owner", "here", 1000)), flush=True)
sys.stdin.readline()
"""


def commits(stores: dict[str, Store]) -> None:
    """Compare commits of one session and of many, in turns."""
    sessions = {
        name: [Session(store, f"s{number}") for number in range(SESSIONS)]
        for name, store in stores.items()
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in stores}
    for _ in range(ROUNDS):
        for name, store in stores.items():
            single = one_each(store, sessions[name][:1])
            found[name].append((single, grouped(store, sessions[name])[0]))
    head("commits a second")
    for at, what in ((0, "1 session"), (1, f"{SESSIONS} sessions, grouped")):
        figures = {name: statistics.median(each[at] for each in found[name]) for name in stores}
        for name, figure in figures.items():
            row(f"{what}, {name}", figure, unit="1/s")
        ratio = figures["PostgreSQL"] / figures["SQLite"]
        goal = ">= 0.5 x" if at else ""
        row(f"{what}, PostgreSQL against SQLite", ratio, goal, ok=ratio >= 0.5 or not at, unit="x")


def claims(store: PostgresStore, server: PostgresServer, schema: str) -> None:
    """Claim many sessions that have mail, in one statement."""
    server.execute(
        f'INSERT INTO "{schema}".sessions (session, root, place, updated, state, row)'
        " SELECT 'm' || n, 'm' || n, 'many', 0, 'suspended',"
        f' \'{{"session":"m\' || n || \'","folder":"/"}}\' FROM generate_series(1, {MANY}) AS n'
    )
    server.execute(
        f'INSERT INTO "{schema}".inbox (session, lane, client_id, time, message)'
        f" SELECT 'm' || n, 1, '~', 0, '{{}}' FROM generate_series(1, {MANY}) AS n"
    )
    server.execute("ANALYZE")
    begin = time.perf_counter()
    leases = store.nodes.claim_many("claimer", "many", MANY)
    passed = time.perf_counter() - begin
    assert len(leases) == MANY
    head("claims")
    row(f"{MANY:,} sessions with mail, in one statement", passed, "<= 3 s", ok=passed <= 3)
    begin = time.perf_counter()
    store.nodes.release_many(leases)
    row(f"{MANY:,} sessions released", time.perf_counter() - begin, unit="s")


def takeover(store: PostgresStore, url: str) -> None:
    """Kill the owner of many sessions, and claim them."""
    passed: list[float] = []
    for number in range(3):
        for name in range(TAKEN):
            session = f"k{number}-{name}"
            store.create(SessionRow(session=session, folder="/", place="here"))
            store.post(session, 1, {})
        owner = subprocess.Popen(
            [sys.executable, "-c", _OWNER, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert owner.stdout is not None
        assert int(owner.stdout.readline()) >= TAKEN
        owner.kill()
        begin = time.perf_counter()
        leases = store.nodes.claim_many("heir", "here", 1000)
        while not leases:
            leases = store.nodes.claim_many("heir", "here", 1000)
        passed.append(time.perf_counter() - begin)
        for lease in leases:
            store.delete(lease)
        owner.communicate()
    most = max(passed)
    row(f"{TAKEN} sessions of a killed program, until claimed", most, "<= 1 s", ok=most <= 1)


def messages(stores: dict[str, tuple[Store, Store]]) -> None:
    """Time a message from one program's store until another's node is awake, and its reply is back."""
    head("a message to the program that owns the session, p50 (milliseconds)")
    for name, (owner, sender) in stores.items():
        owner.create(SessionRow(session="mail", folder="/"))
        lease = owner.claim("mail", "reader")
        assert lease is not None
        owner.wait("reader", 0)
        posted: list[float] = []
        awake: list[float] = []
        answered: list[float] = []

        def read(owner: Store = owner, lease: Lease = lease, awake: list[float] = awake) -> None:
            while len(awake) < MESSAGES:
                if owner.wait("reader", 5):
                    awake.append(time.perf_counter())
                    for message in owner.unconsumed("mail"):
                        owner.answer(lease, message.id, {})

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(MESSAGES):
            posted.append(time.perf_counter())
            sender.reply(sender.post("mail", 1, {}), 10)
            answered.append(time.perf_counter())
        reader.join()
        for what, moments in (("until the owner is awake", awake), ("until the reply", answered)):
            times = [1e3 * (end - start) for start, end in zip(posted, moments, strict=True)]
            row(f"{what}, {name}", statistics.median(times), unit="ms")


# Sessions that sleep ------------------------------------------------------------------------------


def fill(address: str, count: int) -> None:
    """Make sessions of one message, each in one of a thousand folders, over some months."""
    now, number = time.time(), 0
    with closing(
        store_at(address) if "://" in address else SqliteStore.open(Path(address))
    ) as store:
        store.create(SessionRow(session="first", folder="/"))
    rows: list[tuple[str | float, ...]] = []
    for number in range(count):
        session, used = f"{number:08x}", now - MONTHS * (count - number) / count
        row = SessionRow(
            session=session,
            folder=f"/home/ann/project{number % 1000}",
            title=f"fix the parser, attempt {number}",
            state="suspended",
            agent="assistant",
            created=used,
            updated=used,
            seq=1,
        )
        rows.append((session, session, used, encode_row(row), *listing_of(row)))
    columns = "session, root, updated, row, folder, name, hour, has_work"
    entries = [(row[0], row[2], encode("", encode_entry(begun(str(row[0]))))) for row in rows]
    if "://" in address:
        import psycopg

        with psycopg.connect(address.partition("&schema=")[0]) as line, line.cursor() as cursor:
            cursor.execute("SET search_path TO sleeping")
            with cursor.copy(f"COPY sessions ({columns}, state, seq, place) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row((*row, "suspended", 1, ""))
            with cursor.copy("COPY entries (session, time, data, seq) FROM STDIN") as copy:
                for entry in entries:
                    copy.write_row((*entry, 1))
        return
    database = apsw.Connection(str(Path(address, "journal.db")))
    with database:
        marks = ", ".join("?" * 8)
        database.executemany(f"INSERT INTO sessions ({columns}, seq) VALUES ({marks}, 1)", rows)
        database.executemany(
            "INSERT INTO entries (session, time, data, seq) VALUES (?, ?, ?, 1)", entries
        )
    database.close()


def begun(session: str) -> e.SessionOpened:
    """Return the first entry of a session."""
    return e.SessionOpened(
        session=session, folder="/", agent="assistant", model="main", system="Be brief."
    )


def taken(home: Path, *arguments: str) -> float:
    """Run a command: the least seconds of three times."""
    found: list[float] = []
    for _ in range(3):
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "steersman", *arguments],
            env={**os.environ, "STEERSMAN_HOME": str(home)},
            input=b"",
            capture_output=True,
            check=False,
        )
        found.append(time.perf_counter() - begin)
        assert done.returncode in (0, NOTHING_FOUND), done.stderr.decode()
    return min(found)


def sleeping(server: PostgresServer, many: int) -> None:
    """Time what a person does in a home of a thousand sleeping sessions, and in one of very many."""
    for name in ("SQLite", "PostgreSQL"):
        head(f"sleeping sessions of one home, {name}")
        found: dict[int, dict[str, float]] = {}
        for count in (1_000, many):
            with tempfile.TemporaryDirectory() as folder:
                home, address = Path(folder), str(Path(folder, "state"))
                url = ""
                if name == "PostgreSQL":
                    server.execute("DROP SCHEMA IF EXISTS sleeping CASCADE")
                    url = address = server.url("sleeping")
                    PostgresStore.make_home(address)
                (home / "config.toml").write_text(CONFIG.format(url))
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    pool.apply(fill, (address, count))
                opened = f"{count // 2:08x}"
                found[count] = {
                    "listed": taken(home, "sessions", "list"),
                    "searched": taken(home, "sessions", "search", "no such words"),
                    "one of them opened": taken(home, "inspect", opened),
                    "a chat begun and left": taken(home, "chat", "--json", "--cwd", folder),
                }
        for what, few in found[1_000].items():
            much = found[many][what]
            row(f"1,000 {what}", few, unit="s")
            row(f"{many:,} {what}", much, "<= 1 s", ok=much <= 1, unit="s")
            row("for each that is more", (much - few) / (many - 1_000) * 1e6, unit="µs")


def main() -> None:
    """Print the tables, or one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", help="stores, sleeping; none for all")
    parser.add_argument("--sessions", type=int, default=1_000_000, help="that sleep")
    given = parser.parse_args()
    server = PostgresServer(fsync="on", shared_buffers="128MB")
    try:
        server.make()
        url = server.url("bench")
        PostgresStore.make_home(url)
        if "sleeping" in given.tables or not given.tables:
            sleeping(server, given.sessions)
        if given.tables and "stores" not in given.tables:
            return
        with tempfile.TemporaryDirectory() as folder:
            sqlite = [SqliteStore.open(Path(folder, "state")) for _ in range(2)]
            postgres = [PostgresStore.open(url) for _ in range(2)]
            commits({"SQLite": sqlite[0], "PostgreSQL": postgres[0]})
            messages(
                {
                    "SQLite": (sqlite[0], sqlite[1]),
                    "PostgreSQL": (postgres[0], postgres[1]),
                }
            )
            claims(postgres[0], server, "bench")
            takeover(postgres[1], url)
            for store in (*sqlite, *postgres):
                store.close()
    finally:
        server.remove()


if __name__ == "__main__":
    main()
