"""The group-commit thread, over each store."""

import threading
from collections.abc import Sequence
from itertools import pairwise

import pytest
from support.patience import seconds

from steersman.journal.memory import MemoryStore, SimulatedCrash
from steersman.journal.store import Commit
from steersman.journal.writer import Result, Writer
from steersman.machines.errors import MachineError, StoreBusy, StoreError, StoreFailed


class Answers:
    """What a writer delivered, group by group."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[object, Result]]] = []
        self.arrived = threading.Condition()

    def deliver(self, results: list[tuple[object, Result]]) -> None:
        """Note a group."""
        with self.arrived:
            self.groups.append(results)
            self.arrived.notify_all()

    @property
    def all(self) -> list[tuple[object, Result]]:
        """All results in the order of their arrival."""
        return [result for group in self.groups for result in group]

    def wait_for(self, number: int) -> None:
        """Block until so many results are there."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.all) >= number, seconds(60))


class GatedStore(MemoryStore):
    """A store in memory whose commits wait for leave and may fail as told."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.faults: list[StoreError] = []
        self.commits = 0
        self.settled = threading.Event()

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Wait, then fail or commit."""
        self.entered.set()
        assert self.gate.wait(seconds(60))
        self.commits += 1
        if self.faults:
            raise self.faults.pop(0)
        return super().commit(commits)

    def settle(self) -> None:
        """Note that there was time for it."""
        self.settled.set()


@pytest.fixture
def answers():
    """Where results arrive."""
    return Answers()


@pytest.fixture
def gated(make):
    """A gated store with a claimed session, and its lease."""
    store = GatedStore()
    store.create(make.row("s1"))
    return store, store.claim("s1", "n1")


def test_a_lone_commit_is_answered(store, make, answers):
    """One commit is durable when its answer comes."""
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(store.claim("s1", "n1"), 1, 2), "token")
    answers.wait_for(1)
    assert store.load("s1").row.seq == 2
    assert answers.groups == [[("token", True)]]
    writer.close()


def test_sixty_four_sessions_share_groups(backend, make, answers):
    """Many sessions at once: each is answered in order, all is stored, in far fewer commits."""
    store = backend.open()
    sessions = [f"s{n}" for n in range(64)]
    for session in sessions:
        store.create(make.row(session))
    writer = Writer(store, answers.deliver)
    start = threading.Barrier(8)

    def work(mine: list[str]) -> None:
        leases = [store.claim(session, "n1") for session in mine]
        start.wait(seconds(60))
        for seq in range(1, 11):
            for lease in leases:
                writer.submit(make.commit(lease, seq, seq), (lease.session, seq))

    threads = [threading.Thread(target=work, args=(sessions[n::8],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert all(result is True for _, result in answers.all)
    assert len(answers.groups) < 64 * 10 / 4
    for session in sessions:
        order = [seq for (name, seq), _ in answers.all if name == session]
        assert order == list(range(1, 11))
        assert [entry.seq for entry in store.entries(session)] == order


def test_what_gathers_meanwhile_is_one_group(gated, make, answers):
    """All commits that come while one is written are written together, once."""
    store, lease = gated
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(lease, 1, 1), 1)
    assert store.entered.wait(seconds(60))
    for seq in range(2, 50):
        writer.submit(make.commit(lease, seq, seq), seq)
    store.gate.set()
    writer.flush()
    assert [len(group) for group in answers.groups] == [1, 48]
    writer.close()


def test_flush_waits_until_all_is_answered(store, make, answers):
    """After flush every commit has its answer; with nothing to do it returns at once."""
    lease = store.claim("s1", "n1")
    writer = Writer(store, answers.deliver)
    writer.flush()
    for seq in range(1, 101):
        writer.submit(make.commit(lease, seq, seq), seq)
    writer.flush()
    assert answers.all == [(seq, True) for seq in range(1, 101)]
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.submit(make.commit(lease, 101, 101), 101)


def test_a_lost_lease_is_answered_false(store, make, answers):
    """A commit whose lease was lost is answered so."""
    lease = store.claim("s1", "n1")
    store.release(lease)
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(lease, 1, 1), "late")
    writer.close()
    assert answers.all == [("late", False)]


def test_a_wrong_commit_fails_alone(gated, make, answers):
    """A commit that does not follow is answered with its error; the rest of its group is stored."""
    store, lease = gated
    store.create(make.row("s2"))
    other = store.claim("s2", "n1")
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(lease, 1, 1), "first")
    assert store.entered.wait(seconds(60))
    writer.submit(make.commit(lease, 7, 7), "wrong")
    writer.submit(make.commit(other, 1, 1), "other")
    writer.submit(make.commit(lease, 2, 2), "next")
    store.gate.set()
    writer.close()
    results = dict(answers.all)
    assert isinstance(results.pop("wrong"), MachineError)
    assert results == {"first": True, "other": True, "next": True}


def test_after_a_failure_everything_is_refused(gated, make, answers):
    """Who waits and who comes later gets the failure, and the store is not asked again."""
    store, lease = gated
    fault = StoreFailed("the disk is gone", "Reopen.")
    store.faults.append(fault)
    writer = Writer(store, answers.deliver)
    for seq in (1, 2):
        writer.submit(make.commit(lease, seq, seq), seq)
    store.gate.set()
    writer.flush()
    writer.submit(make.commit(lease, 3, 3), 3)
    writer.close()
    assert answers.all == [(1, fault), (2, fault), (3, fault)]
    assert store.commits == 1


@pytest.mark.parametrize(("times", "is_stored"), [(5, True), (6, False)])
def test_a_busy_database_is_tried_again(gated, make, answers, times, is_stored):
    """Another process's lock delays a commit; only one that never goes is a failure."""
    store, lease = gated
    busy = StoreBusy("locked", "Try again.")
    store.faults += [busy] * times
    store.gate.set()
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(lease, 1, 1), 1)
    writer.close()
    assert answers.all == [(1, True if is_stored else busy)]


def test_an_idle_writer_lets_the_store_tidy_up(gated, make, answers):
    """When no commit comes for a while the store may do its housekeeping, and then goes on."""
    store, lease = gated
    store.gate.set()
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(lease, 1, 1), 1)
    assert store.settled.wait(seconds(60))
    writer.submit(make.commit(lease, 2, 2), 2)
    writer.close()
    assert answers.all == [(1, True), (2, True)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_commit_waits_for_a_dead_writer(make, answers):
    """An error of our own that ends the thread answers everybody, and flush returns."""
    store = MemoryStore()
    store.create(make.row("s1"))
    lease = store.claim("s1", "n1")
    store.crash_at = store.writes + 1
    writer = Writer(store, answers.deliver)
    writer.submit(make.commit(lease, 1, 1), 1)
    writer.flush()
    writer.close()
    [(token, result)] = answers.all
    assert token == 1
    assert isinstance(result, StoreError)
    with pytest.raises(SimulatedCrash):
        store.sessions()


def test_order_is_kept_within_a_session(store, make, answers):
    """Commits of one session are answered in the order of submission, over many groups."""
    lease = store.claim("s1", "n1")
    writer = Writer(store, answers.deliver)
    for seq in range(1, 300):
        writer.submit(make.commit(lease, seq, seq), seq)
        if seq % 50 == 0:
            answers.wait_for(seq)
    writer.close()
    tokens = [token for token, _ in answers.all]
    assert all(later == earlier + 1 for earlier, later in pairwise(tokens))
