"""A session is loaded from its newest snapshot, and its conversation from the entries that hold it."""

from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.memory import MemoryStore
from steersman.journal.record import SessionRecord
from steersman.journal.recovery import fold, load_record, snapshot
from steersman.journal.store import Commit, SessionRow, StoredEntry
from steersman.machines.conversation import ChatMessage

APART = 250


def turn(number: int) -> list[e.Entry]:
    """Return a turn whose first and last message are far apart in the journal."""
    item, name = f"m{number}", f"t{number}"
    asked, said = (ChatMessage("user", f"do {number}"),), (ChatMessage("assistant", "done"),)
    return [
        e.Queued(item, number, f"do {number}", "turn"),
        e.TurnStarted(name, item, number, number, messages=asked),
        *(e.ProgressMade(name, done, APART, "file") for done in range(APART)),
        e.TurnEnded(name, "completed", messages=said),
    ]


def test_messages_that_are_far_apart_are_all_found() -> None:
    """The record is the same as one that is folded from every entry."""
    store = MemoryStore()
    store.create(SessionRow("s1", "/here"))
    lease = store.claim("s1", "node")
    assert lease is not None
    told = [e.SessionOpened("s1", "/here", "assistant", "", ""), *turn(1), *turn(2)]
    entries = [StoredEntry(seq, float(seq), encode_entry(one)) for seq, one in enumerate(told, 1)]
    assert store.commit([Commit(lease, entries, SessionRow("s1", "/here"))]) == [True]
    whole = fold(store, "s1", SessionRecord(), None)
    row = SessionRow("s1", "/here", seq=whole.seq)
    assert store.commit([Commit(lease, [], row, snapshot=snapshot(whole))]) == [True]

    assert load_record(store, "s1") == whole
    assert [one.text for one in whole.conversation] == ["do 1", "done", "do 2", "done"]
