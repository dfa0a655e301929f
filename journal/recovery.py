"""From a store back to a session: load the newest snapshot, fold the tail, say what was cut off.

Loading changes nothing. The process that takes the session over journals what `recovered` returns; then
the session waits for a person.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..machines.conversation import ChatMessage, cut_short
from ..machines.lifecycles import CALL
from .codec import decode, decode_entry, encode
from .entries import Recovered
from .log import Log
from .record import SessionRecord, apply, grown, messages_of, without_conversation
from .store import Snapshot, Store, StoredEntry
from .turn_record import CallRecord

UNKNOWN = (
    "[Unknown outcome: the program died while this call ran. It may or may not have had its effect. "
    "It was not run again.]"
)
WITH_YOU = (
    "[The program died while this subagent worked. It goes on when you do, and its result comes then: "
    "there is no need to delegate it again.]"
)
NEAR = 100
"""Entries that are read over, where a new query would take longer; and how many a page has."""
FOUND = "[The program died while this call ran. Asked afterwards, its tool says:]\n{outcome}"
SKIPPED = "[Not run: the turn was interrupted before this call could start.]"
INTERRUPTED = "[Interrupted before an answer was given.]"
NO_OUTCOMES: Mapping[str, str] = {}


Range = tuple[int, int, int]
"""A part of a conversation: first and last entry, and how many messages of the first are kept."""


def snapshot(record: SessionRecord) -> Snapshot:
    """Return the record as data; of the conversation, only the ranges of entries that hold it."""
    state = encode(without_conversation(record))
    return Snapshot(seq=record.seq, state={**state, "held": list(_ranges(record.origins))})


def load_record(store: Store, session: str, upto: int | None = None) -> SessionRecord:
    """Make a session's record from its nearest snapshot, up to entry `upto`; changes nothing.

    This reads the entries after the snapshot, and those that hold what the model sees.
    """
    tail: Iterable[StoredEntry]
    if upto is None:
        loaded = store.load(session)
        kept, tail = loaded.snapshot, loaded.tail
    else:
        kept = store.snapshot(session, upto)
        tail = store.entries(session, kept.seq if kept is not None else 0, upto)
    record = SessionRecord()
    if kept is not None:
        record = decode(SessionRecord, kept.state)
        record.seq = kept.seq
        _read_conversation(store, session, record, kept.state)
        record.spoken = record.spoken or len(record.conversation)
    for stored in tail:
        apply(record, decode_entry(stored.data), stored.seq, stored.time)
    return record


def fold(store: Store, session: str, record: SessionRecord, upto: int | None) -> SessionRecord:
    """Fold the entries after `record.seq` into it and return it."""
    for stored in store.entries(session, record.seq, upto):
        apply(record, decode_entry(stored.data), stored.seq, stored.time)
    return record


def whole_conversation(
    store: Store, session: str, upto: int | None = None
) -> Iterator[ChatMessage]:
    """Read all messages of a session for people, oldest first, also those that were compacted.

    `upto` is the last entry that is read. `SessionRecord.conversation` is what the model sees: there, a
    summary replaces the oldest messages.
    """
    for stored in store.entries(session, 0, upto):
        yield from _told(stored)


def newest_first(store: Store, session: str) -> Iterator[ChatMessage]:
    """Read the messages that `whole_conversation` gives from the last one back, as far as wanted."""
    for stored in backwards(store, session, store.load(session).row.seq):
        yield from reversed(_told(stored))


def backwards(store: Store, session: str, upto: int) -> Iterator[StoredEntry]:
    """Read the entries from number `upto` back, as far as wanted."""
    while upto > 0:
        yield from reversed(list(store.entries(session, max(0, upto - NEAR), upto)))
        upto -= NEAR


def _told(stored: StoredEntry) -> tuple[ChatMessage, ...]:
    """Return what an entry adds to the conversation as people read it."""
    if not stored.data.get("messages") or stored.data["kind"] == "compacted":
        return ()
    return messages_of(decode_entry(stored.data))


def _ranges(origins: Iterable[int]) -> Iterator[Range]:
    """Give the ranges of entries that hold a conversation, from where each of its messages is.

    Only what begins a range can be a summary, or an entry of which a summary replaces a part. Ten
    thousand items of a run may lie between two entries of its conversation: they are in no range.
    """
    first = last = kept = 0
    for origin in origins:
        if first and last < origin <= last + NEAR:
            last = origin
        elif origin == last:
            kept += first == last
        else:
            if first:
                yield first, last, kept
            first, last, kept = origin, origin, 1
    if first:
        yield first, last, kept


def _read_conversation(
    store: Store, session: str, record: SessionRecord, state: Mapping[str, Any]
) -> None:
    """Read what the model sees from the entries that a snapshot names."""
    if "sources" in state:
        _read_sources(store, session, record, state["sources"])
        return
    conversation, origins = list[ChatMessage](), list[int]()
    for first, last, kept in state.get("held", ()):
        for stored in store.entries(session, first - 1, last):
            if stored.seq == first:
                said = messages_of(decode_entry(stored.data))[-kept:]
            else:
                said = _told(stored)
            conversation += said
            origins += [stored.seq] * len(said)
    record.conversation, record.origins = Log(conversation), Log(origins)


def _read_sources(
    store: Store, session: str, record: SessionRecord, sources: Sequence[int]
) -> None:
    """Do the same for a snapshot of an earlier version, which names every entry with messages."""
    wanted = set(sources)
    for first, last, _ in _ranges(sources):
        for stored in store.entries(session, first - 1, last):
            if stored.seq in wanted:
                entry = decode_entry(stored.data)
                said = messages_of(entry)
                record.conversation = grown(record.conversation, entry, said)
                record.origins = grown(record.origins, entry, [stored.seq] * len(said))


def is_cut_off(record: SessionRecord) -> bool:
    """Whether the last owner died at work: the session was neither suspended nor finalized."""
    return record.seq > 0 and record.state not in ("suspended", "finalized")


def running_calls(record: SessionRecord) -> list[CallRecord]:
    """Return the calls that ran when the owner died, as the journal says."""
    turn = record.turns.get(record.turn)
    calls = turn.calls.values() if turn is not None else ()
    return [call for call in calls if call.state in ("running", "stopping")]


def recovered(record: SessionRecord, outcomes: Mapping[str, str] = NO_OUTCOMES) -> Recovered:
    """Return the entry that puts in order what a dead owner left.

    `outcomes` says of calls that ran what their tools told afterwards.
    """
    found = tuple(call.id for call in running_calls(record) if call.id in outcomes)
    return Recovered(
        cause="crash" if is_cut_off(record) else "exit",
        items=sum(item.state != "pending" or not item.goal for item in record.queue.live()),
        last_active=last_sign(record),
        messages=closing_messages(record, outcomes),
        found=found,
    )


def last_sign(record: SessionRecord) -> float:
    """When a session last showed that a program had it open, in seconds since 1970.

    A change of its queue or its name shows nothing: other programs make these, too.
    """
    return max(record.since, record.active)


def closing_messages(
    record: SessionRecord, outcomes: Mapping[str, str] = NO_OUTCOMES
) -> tuple[ChatMessage, ...]:
    """Return what ends a turn that will not be finished.

    Each call without a result gets one, and the agent has the last word, so that the next message of
    a person finds the conversation as a model expects it: user and assistant by turns.
    """
    turn = record.turns.get(record.turn)
    calls = turn.calls.values() if turn is not None else ()
    delegating = {of.call for of in record.children.values() if of.goes_on}
    results = [
        _result_of(call, outcomes, goes_on=call.id in delegating)
        for call in calls
        if call.state not in CALL.final
    ]
    said = (*record.conversation[-1:], *results)
    if not said or said[-1].role == "assistant":
        return ()
    return (*results, cut_short(turn.said if turn is not None else "", INTERRUPTED))


def _result_of(call: CallRecord, outcomes: Mapping[str, str], *, goes_on: bool) -> ChatMessage:
    if call.state not in ("running", "stopping"):
        text = SKIPPED
    elif goes_on:
        text = WITH_YOU
    else:
        text = FOUND.format(outcome=outcomes[call.id]) if call.id in outcomes else UNKNOWN
    return ChatMessage(role="tool", text=text, call=call.id)
