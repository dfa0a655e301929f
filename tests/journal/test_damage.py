"""A row that cannot be read is left out or marked; all others are as before. SQLite and PostgreSQL."""

from collections.abc import Callable

import pytest
from journal.conftest import claimed, durable

from steersman.journal.store import Occurrence, SessionRow, Snapshot, Store, Watch
from steersman.machines.errors import StoreDamaged

Damage = Callable[[str], Store]

pytestmark = durable


@pytest.fixture
def damage(backend, make) -> Damage:
    """Make a home with two sessions; what is returned runs a statement in it, and opens it again."""
    store = backend.open()
    for session in ("s1", "s2"):
        store.create(make.row(session))
        lease = claimed(store, session)
        for seq in (1, 2):
            snapshot = Snapshot(seq=seq, state={"at": seq})
            store.commit([make.commit(lease, seq, seq, snapshot=snapshot)])
        store.release(lease)
        store.post(session, 1, {"text": "one"}, "c1")
        store.post(session, 1, {"text": "two"})
    known = Occurrence(schedule="daily", planned=1.0, state="begun", noted=1.0)
    store.note(Watch(schedule="daily", timing="1d", upto=5.0), [known])
    store.note(Watch(schedule="hourly", timing="1h", upto=5.0))
    store.close()
    return backend.alter


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"session": "s2", "folder": "/"}', '{"session": "s1", "folder": 5}']
)
def test_a_damaged_row_closes_no_other_session(damage: Damage, make, text: str) -> None:
    """It is listed as damaged; its journal can be read, written, which repairs it, and deleted."""
    store = damage(f"UPDATE sessions SET row = '{text}' WHERE session = 's1'")
    rows = {row.session: row for row in store.sessions()}
    assert (rows["s1"].is_damaged, rows["s1"].seq, rows["s1"].root) == (True, 2, "s1")
    assert rows["s2"] == store.row("s2") == make.row("s2", 2, 2.5)
    assert [stored.seq for stored in store.entries("s1")] == [1, 2]
    lease = claimed(store)
    store.commit([make.commit(lease, 3, 3)])
    assert store.row("s1") == make.row("s1", 3, 3.5)
    store.delete(lease)
    assert [row.session for row in store.sessions()] == ["s2"]


def test_a_damaged_snapshot_is_passed_over(damage: Damage) -> None:
    """An older one and the entries after it give the same state."""
    store = damage("UPDATE snapshots SET state = 'x' WHERE session = 's1' AND seq = 2")
    loaded = store.load("s1")
    assert loaded.snapshot == Snapshot(seq=1, state={"at": 1})
    assert [stored.seq for stored in loaded.tail] == [2]


def test_a_damaged_message_stays_and_hinders_no_other(damage: Damage) -> None:
    """The inbox has the others, in their order."""
    store = damage("UPDATE inbox SET message = '{' WHERE session = 's1' AND id = 1")
    assert [message.message for message in store.unconsumed("s1")] == [{"text": "two"}]
    assert [message.message for message in store.unconsumed("s2")] == [
        {"text": "one"},
        {"text": "two"},
    ]


def test_a_damaged_entry_closes_its_session_alone(damage: Damage) -> None:
    """A search passes it over, and its session says which entry it is."""
    store = damage("UPDATE entries SET data = '{noted' WHERE session = 's1' AND seq = 2")
    found = {(session, stored.seq) for session, stored in store.search("noted")}
    assert found == {("s1", 1), ("s2", 1), ("s2", 2)}
    with pytest.raises(StoreDamaged, match="entry 2"):
        list(store.entries("s1"))
    assert len(list(store.entries("s2"))) == 2


def test_a_damaged_occurrence_leaves_the_schedules(damage: Damage) -> None:
    """What became of others, and how far all were looked at, is known."""
    store = damage("UPDATE occurrences SET state = 'nonsense' WHERE schedule = 'daily'")
    assert store.occurrences() == []
    assert [watch.schedule for watch in store.watches()] == ["daily", "hourly"]


def test_a_value_of_another_type_is_damage_in_sqlite(damage: Damage, request) -> None:
    """SQLite takes any type in any column; a watch and a number that are none are left out."""
    if "postgres" in request.node.name:
        pytest.skip("PostgreSQL refuses it")
    damage("UPDATE watches SET upto = 'never' WHERE schedule = 'daily'").close()
    store = damage("UPDATE sessions SET seq = 'many', updated = 'late' WHERE session = 's1'")
    assert [watch.schedule for watch in store.watches()] == ["hourly"]
    damaged = [row for row in store.sessions() if row.is_damaged]
    assert damaged == [SessionRow(session="s1", folder="", state="damaged", root="s1")]


def test_a_node_claims_families_beside_a_damaged_row(damage: Damage) -> None:
    """The damaged session and the other one, for both have mail."""
    store = damage("UPDATE sessions SET row = '{' WHERE session = 's1'")
    store.nodes.join("n2", "", 9)
    assert {lease.session for lease in store.nodes.claim_many("n2", "", 9)} == {"s1", "s2"}
