"""What durability costs: group commit beside one commit each, and loading a long session.

Run it as `python benchmarks/journal.py [FOLDER]`, with the package installed; the store is made
in a new folder beneath FOLDER, by default the system's temporary one, and removed. The measures
take turns in short rounds, since another program's writes slow down all of them.

What group commit shares is the sync. Where that is nearly free (a memory disk, a cache that does
not ask the disk) the processor is the limit, and the aim of ten times is missed.
"""

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from table import head, row

from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Commit, Lease, SessionRow, Snapshot, Store, StoredEntry
from steersman.journal.writer import Result, Writer

ROUNDS = 60
SESSIONS = 64
SECONDS = 0.08  # of each measure in a round
TAIL = 100
SHORT, LONG = 1_000, 100_000  # entries of the sessions that are loaded


class Session:
    """One session that commits an entry of about 200 bytes at a time."""

    def __init__(self, store: Store, name: str) -> None:
        store.create(SessionRow(session=name, folder="/"))
        lease = store.claim(name, "bench")
        assert lease is not None
        self.lease: Lease = lease
        self.seq = 0

    def next(self, entries: int = 1, snapshot: Snapshot | None = None) -> Commit:
        """Make the next commit."""
        first, self.seq = self.seq + 1, self.seq + entries
        made = [
            StoredEntry(
                seq=seq, time=float(seq), data={"kind": "noted", "n": seq, "text": "x" * 160}
            )
            for seq in range(first, self.seq + 1)
        ]
        return Commit(
            lease=self.lease,
            entries=made,
            row=SessionRow(session=self.lease.session, folder="/"),
            consumed=(),
            snapshot=snapshot,
        )


def one_each(store: Store, sessions: list[Session]) -> float:
    """Commits a second when each is a transaction of its own."""
    done = 0
    begin = time.perf_counter()
    while (passed := time.perf_counter() - begin) < SECONDS:
        store.commit([sessions[done % len(sessions)].next()])
        done += 1
    return done / passed


def grouped(store: Store, sessions: list[Session]) -> tuple[float, float]:
    """Commits a second, and a sync, when each session goes on as soon as its last is durable."""
    done = groups = 0
    begin = time.perf_counter()
    is_over = threading.Event()

    def deliver(results: list[tuple[Session, Result]]) -> None:
        nonlocal done, groups
        done += len(results)
        groups += 1
        assert all(result is True for _, result in results), results
        if time.perf_counter() - begin > SECONDS:
            is_over.set()
            return
        for session, _ in results:
            writer.submit(session.next(), session)

    writer = Writer(store, deliver)
    for session in sessions:
        writer.submit(session.next(), session)
    is_over.wait()
    writer.close()
    return done / (time.perf_counter() - begin), done / groups


def synced(file: int) -> float:
    """Appends a second of the same size, each with its own fdatasync: what the disk can do."""
    done = 0
    begin = time.perf_counter()
    while (passed := time.perf_counter() - begin) < SECONDS:
        os.write(file, b"x" * 200)
        os.fdatasync(file)
        done += 1
    return done / passed


def loading(store: SqliteStore, name: str, entries: int) -> Callable[[], object]:
    """Make a session of that many entries, the last 100 of them after its snapshot."""
    session = Session(store, name)
    state = {"messages": ["x" * 100] * 200}
    store.commit([session.next(entries - TAIL)])
    store.commit([session.next(TAIL, Snapshot(seq=entries - TAIL, state=state))])
    assert len(store.load(name).tail) == TAIL
    return lambda: store.load(name)


def milliseconds(run: Callable[[], object], repeats: int = 30) -> float:
    """Time one call, in milliseconds."""
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats * 1e3


def show_commits(store: SqliteStore, file: int) -> None:
    """Compare group commit of 64 sessions, of one, and one commit each."""
    sessions = [Session(store, f"s{n}") for n in range(SESSIONS)]
    rounds = [
        (
            synced(file),
            one_each(store, sessions),
            grouped(store, sessions[:1])[0],
            *grouped(store, sessions),
        )
        for _ in range(ROUNDS)
    ]
    means = (statistics.mean(column) for column in zip(*rounds, strict=True))
    disk, single, lone, group, shared = means
    gain, alone = group / single, lone / single
    gains = [one[3] / one[1] for one in rounds]
    head("durable acceptance")
    row("append and fdatasync, no store", disk, unit="1/s")
    row("a transaction each", single, unit="1/s")
    row("through the writer, 1 session", lone, unit="1/s")
    row(f"through the writer, {SESSIONS} sessions", group, unit="1/s")
    row(f"commits that share a sync, {SESSIONS} sessions", shared, ">= 10", ok=shared >= 10)
    row(f"{SESSIONS} sessions against a transaction each", gain, ">= 10 x", ok=gain >= 10)
    row("  the least and", min(gains), unit="x")
    row("  the median of the rounds", statistics.median(gains), unit="x")
    row("1 session against a transaction each", alone, ">= 0.7 x", ok=alone >= 0.7)


def show_loads(store: SqliteStore) -> None:
    """Compare loading a short and a long session with the same tail."""
    short, long = loading(store, "short", SHORT), loading(store, "long", LONG)
    rounds = [(milliseconds(short), milliseconds(long)) for _ in range(ROUNDS // 10)]
    growth = statistics.median(slow / fast for fast, slow in rounds)
    head(f"loading a snapshot and {TAIL} entries")
    row(f"of {SHORT:,} entries", min(one[0] for one in rounds), unit="ms")
    row(f"of {LONG:,} entries", min(one[1] for one in rounds), unit="ms")
    row("long against short", growth, "<= 1.5 x", ok=growth <= 1.5)


def main() -> None:
    """Print the tables."""
    parent = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        store = SqliteStore.open(Path(folder, "state"))
        file = os.open(Path(folder, "plain"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            show_commits(store, file)
            show_loads(store)
        finally:
            os.close(file)
            store.close()


if __name__ == "__main__":
    main()
