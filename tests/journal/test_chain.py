"""Journals that were altered by hand: each is named at the first entry that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pytest
from journal.conftest import claimed, durable
from support.older_home import make_older

from steersman.journal.chain import Kept, check_chain
from steersman.journal.store import Store

LENGTH = 6
Alter = Callable[[str], Store]


@pytest.fixture
def alter(backend, make) -> Alter:
    """Make a home with two sessions of six entries; what is returned alters it, and opens it again."""
    store = backend.open()
    for session in ("s1", "s2"):
        store.create(make.row(session))
        lease = claimed(store, session)
        store.commit([make.commit(lease, 1, 2), make.commit(lease, 3, 3)])
        store.release(lease)
        lease = claimed(store, session, "n2")
        store.commit([make.commit(lease, 4, 4)])
        store.commit([make.commit(lease, 5, LENGTH)])
        store.release(lease)
    store.close()
    return backend.alter


def report(store: Store, session: str = "s1", kept: Kept | None = None):
    """Look through a session."""
    position = store.position(session)
    return check_chain(session, store.links(session), position.seq, position.head, kept)


MINE = "session = 's1' AND seq"
LATER = f"UPDATE entries SET seq = seq + 100 WHERE {MINE} > 2 AND seq < 100;"
TAKE_OUT = f"DELETE FROM entries WHERE {MINE} = 3; {LATER} "
ALTERED = {
    "its words": (f"UPDATE entries SET data = replace(data, '4', '7') WHERE {MINE} = 4", 4),
    "its time": (f"UPDATE entries SET time = time + 1 WHERE {MINE} = 2", 2),
    "the first": (f"UPDATE entries SET data = '{{}}' WHERE {MINE} = 1", 1),
    "the last": (f"UPDATE entries SET data = '{{}}' WHERE {MINE} = 6", 6),
    "taken out": (f"DELETE FROM entries WHERE {MINE} = 3", 3),
    "taken out, and those behind it moved up": (
        f"{TAKE_OUT} UPDATE entries SET seq = seq - 101 WHERE {MINE} > 100;"
        "UPDATE sessions SET seq = 5 WHERE session = 's1'",
        3,
    ),
    "put in": (
        f"{LATER} UPDATE entries SET seq = seq - 99 WHERE {MINE} > 100;"
        "INSERT INTO entries (session, seq, time, data, hash)"
        f" SELECT session, 3, time, data, hash FROM entries WHERE {MINE} = 2;"
        "UPDATE sessions SET seq = 7 WHERE session = 's1'",
        3,
    ),
    "two that change places": (
        f"UPDATE entries SET seq = 99 WHERE {MINE} = 4;"
        f"UPDATE entries SET seq = 4 WHERE {MINE} = 5; UPDATE entries SET seq = 5 WHERE {MINE} = 99",
        4,
    ),
    "of another session": (
        f"DELETE FROM entries WHERE {MINE} = 5;"
        "UPDATE entries SET session = 's1' WHERE session = 's2' AND seq = 5",
        5,
    ),
    "cut off at the end": (
        f"DELETE FROM entries WHERE {MINE} = 6; UPDATE sessions SET seq = 5 WHERE session = 's1'",
        5,
    ),
    "lost at the end": (f"DELETE FROM entries WHERE {MINE} = 6", 6),
    "added at the end": (
        "INSERT INTO entries (session, seq, time, data, hash)"
        f" SELECT session, 7, time, data, hash FROM entries WHERE {MINE} = 6",
        7,
    ),
    "without its hash": (
        f"UPDATE entries SET hash = substr(hash, 1, 0), data = '{{}}' WHERE {MINE} = 4",
        4,
    ),
}


@durable
@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_journal_is_named_where_it_begins(alter: Alter, name: str) -> None:
    """And a journal beside it is as it was."""
    statements, seq = ALTERED[name]
    store = alter(statements)

    fault = report(store).fault
    assert fault is not None
    assert fault.seq == seq
    if name != "of another session":
        assert report(store, "s2").fault is None


@durable
def test_a_journal_that_nobody_altered_fits(alter: Alter) -> None:
    """Its head is the hash of all: of each entry with the hash before it, as the page says."""
    store = alter("SELECT 1")
    before = b""
    for entry, (_, time, data, found) in zip(store.entries("s1"), store.links("s1"), strict=True):
        text = f"\ns1 {entry.seq} {time!r}\n{data}"
        before = sha256(before + text.encode()).digest()
        assert found == before

    checked = report(store)
    assert (checked.entries, checked.unproven, checked.fault) == (LENGTH, 0, None)
    assert checked.head == before.hex() == store.position("s1").head.hex()


@durable
def test_a_chain_that_was_made_anew_does_not_fit_a_head_that_was_kept(alter: Alter) -> None:
    """Who can write the database can also write hashes: what was kept elsewhere is out of reach."""
    store = alter("SELECT 1")
    kept = Kept(LENGTH, report(store).head)
    assert report(store, kept=kept).fault is None
    assert report(store, kept=Kept(LENGTH, "00" * 32)).fault is not None
    longer = report(store, kept=Kept(LENGTH + 1, "00" * 32)).fault
    assert longer is not None
    assert longer.seq == LENGTH + 1


def test_entries_of_an_older_version_are_passed_over(home, opened, make) -> None:
    """They have no hash; what is written from now on is chained."""
    store = opened()
    store.create(make.row("s1"))
    lease = claimed(store)
    store.commit([make.commit(lease, 1, 3)])
    store.release(lease)
    store.close()
    make_older(home / "journal.db")
    store = opened()
    lease = claimed(store)
    store.commit([make.commit(lease, 4, 5)])

    checked = report(store)
    assert (checked.entries, checked.unproven, checked.fault) == (5, 3, None)
