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
    asked, said = (
        (ChatMessage(role="user", text=f"do {number}"),),
        (ChatMessage(role="assistant", text="done"),),
    )
    return [
        e.Queued(item=item, number=number, text=f"do {number}", said_as="turn"),
        e.TurnStarted(turn=name, item=item, number=number, epoch=number, messages=asked),
        *(e.ProgressMade(turn=name, done=done, total=APART, unit="file") for done in range(APART)),
        e.TurnEnded(turn=name, status="completed", messages=said),
    ]


def test_messages_that_are_far_apart_are_all_found() -> None:
    """The record is the same as one that is folded from every entry."""
    store = MemoryStore()
    store.create(SessionRow(session="s1", folder="/here"))
    lease = store.claim("s1", "node")
    assert lease is not None
    told = [
        e.SessionOpened(session="s1", folder="/here", agent="assistant", model="", system=""),
        *turn(1),
        *turn(2),
    ]
    entries = [
        StoredEntry(seq=seq, time=float(seq), data=encode_entry(one))
        for seq, one in enumerate(told, 1)
    ]
    assert store.commit(
        [Commit(lease=lease, entries=entries, row=SessionRow(session="s1", folder="/here"))]
    ) == [True]
    whole = fold(store, "s1", SessionRecord(), None)
    row = SessionRow(session="s1", folder="/here", seq=whole.seq)
    assert store.commit([Commit(lease=lease, entries=[], row=row, snapshot=snapshot(whole))]) == [
        True
    ]

    assert load_record(store, "s1") == whole
    assert [one.text for one in whole.conversation] == ["do 1", "done", "do 2", "done"]
