"""A stored session as data: its record, its actors, and how it came to be as it is.

Everything is folded from the journal up to one entry, so that the parts agree with each other even
while another process writes on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import Any

from ..gateway.events import iso
from ..journal import entries as e
from ..journal.codec import decode_entry, kind_of
from ..journal.record import SessionRecord, apply
from ..journal.recovery import fold
from ..journal.sqlite import SqliteStore
from ..journal.store import SessionRow, StoredEntry
from ..machines.turn import TURN

__all__ = ["dump_session"]

_TRACED = 200  # entries at the end that are looked at for transitions
_SHOWN = 20  # transitions
_LANES: tuple[str, ...] = ("system", "control", "data")
_OF_QUEUE = (e.Queued, e.Requeued, e.Withdrawn, e.QueueHeld, e.QueueReleased)
_REASONS = ("cause", "why", "reason", "status", "choice", "rule", "tool")


class _Trace:
    """Folds entries and remembers which of them moved what."""

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.transitions: deque[dict[str, Any]] = deque(maxlen=_SHOWN)
        self.last: dict[str, str] = {}

    def take(self, stored: StoredEntry) -> None:
        entry = decode_entry(stored.data)
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


def dump_session(store: SqliteStore, row: SessionRow, rows: list[SessionRow]) -> dict[str, Any]:
    """Return everything that is known of a session but its conversation; changes nothing.

    `rows` are all sessions, for the names of its children.
    """
    record = fold(store, row.session, SessionRecord(id=row.session), max(0, row.seq - _TRACED))
    trace = _Trace(record)
    for stored in store.entries(row.session, record.seq):
        trace.take(stored)
    data = asdict(record)
    for name in ("conversation", "sources"):
        del data[name]
    data["messages"] = len(record.conversation)
    owner = store.owner(row.session)
    data["owner"] = {"pid": owner.pid, "since": iso(owner.started)} if owner else None
    data["children"] = [one.session for one in rows if one.parent == row.session]
    data["actors"] = _actors(trace, is_owned=store.is_owned(row.session), mail=_mail(store, row))
    data["transitions"] = list(trace.transitions)
    return data


def _states(record: SessionRecord) -> dict[str, str]:
    states = {"session": record.state, "queue": record.queue.state}
    states |= {f"item {one.id}": one.state for one in record.queue.items.values()}
    if turn := record.turns.get(record.turn):
        states[f"turn {turn.id}"] = turn.state
        states |= {f"call {one.id}": one.state for one in turn.calls.values()}
    return states


def _addressee(entry: e.Entry) -> str:
    if isinstance(entry, _OF_QUEUE):
        return "queue"
    return "turn" if getattr(entry, "turn", "") else "session"


def _cause(entry: e.Entry) -> str:
    """Name the entry, and what it says of why."""
    reasons = [str(value) for name in _REASONS if (value := getattr(entry, name, ""))]
    return ": ".join([kind_of(type(entry)), *reasons[:1]])


def _mail(store: SqliteStore, row: SessionRow) -> dict[str, int]:
    """Count what waits in the session's inbox, by lane."""
    mail: dict[str, int] = dict.fromkeys(_LANES, 0)
    for posted in store.unconsumed(row.session):
        mail[_LANES[min(posted.lane, len(_LANES) - 1)]] += 1
    return mail


def _actors(trace: _Trace, *, is_owned: bool, mail: dict[str, int]) -> dict[str, Any]:
    record = trace.record
    turn = record.turns.get(record.turn)
    actors: dict[str, Any] = {
        "session": {
            **_actor("session", record.state, record.since or record.created),
            "waiting_for": _session_waits(record),
            "children": ["queue", *(["turn"] if turn else [])],
            "mailbox": mail,
        },
        "queue": {
            **_actor("queue", record.queue.state, record.queue.since or record.created),
            "waiting_for": "a person who resumes it" if record.queue.state == "held" else "",
        },
    }
    if turn:
        actors["turn"] = {
            **_actor("turn", turn.state, turn.since),
            "id": turn.id,
            "waiting_for": _turn_waits(record),
        }
    for name, actor in actors.items():
        actor["last_message"] = trace.last.get(name, "")
        actor["supervised"] = "running" if is_owned else "stopped"
    return actors


def _actor(machine: str, state: str, since: float) -> dict[str, Any]:
    return {
        "kind": machine,
        "machine": machine,
        "state": state,
        "since": iso(since),
        "children": [],
        "mailbox": dict.fromkeys(_LANES, 0),
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
