"""A session is loaded from a snapshot, and its conversation from the entries that hold it."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from journal.conftest import claimed
from support.older_home import make_older

from steersman.journal import entries as e
from steersman.journal.codec import encode, encode_entry
from steersman.journal.history import record_at
from steersman.journal.memory import MemoryStore
from steersman.journal.record import SessionRecord, apply, without_conversation
from steersman.journal.recovery import (
    fold,
    load_record,
    newest_first,
    snapshot,
    whole_conversation,
)
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Commit, SessionRow, Snapshot, StoredEntry
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage

APART = 250
ROW = SessionRow(session="s1", folder="/here")
OPENED = e.SessionOpened(session="s1", folder="/here", agent="assistant", model="", system="")


def say(role: str, *texts: str) -> tuple[ChatMessage, ...]:
    """Return messages."""
    return tuple(ChatMessage(role=role, text=text) for text in texts)


def turn(number: int, *between: e.Entry) -> list[e.Entry]:
    """Return a turn with these entries between its first and its last message."""
    item, name = f"m{number}", f"t{number}"
    return [
        e.Queued(item=item, number=number, said=m.Said(text=f"do {number}")),
        e.TurnStarted(
            turn=name, item=item, number=number, epoch=number, messages=say("user", f"do {number}")
        ),
        *between,
        e.TurnEnded(turn=name, status="completed", messages=say("assistant", "done")),
    ]


def summed_up(number: int, dropped: int, *texts: str) -> tuple[e.Entry, e.Entry]:
    """Return entries that put messages in place of the oldest ones."""
    begun = e.CompactionBegun(turn=f"t{number}", step=0, why="full", dropped=dropped)
    said = say("user", *texts)
    return begun, e.Compacted(
        turn=f"t{number}", step=0, dropped=dropped, how="summary", messages=said
    )


def stored(told: Sequence[e.Entry]) -> list[StoredEntry]:
    """Return entries as a store has them."""
    return [
        StoredEntry(seq=seq, time=float(seq), data=encode_entry(one))
        for seq, one in enumerate(told, 1)
    ]


def replaced_turn(number: int) -> list[e.Entry]:
    """Return a turn in whose place another message came, with a steer that waited for it."""
    item, name = f"m{number}", f"t{number}"
    order = m.StopOrder(cause="message", is_replaced=True)
    return [
        e.Queued(item=item, number=number, said=m.Said(text=f"do {number}")),
        e.TurnStarted(turn=name, item=item, number=number, epoch=2 * number),
        e.Queued(
            item=f"s{number}",
            number=number,
            said=m.Said(text="so"),
            routed=m.Routed(said_as="steer"),
            for_turn=name,
        ),
        e.InterruptRequested(receipt=f"i{number}", turn=name, order=order),
        e.Interrupted(turn=name, cause="message", is_replaced=True),
        e.Stopped(turn=name),
    ]


def kept(told: Sequence[e.Entry], at: int, *, is_old: bool = False) -> MemoryStore:
    """Return a store with a session, and a snapshot of it at an entry."""
    store = MemoryStore()
    store.create(ROW)
    lease = claimed(store)
    assert store.commit([Commit(lease=lease, entries=stored(told), row=ROW)]) == [True]
    record = fold(store, "s1", SessionRecord(), at)
    made = old_snapshot(told, record) if is_old else snapshot(record)
    assert store.commit([Commit(lease=lease, entries=[], row=ROW, snapshot=made)]) == [True]
    return store


def old_snapshot(told: Sequence[e.Entry], record: SessionRecord) -> Snapshot:
    """Return a snapshot as an earlier version wrote it: with every entry that held a message."""
    state = encode(without_conversation(record))
    del state["origins"]
    sources = [
        seq
        for seq, one in enumerate(told[: record.seq], 1)
        if getattr(one, "messages", ()) or isinstance(one, e.Compacted)
    ]
    return Snapshot(seq=record.seq, state={**state, "sources": sources})


def test_messages_that_are_far_apart_are_all_found() -> None:
    """The record is the same as one that is folded from every entry."""
    progress = [
        tuple(
            e.ProgressMade(turn=f"t{number}", done=done, total=APART, unit="file")
            for done in range(APART)
        )
        for number in (1, 2)
    ]
    told = [OPENED, *turn(1, *progress[0]), *turn(2, *progress[1])]
    store = kept(told, len(told))
    whole = fold(store, "s1", SessionRecord(), None)
    assert load_record(store, "s1") == whole
    assert [one.text for one in whole.conversation] == ["do 1", "done", "do 2", "done"]
    assert snapshot(whole).state["held"] == [(3, 3, 1), (254, 256, 1), (507, 507, 1)]


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_conversation_that_was_summed_up_is_loaded_as_it_was(seed: int, is_old: bool) -> None:
    """From a snapshot at any entry: also where a summary replaces part of one, or everything."""
    dice = random.Random(seed)
    told, length = list[e.Entry]((OPENED,)), 0
    for number in range(1, 13):
        length += 1
        made: tuple[e.Entry, ...] = ()
        if dice.random() < 0.4:
            dropped = dice.choice((0, 1, length // 2, length - 1, length))
            texts = [f"summary {number}.{part}" for part in range(dice.randint(0, 3))]
            made = summed_up(number, dropped, *texts)
            length += len(texts) - dropped
        told += turn(number, *made)
        length += 1
    for at in range(1, len(told) + 1, 3):
        store = kept(told, at, is_old=is_old)
        whole = fold(store, "s1", SessionRecord(), None)
        assert load_record(store, "s1") == whole
        assert len(whole.conversation) == len(whole.origins) == length
        for upto in (at, min(at + 4, len(told))):
            then = fold(store, "s1", SessionRecord(), upto)
            assert load_record(store, "s1", upto) == then
            assert without_conversation(record_at(store, "s1", upto)) == without_conversation(then)


@pytest.mark.parametrize(
    ("turn_of", "few", "many"), [(turn, 100, 5_000), (replaced_turn, 250, 2_500)]
)
def test_a_snapshot_does_not_grow_with_the_session(
    turn_of: Callable[..., list[e.Entry]], few: int, many: int
) -> None:
    """Of thousands of turns it takes no more than a little beyond that of some hundred."""
    record = SessionRecord()
    sizes = dict[int, int]()
    apply(record, OPENED, 1, 1.0)
    for number in range(1, many + 1):
        is_full = turn_of is turn and number % 80 == 0
        for entry in turn_of(number, *(summed_up(number, 120, "so far") if is_full else ())):
            apply(record, entry, record.seq + 1, record.seq + 1.0)
        if number in (few, many):
            sizes[number] = len(json.dumps(snapshot(record).state))
    assert sizes[many] < 1.1 * sizes[few]


def test_what_was_replaced_last_can_be_resumed() -> None:
    """Of very many messages that were put aside the newest are there, with the steers for them."""
    record = SessionRecord()
    told = [OPENED, *(entry for number in range(1, 301) for entry in replaced_turn(number))]
    for entry in told:
        apply(record, entry, record.seq + 1, record.seq + 1.0)
    names = [item.id for item in record.queue.superseded()]
    assert names == [f"m{number}" for number in range(101, 301)]
    assert "s100" not in record.queue.items
    apply(record, e.QueueReleased(items=("m101",)), record.seq + 1, record.seq + 1.0)
    assert record.queue.order == ("m101", "s101")


def test_messages_are_read_from_the_last_one_back() -> None:
    """As far as they are wanted; what was summed up is there, and the summary is not."""
    told: list[e.Entry] = [OPENED]
    for number in range(1, 100):
        told += turn(number, *(summed_up(number, 30, "so far") if number % 30 == 0 else ()))
    store = kept(told, 100)
    whole = list(whole_conversation(store, "s1"))
    assert list(newest_first(store, "s1")) == whole[::-1]
    assert next(newest_first(store, "s1")).text == "done"
    assert len(whole) == load_record(store, "s1").spoken == 198


def test_a_home_with_snapshots_of_an_earlier_version_is_opened(tmp_path: Path) -> None:
    """Its snapshots are plain JSON that names every entry; the newest one still counts."""
    told = [OPENED, *turn(1), *turn(2, *summed_up(2, 2, "so far")), *turn(3)]
    at = len(told) - 2
    store = SqliteStore.open(tmp_path / "home")
    store.create(ROW)
    lease = claimed(store)
    store.commit([Commit(lease=lease, entries=stored(told), row=ROW)])
    whole = fold(store, "s1", SessionRecord(), None)
    old = old_snapshot(told, fold(store, "s1", SessionRecord(), at))
    store.close()
    marked = json.dumps({**old.state, "name": "of the snapshot"})
    snapshot = ("INSERT INTO snapshots VALUES ('s1', ?, ?)", (at, marked))
    make_older(tmp_path / "home" / "journal.db", snapshot, version=3)
    store = SqliteStore.open(tmp_path / "home")
    found = load_record(store, "s1")
    assert found.name == "of the snapshot"
    found.name = ""
    assert found == whole
    store.close()
