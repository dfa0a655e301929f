"""A process that uses the journal, for tests that kill it: `child.py TASK FOLDER ARGUMENT…`.

Prints one line for each thing that is durable by then, straight to the pipe.
"""

import os
import resource
import sys
from pathlib import Path

from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Commit, Lease, SessionRow, Store, StoredEntry
from steersman.machines.errors import StoreFailed

__all__: list[str] = []


def say(text: str) -> None:
    """Tell the test, unbuffered."""
    os.write(1, f"{text}\n".encode())


def append(store: Store, lease: Lease, seq: int, size: int = 100) -> None:
    """Commit one entry of about `size` bytes and acknowledge it."""
    entry = StoredEntry(seq=seq, time=float(seq), data={"n": seq, "pad": "x" * size})
    row = SessionRow(session=lease.session, folder="/", seq=seq, updated=float(seq))
    if store.commit([Commit(lease=lease, entries=[entry], row=row)]) != [True]:
        say("LOST")
        return
    say(f"ACK {seq}")


def claimed(store: SqliteStore, session: str) -> Lease:
    """Make the session if need be, and own it."""
    if session not in [row.session for row in store.sessions()]:
        store.create(SessionRow(session=session, folder="/"))
    lease = store.claim(session, f"n{os.getpid()}")
    assert lease is not None
    return lease


def appending(folder: str, entries: str) -> None:
    """Append entries from the stored end on, with a checkpoint in between; then close."""
    store = SqliteStore.open(Path(folder))
    lease = claimed(store, "s1")
    start = store.load("s1").row.seq
    for seq in range(start + 1, start + int(entries) + 1):
        append(store, lease, seq)
        if seq % 5 == 0:
            store.settle()
    store.close()
    say("CLOSED")


def posting(folder: str, session: str, name: str, messages: str) -> None:
    """Post messages that carry a name and a number, after a line on stdin."""
    sys.stdin.readline()
    store = SqliteStore.open(Path(folder))
    for n in range(int(messages)):
        posted = store.post(session, 1, {"from": name, "n": n}, f"{name}-{n}")
        say(f"ACK {posted}")
    store.close()


def owning(folder: str, session: str) -> None:
    """Claim, say what came of it, then append an entry for each line on stdin."""
    store = SqliteStore.open(Path(folder))
    lease = store.claim(session, f"n{os.getpid()}")
    say(f"EPOCH {lease.epoch}" if lease else "NONE")
    for line in sys.stdin:
        assert lease is not None
        append(store, lease, int(line))
    store.close()


def joining(where: str, *sessions: str) -> None:
    """Be a node that owns sessions, and append an entry to the first for each line on stdin."""
    store: Store = SqliteStore.open(Path(where)) if "://" not in where else postgres(where)
    node = f"n{os.getpid()}"
    store.nodes.join(node, "here", 1)
    leases = [store.claim(session, node) for session in sessions]
    assert all(leases)
    say("READY")
    for line in sys.stdin:
        append(store, leases[0], int(line))
        say(f"BEAT {store.nodes.beat(node)}")
    store.close()


def postgres(url: str) -> Store:
    """Open a home on PostgreSQL whose owners count as dead soon."""
    from steersman.extensions.postgres.store import PostgresStore

    return PostgresStore.open(url, lease=2.0, fence=1.0)


def filling(folder: str, limit: str) -> None:
    """Append under a limit of file size until the store fails, then reopen without it."""
    store = SqliteStore.open(Path(folder))
    lease = claimed(store, "s1")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
    seq = 0
    try:
        while True:
            append(store, lease, seq + 1, 4000)
            seq += 1
    except StoreFailed as fault:
        say(f"FAILED {fault.message}")
    try:
        store.post("s1", 1, {})
    except StoreFailed:
        say("REFUSED")
    store.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store = SqliteStore.open(Path(folder))
    lease = claimed(store, "s1")
    append(store, lease, store.load("s1").row.seq + 1)
    store.close()


def making(folder: str) -> None:
    """Make everything that a store makes, with the umask of an open house."""
    os.umask(0)
    store = SqliteStore.open(Path(folder))
    append(store, claimed(store, "s1"), 1)
    store.wait("here", 0)
    say("READY")
    sys.stdin.readline()
    store.close()


TASKS = {
    "append": appending,
    "fill": filling,
    "make": making,
    "node": joining,
    "own": owning,
    "post": posting,
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
