"""From a store back to a session: load the newest snapshot, fold the tail, say what was cut off.

Loading changes nothing. The process that takes the session over journals what `recovered` returns; then
the session waits for a person.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ..machines.conversation import ChatMessage
from ..machines.lifecycles import CALL
from .codec import decode, decode_entry, encode
from .entries import Recovered
from .log import Log
from .record import SessionRecord, apply, grown, messages_of
from .store import Loaded, Snapshot, Store
from .turn_record import CallRecord

UNKNOWN = (
    "[Unknown outcome: the program died while this call ran. It may or may not have had its effect. "
    "It was not run again.]"
)
NEAR = 100
"""Entries that are read over, where a new query would take longer."""
SKIPPED = "[Not run: the turn was interrupted before this call could start.]"
INTERRUPTED = "[Interrupted before an answer was given.]"


def snapshot(record: SessionRecord) -> Snapshot:
    """Return the record as data; texts of the conversation stay in the entries that hold them."""
    return Snapshot(seq=record.seq, state=encode(replace(record, conversation=Log())))


def load_record(store: Store, session: str, upto: int | None = None) -> SessionRecord:
    """Fold a session from its store, up to entry `upto`, without changing anything."""
    if upto is not None:
        return fold(store, session, SessionRecord(), upto)
    loaded = store.load(session)
    return _fold_tail(store, session, loaded)


def whole_conversation(store: Store, session: str) -> Iterator[ChatMessage]:
    """Read all messages of a session for people, oldest first, also those that were compacted.

    `SessionRecord.conversation` is what the model sees: there, a summary replaces the oldest messages.
    """
    for stored in store.entries(session):
        if stored.data.get("messages") and stored.data["kind"] != "compacted":
            yield from messages_of(decode_entry(stored.data))


def fold(store: Store, session: str, record: SessionRecord, upto: int | None) -> SessionRecord:
    """Fold the entries after `record.seq` into it and return it."""
    for stored in store.entries(session, record.seq, upto):
        apply(record, decode_entry(stored.data), stored.seq, stored.time)
    return record


def _fold_tail(store: Store, session: str, loaded: Loaded) -> SessionRecord:
    record = SessionRecord()
    if loaded.snapshot is not None:
        record = decode(SessionRecord, loaded.snapshot.state)
        record.seq = loaded.snapshot.seq
        wanted = set(record.sources)
        for after, upto in _spans(record.sources):
            for stored in store.entries(session, after, upto):
                if stored.seq in wanted:
                    record.conversation = grown(record.conversation, decode_entry(stored.data))
        record.spoken = record.spoken or len(record.conversation)
    for stored in loaded.tail:
        apply(record, decode_entry(stored.data), stored.seq, stored.time)
    return record


def _spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Give the stretches of the journal in which these entries lie: after which number, up to which.

    Ten thousand items of a run may lie between two entries of its conversation.
    """
    after = upto = 0
    for number in numbers:
        if number - upto > NEAR and upto:
            yield after, upto
            upto = 0
        after, upto = (number - 1 if not upto else after), number
    if upto:
        yield after, upto


def is_cut_off(record: SessionRecord) -> bool:
    """Whether the last owner died at work: the session was neither suspended nor finalized."""
    return record.seq > 0 and record.state not in ("suspended", "finalized")


def recovered(record: SessionRecord) -> Recovered:
    """Return the entry that puts in order what a dead owner left."""
    return Recovered(
        cause="crash" if is_cut_off(record) else "exit",
        items=sum(item.state != "pending" or not item.goal for item in record.queue.live()),
        last_active=record.updated,
        messages=closing_messages(record),
    )


def closing_messages(record: SessionRecord) -> tuple[ChatMessage, ...]:
    """Return what ends a turn that will not be finished.

    Each call without a result gets one, and the agent has the last word, so that the next message of
    a person finds the conversation as a model expects it: user and assistant by turns.
    """
    turn = record.turns.get(record.turn)
    calls = turn.calls.values() if turn is not None else ()
    results = [_result_of(call) for call in calls if call.state not in CALL.final]
    said = (*record.conversation[-1:], *results)
    if not said or said[-1].role == "assistant":
        return ()
    return (*results, ChatMessage(role="assistant", text=INTERRUPTED))


def _result_of(call: CallRecord) -> ChatMessage:
    text = UNKNOWN if call.state in ("running", "stopping") else SKIPPED
    return ChatMessage(role="tool", text=text, call=call.id, wire_id=call.wire_id)
