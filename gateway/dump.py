"""A session as data: its record, its actors, and how it came to be as it is.

One builder, whether the session lives in this process or only in the store: field by field the same
for the same entry, but for the mailboxes and restarts, which only a living session has. A stored
session is folded up to one entry, so that the parts agree even while another process writes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..journal import entries as e
from ..journal.child_record import at_work
from ..journal.codec import decode_entry, encode, kind_of
from ..journal.hook_entry import HookRan
from ..journal.record import SessionRecord, apply
from ..journal.recovery import fold
from ..journal.store import SessionRow, Store, StoredEntry
from ..machines.turn import TURN
from .events import iso

__all__ = ["Live", "dump_live", "dump_session"]

Live = Mapping[str, Mapping[str, Any]]
"""What only living actors have, by name: `mailbox` (depth by lane) and `restarts`."""

_TRACED = 200  # entries at the end that are looked at for transitions
_SHOWN = 20  # transitions
_LANES: tuple[str, ...] = ("system", "control", "data")
_OF_QUEUE = (e.Queued, e.Requeued, e.Deferred, e.Withdrawn, e.QueueHeld, e.QueueReleased)
_REASONS = ("cause", "why", "reason", "status", "choice", "rule", "tool")


class _Trace:
    """Folds entries and remembers which of them moved what."""

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.transitions: deque[dict[str, Any]] = deque(maxlen=_SHOWN)
        self.last: dict[str, str] = {}
        self.hooks: deque[dict[str, Any]] = deque(maxlen=_SHOWN)

    def take(self, stored: StoredEntry) -> None:
        entry = decode_entry(stored.data)
        if isinstance(entry, HookRan):
            self.hooks.append({"seq": stored.seq, "time": iso(stored.time), **encode(entry)})
        before = _states(self.record)
        apply(self.record, entry, stored.seq, stored.time)
        self.last[_addressee(entry)] = kind_of(type(entry))
        for name, state in _states(self.record).items():
            if before.get(name) != state:
                self.transitions.append(
                    {
                        "seq": stored.seq,
                        "time": iso(stored.time),
                        "what": name,
                        "from": before.get(name, ""),
                        "to": state,
                        "cause": _cause(entry),
                    }
                )


def dump_session(store: Store, row: SessionRow) -> dict[str, Any]:
    """Return everything that is known of a stored session but its conversation; changes nothing."""
    trace = _trace(store, row.session, row.seq)
    mail = {"session": {"mailbox": _mail(store, row.session)}}
    return _dump(store, trace.record, trace, mail)


def dump_live(store: Store, record: SessionRecord, messages: int, live: Live) -> dict[str, Any]:
    """Return the same of a session that lives here; its entries must be in the store.

    `record` is its state, as its actor has it, `messages` the length of its conversation.
    """
    data = _dump(store, record, _trace(store, record.id, record.seq), live)
    return {**data, "messages": messages}


def _trace(store: Store, session: str, seq: int) -> _Trace:
    """Fold a session up to an entry, and remember its last transitions."""
    record = fold(store, session, SessionRecord(id=session), max(0, seq - _TRACED))
    trace = _Trace(record)
    for stored in store.entries(session, record.seq, seq):
        trace.take(stored)
    return trace


def _dump(store: Store, record: SessionRecord, trace: _Trace, live: Live) -> dict[str, Any]:
    data = asdict(replace(record, conversation=[], sources=[]))
    for name in ("conversation", "sources"):
        del data[name]
    data["messages"] = len(record.conversation)
    owner = store.owner(record.id)
    data["owner"] = {"pid": owner.pid, "since": iso(owner.started)} if owner else None
    data["actors"] = _actors(record, trace.last, store.is_owned(record.id), live)
    data["transitions"] = list(trace.transitions)
    data["hooks"] = list(trace.hooks)
    return data


def _states(record: SessionRecord) -> dict[str, str]:
    states = {"session": record.state, "queue": record.queue.state}
    states |= {f"item {one.id}": one.state for one in record.queue.items.values()}
    if turn := record.turns.get(record.turn):
        states[f"turn {turn.id}"] = turn.state
        states |= {f"call {one.id}": one.state for one in turn.calls.values()}
    states |= {f"child {one.name}": one.state for one in record.children.values()}
    return states


def _addressee(entry: e.Entry) -> str:
    if isinstance(entry, _OF_QUEUE):
        return "queue"
    return "turn" if getattr(entry, "turn", "") else "session"


def _cause(entry: e.Entry) -> str:
    """Name the entry, and what it says of why."""
    reasons = [str(value) for name in _REASONS if (value := getattr(entry, name, ""))]
    return ": ".join([kind_of(type(entry)), *reasons[:1]])


def _mail(store: Store, session: str) -> dict[str, int]:
    """Count what waits in the session's inbox, by lane."""
    mail: dict[str, int] = dict.fromkeys(_LANES, 0)
    for posted in store.unconsumed(session):
        mail[_LANES[min(posted.lane, len(_LANES) - 1)]] += 1
    return mail


def _actors(
    record: SessionRecord, last: dict[str, str], is_owned: bool, live: Live
) -> dict[str, Any]:
    turn = record.turns.get(record.turn)
    held = record.queue.state == "held"
    busy = list(at_work(record.children))
    actors: dict[str, Any] = {
        "session": {
            **_actor("session", record.state, record.since or record.created),
            "waiting_for": _session_waits(record),
            "children": ["nursery", "queue", *(["turn"] if turn else [])],
        },
        "nursery": {
            **_actor("subagent", "working" if busy else "idle", record.created),
            "kind": "nursery",
            "waiting_for": ", ".join(one.name for one in busy),
            "children": [one.session for one in busy],
        },
        "queue": {
            **_actor("queue", record.queue.state, record.queue.since or record.created),
            "waiting_for": "a person who resumes it" if held else "",
        },
    }
    if turn:
        actors["turn"] = {
            **_actor("turn", turn.state, turn.since),
            "id": turn.id,
            "waiting_for": _turn_waits(record),
        }
    for name, actor in actors.items():
        actor["last_message"] = last.get(name, "")
        is_there = is_owned and (name != "turn" or record.unfinished is not None)
        actor["supervised"] = "running" if is_there else "stopped"
        actor |= live.get(name, {})
    return actors


def _actor(machine: str, state: str, since: float) -> dict[str, Any]:
    return {
        "kind": machine,
        "machine": machine,
        "state": state,
        "since": iso(since),
        "children": [],
        "mailbox": dict.fromkeys(_LANES, 0),
        "restarts": 0,
    }


def _session_waits(record: SessionRecord) -> str:
    match record.state:
        case "idle" | "starting":
            return "a message"
        case "suspended":
            return "somebody who continues it"
        case "finalized":
            return ""
        case _:
            return f"turn {record.turn}"


def _turn_waits(record: SessionRecord) -> str:
    turn = record.turns[record.turn]
    if turn.state in TURN.final:
        return ""
    if turn.state != "acting":
        return "the model" if turn.state == "calling" else ""
    waits = [
        f"an answer to question {one.question}" if one.state == "asking" else f"call {one.id}"
        for one in turn.calls.values()
        if one.state in ("asking", "running", "stopping")
    ]
    return ", ".join(waits)
