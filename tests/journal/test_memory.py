"""The store in memory as the simulator uses it: it crashes where the test asks."""

import pytest

from steersman.journal.memory import MemoryStore, SimulatedCrash
from steersman.journal.store import Snapshot


def run(store: MemoryStore, make) -> list[str]:
    """Make six durable writes; return what was acknowledged."""
    done: list[str] = []
    try:
        store.create(make.row("s1"))
        done.append("created")
        lease = store.claim("s1", "n1")
        done.append("claimed")
        posted = store.post("s1", 1, {"text": "hello"}, "key")
        done.append("posted")
        store.commit(
            [make.commit(lease, 1, 2, consumed=(posted,), snapshot=Snapshot(seq=1, state={}))]
        )
        done.append("committed")
        store.commit([make.commit(lease, 3, 3)])
        done.append("again")
        store.release(lease)
        done.append("released")
    except SimulatedCrash:
        return done
    return done


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("at", range(1, 7))
def test_a_crash_keeps_what_was_acknowledged(make, at, side):
    """Whatever was acknowledged survives a crash at any write; the write itself may or may not."""
    store = MemoryStore(crash_at=at, crash_side=side)
    acknowledged = run(store, make)
    assert len(acknowledged) == at - 1
    with pytest.raises(SimulatedCrash):
        store.sessions()
    survivor = store.survivor()
    applied = at if side == "after" else at - 1
    assert [row.session for row in survivor.sessions()] == (["s1"] if applied else [])
    if not applied:
        return
    loaded = survivor.load("s1")
    assert loaded.row.seq == {4: 2, 5: 3, 6: 3}.get(applied, 0)
    assert len(loaded.unconsumed) == (1 if applied == 3 else 0)
    assert (loaded.snapshot is not None) == (applied >= 4)
    assert not survivor.is_owned("s1")
    assert survivor.claim("s1", "n2").epoch == (2 if applied >= 2 else 1)


def test_without_a_crash_all_writes_are_counted(make):
    """`writes` tells the simulator how many points there are to crash at."""
    store = MemoryStore()
    assert len(run(store, make)) == store.writes == 6


def test_a_survivor_shares_nothing(make):
    """What happens to a survivor does not reach the store it came from, nor the other way."""
    store = MemoryStore()
    run(store, make)
    survivor = store.survivor()
    survivor.commit([make.commit(survivor.claim("s1", "n2"), 4, 4)])
    store.create(make.row("s2"))
    assert (store.load("s1").row.seq, survivor.load("s1").row.seq) == (3, 4)
    assert [row.session for row in survivor.sessions()] == ["s1"]
