"""What every store promises, tried on each."""

import threading
from typing import Any

import pytest
from journal.conftest import claimed
from msgspec.structs import replace
from support.patience import seconds

from steersman.journal.store import (
    EVERY,
    REMEMBERED,
    Commit,
    Lease,
    Loaded,
    Occurrence,
    RowFilter,
    SessionRow,
    Snapshot,
    StoredEntry,
    Watch,
)
from steersman.machines.errors import MachineError, StoreError, UnknownSession, UsageError


def test_a_session_begins_empty(store, make):
    """A new session has its row, and nothing else."""
    assert store.load("s1") == Loaded(row=make.row("s1"), snapshot=None, tail=())
    assert store.sessions() == [make.row("s1")]
    assert not store.is_owned("s1")


def test_a_session_is_made_once(store, make):
    """An id that is taken is refused, and its session stays."""
    with pytest.raises(StoreError, match="exists already"):
        store.create(replace(make.row("s1"), folder="/other"))
    assert store.sessions() == [make.row("s1")]


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.load("s2"),
        lambda store: list(store.entries("s2")),
        lambda store: store.unconsumed("s2"),
        lambda store: store.claim("s2", "n1"),
        lambda store: store.post("s2", 1, {}),
    ],
)
def test_an_unknown_session_is_said_to_be_unknown(store, ask):
    """Whatever is asked of a session that is not, the answer names it."""
    with pytest.raises(UnknownSession, match="`s2`"):
        ask(store)


@pytest.mark.parametrize(
    "name",
    ["", "../x", "/etc", "a/b", "a\0b", "a\n", "-rf", "A", "é", "a" * 65, ".", "s1.", "con:"],
)
def test_an_odd_id_is_refused_everywhere(store, make, name):
    """An id that is not on the allowlist reaches no file, as a session or as a node."""
    asked = [
        lambda: store.create(make.row(name)),
        lambda: store.claim(name, "n1"),
        lambda: store.claim("s1", name),
        lambda: store.is_owned(name),
        lambda: store.load(name),
        lambda: store.post(name, 1, {}),
        lambda: store.wait(name, 0),
    ]
    for ask in asked:
        with pytest.raises(UsageError):
            ask()


def test_what_was_committed_is_read_back(backend, store, make):
    """Entries, row and consumed messages are read back whole, also from a reopened store."""
    posted = store.post("s1", 1, {"text": "hello"})
    assert store.commit([make.commit(claimed(store), 1, 3, consumed=(posted,))]) == [True]
    expected = Loaded(
        row=make.row("s1", 3, 3.5), snapshot=None, tail=tuple(make.entry(seq) for seq in (1, 2, 3))
    )
    assert store.load("s1") == expected
    assert backend.reopen(store).load("s1") == expected


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"text": "half a pair \ud83d, nul \0, line\u2028end"},
        {"nested": [{"a": [1, 2.5, None, True]}], "big": 2**70},
        {"long": "ü" * 100_000},
    ],
)
def test_any_json_survives(backend, store, make, data: dict[str, Any]):
    """What the caller gives as JSON is what it gets back, down to broken surrogates."""
    store.commit(
        [
            Commit(
                lease=claimed(store),
                entries=[StoredEntry(seq=1, time=1.0, data=data)],
                row=make.row("s1"),
            )
        ]
    )
    store.post("s1", 1, data)
    again = backend.reopen(store)
    assert [entry.data for entry in again.entries("s1")] == [data]
    assert [message.message for message in again.unconsumed("s1")] == [data]


def test_nothing_is_shared_with_the_caller(store, make):
    """A value that is changed after its commit is not changed in the store."""
    data = {"list": [1]}
    store.commit(
        [
            Commit(
                lease=claimed(store),
                entries=[StoredEntry(seq=1, time=1.0, data=data)],
                row=make.row("s1"),
            )
        ]
    )
    data["list"].append(2)
    assert [entry.data for entry in store.entries("s1")] == [{"list": [1]}]


def test_the_store_counts_for_itself(store, make):
    """The row's sequence number is the journal's, whatever the caller wrote there."""
    commit = make.commit(claimed(store), 1, 2)
    store.commit([replace(commit, row=replace(commit.row, seq=77))])
    assert store.load("s1").row.seq == 2
    assert store.sessions()[0].seq == 2


def test_a_commit_without_entries_changes_the_row(store, make):
    """A row can be updated without an entry."""
    lease = claimed(store)
    store.commit([Commit(lease=lease, entries=[], row=replace(make.row("s1"), name="renamed"))])
    assert store.load("s1") == Loaded(
        row=replace(make.row("s1"), name="renamed"), snapshot=None, tail=()
    )


def bad_commits(make: Any, lease: Lease) -> dict[str, Commit]:
    """Commits that contradict themselves or a journal of two entries with message 1 unread."""
    good = make.commit(lease, 3, 4)
    return {
        "gap": make.commit(lease, 4, 4),
        "again": make.commit(lease, 2, 3),
        "hole": replace(good, entries=(make.entry(3), make.entry(5))),
        "row": replace(good, row=make.row("s2")),
        "snapshot": replace(good, snapshot=Snapshot(seq=5, state={})),
        "message": replace(good, consumed=(99,)),
        "twice": replace(good, consumed=(1, 1)),
        "json": replace(good, entries=(StoredEntry(seq=3, time=1.0, data={"set": {1}}),)),
    }


@pytest.mark.parametrize(
    "kind", ["gap", "again", "hole", "row", "snapshot", "message", "twice", "json"]
)
def test_a_wrong_commit_leaves_nothing_behind(store, make, kind):
    """A commit that does not follow is an error, and takes the whole group with it."""
    store.create(make.row("s2"))
    lease, other = claimed(store), claimed(store, "s2")
    store.post("s1", 1, {"text": "unread"})
    store.commit([make.commit(lease, 1, 2)])
    before = [store.load("s1"), store.load("s2")]
    with pytest.raises(MachineError, match="s1"):
        store.commit([make.commit(other, 1, 1), bad_commits(make, lease)[kind]])
    assert [store.load("s1"), store.load("s2")] == before
    assert store.commit([make.commit(lease, 3, 3), make.commit(other, 1, 1)]) == [True, True]


def test_commits_of_one_session_may_share_a_group(store, make):
    """Two commits of the same session in one group follow one another."""
    lease = claimed(store)
    assert store.commit([make.commit(lease, 1, 2), make.commit(lease, 3, 3)]) == [True, True]
    assert [entry.seq for entry in store.entries("s1")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("after", "upto", "expected"),
    [
        (0, None, range(1, 1203)),
        (3, 5, range(4, 6)),
        (0, 500, range(1, 501)),
        (499, 501, range(500, 502)),
        (1202, None, range(0)),
        (0, 9999, range(1, 1203)),
        (-5, 2, range(1, 3)),
        (7, 3, range(0)),
    ],
)
def test_a_part_of_the_journal_can_be_read(store, make, after, upto, expected):
    """`entries` gives after < seq <= upto, across its pages."""
    store.commit([make.commit(claimed(store), 1, 1202)])
    found = store.entries("s1", after, upto)
    assert list(found) == [make.entry(seq) for seq in expected]


def test_a_journal_is_read_while_it_grows(store, make):
    """Reading in the middle of writing sees the journal as it was when reading began."""
    lease = claimed(store)
    store.commit([make.commit(lease, 1, 600)])
    reading = iter(store.entries("s1"))
    next(reading)
    store.commit([make.commit(lease, 601, 700)])
    assert [entry.seq for entry in reading] == list(range(2, 601))


def test_recovery_reads_the_newest_snapshot_and_what_follows(backend, store, make):
    """Of many snapshots the newest counts, with the entries after it."""
    lease = claimed(store)
    for seq in range(1, 8):
        snapshot = Snapshot(seq=seq - 1, state={"at": seq - 1})
        store.commit([make.commit(lease, seq, seq, snapshot=snapshot)])
    expected = Loaded(
        row=make.row("s1", 7, 7.5), snapshot=Snapshot(seq=6, state={"at": 6}), tail=(make.entry(7),)
    )
    assert store.load("s1") == expected
    assert backend.reopen(store).load("s1") == expected


def test_sessions_are_listed_by_activity(store, make):
    """Newest activity first; among equals by id."""
    for session, updated in (("b", 5.0), ("c", 9.0), ("a", 5.0)):
        store.create(make.row(session, updated=updated))
    assert [row.session for row in store.sessions()] == ["c", "a", "b", "s1"]


def test_a_session_has_one_owner(store):
    """A second claim gets nothing, until the first owner lets go; epochs rise."""
    first = claimed(store)
    assert store.is_owned("s1")
    assert store.claim("s1", "n2") is None
    store.release(first)
    store.release(first)
    assert not store.is_owned("s1")
    second = claimed(store, node="n2")
    assert second.epoch > first.epoch
    store.release(first)
    assert store.is_owned("s1")


def test_a_lost_lease_writes_nothing(store, make):
    """A commit under an old epoch is refused whole, while others in its group go on."""
    store.create(make.row("s2"))
    other = claimed(store, "s2")
    old = claimed(store)
    store.commit([make.commit(old, 1, 1)])
    posted = store.post("s1", 1, {})
    store.release(old)
    late = make.commit(old, 2, 2, consumed=(posted,), snapshot=Snapshot(seq=2, state={}))
    assert store.commit([late]) == [False]  # nobody has it
    new = claimed(store)
    assert store.commit([late, make.commit(other, 1, 1)]) == [False, True]
    loaded = store.load("s1")
    assert (loaded.row.seq, loaded.snapshot, len(loaded.unconsumed)) == (1, None, 1)
    assert store.commit([make.commit(new, 2, 2)]) == [True]


def test_a_lease_ends_with_its_store(backend, store, make):
    """After a reopen the session is free, and the old lease is refused."""
    old = claimed(store)
    again = backend.reopen(store)
    assert not again.is_owned("s1")
    assert claimed(again).epoch > old.epoch
    assert again.commit([make.commit(old, 1, 1)]) == [False]


def test_messages_come_by_lane_and_then_in_order(store):
    """The inbox is sorted by lane; within a lane first in is first out."""
    for lane, n in ((2, 0), (1, 1), (2, 2), (0, 3), (1, 4)):
        store.post("s1", lane, {"n": n})
    assert [message.message["n"] for message in store.unconsumed("s1")] == [3, 1, 4, 0, 2]
    assert store.load("s1").unconsumed == store.unconsumed("s1")


def test_the_same_client_id_is_the_same_message(backend, store, make):
    """Posting again gives the same id and no second message, also when read, also after reopen."""
    first = store.post("s1", 1, {"text": "once"}, "key")
    assert store.post("s1", 1, {"text": "twice"}, "key") == first
    assert [message.message for message in store.unconsumed("s1")] == [{"text": "once"}]
    store.commit([make.commit(claimed(store), 1, 1, consumed=(first,))])
    assert store.post("s1", 1, {"text": "late"}, "key") == first
    again = backend.reopen(store)
    assert again.post("s1", 1, {"text": "later"}, "key") == first
    assert again.unconsumed("s1") == ()


def test_a_client_id_counts_in_its_session(store, make):
    """Two sessions may get messages with the same client id; no client id means no such thing."""
    store.create(make.row("s2"))
    ids = [store.post(session, 1, {}, key) for session in ("s1", "s2") for key in ("k", "", "")]
    assert len(set(ids)) == 6
    assert ids == sorted(ids)


def test_message_ids_are_never_used_again(backend, store, make):
    """An id rises also when all messages before it are gone."""
    first = store.post("s1", 1, {})
    store.commit([make.commit(claimed(store), 1, 1, consumed=(first,))])
    assert backend.reopen(store).post("s1", 1, {}) > first


@pytest.mark.parametrize("key", ["k" * 257, "\ud83d", "é" * 129])
def test_an_odd_client_id_is_refused(store, key):
    """A client id is short text."""
    with pytest.raises(UsageError):
        store.post("s1", 1, {}, key)
    assert store.unconsumed("s1") == ()


def test_waiting_answers_at_once_for_what_is_there(store):
    """The first wait of a node finds what was posted before it had a doorbell."""
    claimed(store)
    store.post("s1", 1, {})
    assert store.wait("n1", 60) == ["s1"]


def test_a_post_wakes_who_waits(store, make):
    """A waiting node is notified of a post to a session that it owns, and of no other."""
    store.create(make.row("s2"))
    claimed(store)
    claimed(store, "s2", "n2")
    assert store.wait("n1", 0) == []
    store.post("s2", 1, {})
    assert store.wait("n1", 0) == []
    poster = threading.Thread(target=store.post, args=("s1", 1, {}))
    poster.start()
    while not (found := store.wait("n1", 60)):  # the other node's notification may come late
        continue
    assert found == ["s1"]
    poster.join()


def test_waiting_ends_with_the_store(store):
    """Closing wakes who waits, with nothing to do."""
    answers: list[list[str]] = []
    assert store.wait("n1", 0) == []
    waiting = threading.Thread(target=lambda: answers.append(store.wait("n1", 60)))
    waiting.start()
    store.close()
    waiting.join(seconds(30))
    assert answers in ([[]], [])  # none: the store was closed before the thread asked


def test_a_closed_store_says_so(store, make):
    """After close every call is refused, and close can be called again."""
    lease = claimed(store)
    store.close()
    store.close()
    for ask in (
        lambda: store.load("s1"),
        lambda: store.commit([make.commit(lease, 1, 1)]),
        lambda: store.post("s1", 1, {}),
    ):
        with pytest.raises(StoreError, match="closed"):
            ask()


def test_housekeeping_loses_nothing(backend, store, make):
    """What `settle` tidies up stays readable."""
    lease = claimed(store)
    store.commit([make.commit(lease, 1, 50)])
    store.settle()
    store.commit([make.commit(lease, 51, 60)])
    store.settle()
    assert len(list(backend.reopen(store).entries("s1"))) == 60


def test_every_field_of_a_row_is_kept(backend, store):
    """The list shows all that was put into a row, odd file names included."""
    row = SessionRow(
        session="full",
        folder="/\udcff",
        name="name",
        state="busy",
        agent="coder",
        created=1.5,
        updated=9.0,
        seq=0,
        waiting=3,
        interrupted=2,
        parent="s0",
        workflow="codemod",
        run="running",
        root="full",
        place="here",
    )
    store.create(row)
    assert backend.reopen(store).sessions()[0] == row


WANTED = [
    EVERY,
    RowFilter(folder="/a"),
    RowFilter(folder="/\udcff"),
    RowFilter(folder="/nowhere"),
    RowFilter(name="the one"),
    RowFilter(is_named=True),
    RowFilter(begins="s1"),
    RowFilter(begins="s%"),
    RowFilter(has_work=True),
    RowFilter(has_work=True, folder="/a"),
    RowFilter(is_top=True),
    RowFilter(most=3),
    RowFilter(most=2, folder="/a", is_top=True),
    RowFilter(most=400),
]
"""Lists that somebody wants."""


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_a_list_has_what_is_wanted(store, make, wanted: RowFilter) -> None:
    """All that fits, and nothing else, the newest first; also when a session has changed since."""
    for number in range(2, 300):
        row = SessionRow(
            session=f"s{number}",
            folder=("/a", "/b", "/\udcff")[number % 3],
            state=("suspended", "idle", "busy", "finalized")[number % 4],
            seq=number % 2,
            updated=1000.0 * (number * 7 % 300),
            waiting=int(number % 5 == 0),
            parent="s2" if number % 6 == 5 else "",
        )
        store.create(row)
    lease = claimed(store)
    row = replace(make.row("s1"), name="the one", folder="/a", waiting=1, updated=5e8, seq=1)
    entry = StoredEntry(seq=1, time=5e8, data={"kind": "x"})
    assert store.commit([Commit(lease=lease, entries=(entry,), row=row)]) == [True]
    rows = sorted(store.sessions(), key=lambda row: (-row.updated, row.session))
    assert len(rows) == 299
    fitting = [row for row in rows if wanted.fits(row)]
    assert store.sessions(wanted) == (fitting[: wanted.most] if wanted.most else fitting)
    assert store.moments() == sorted({row.updated // 3600 * 3600 for row in rows})


def test_an_occurrence_is_noted_once(backend, store):
    """The second note of a planned time is refused, whatever it says; a missed one may still begin."""
    watch = Watch(schedule="a", timing="* * * * *", upto=120.0)
    first = Occurrence(schedule="a", planned=60.0, state="due", session="s9", noted=61.0)
    missed = replace(first, planned=120.0, state="missed", count=3)
    other = replace(first, schedule="b")
    assert store.note(watch, [first, missed, other]) == [True, True, True]
    again = [replace(first, session="s8"), replace(missed, count=9), replace(other, state="missed")]
    assert store.note(watch, again) == [False, False, False]
    assert store.note(watch, [replace(missed, state="due", count=1)]) == [True]
    store.conclude(replace(first, state="begun", noted=99.0))
    survivor = backend.reopen(store)
    assert survivor.watches() == [watch]
    assert survivor.occurrences() == [
        replace(missed, state="due", count=1),
        replace(first, state="begun"),
        other,
    ]


def test_old_occurrences_are_forgotten_and_stay_forbidden(backend, store):
    """What was planned long ago goes, but for the newest and what is due; the floor rises to it."""
    made = [
        Occurrence(schedule="a", planned=planned, state=state)
        for planned, state in ((10.0, "begun"), (20.0, "due"), (30.0, "failed"), (40.0, "begun"))
    ]
    watch = Watch(schedule="a", timing="x", upto=50.0)
    assert all(store.note(watch, [*made, replace(made[0], schedule="b")]))
    store.note(replace(watch, upto=35.0 + REMEMBERED))
    store.note(replace(watch, upto=60.0, timing=""))  # a clock that was set back
    survivor = backend.reopen(store)
    assert survivor.watches() == [Watch(schedule="a", timing="", upto=60.0, floor=30.0)]
    planned = [(found.schedule, found.planned) for found in survivor.occurrences()]
    assert planned == [("a", 40.0), ("a", 20.0), ("b", 10.0)]
    survivor.note(replace(watch, upto=1e9))
    assert [found.planned for found in survivor.occurrences()] == [40.0, 20.0, 10.0]
