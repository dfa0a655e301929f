"""A session's actors as data: what each is doing, since when, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..journal.child_record import at_work
from ..journal.record import SessionRecord
from ..machines.turn import TURN
from .stamp import iso
from .trace import Trace

__all__ = ["LANES", "Live", "actors_of"]

Live = Mapping[str, Mapping[str, Any]]
"""What only living actors have, by name: `mailbox` (depth by lane) and `restarts`."""

LANES: tuple[str, ...] = ("system", "control", "data")


def actors_of(trace: Trace, live: Live, *, is_owned: bool) -> dict[str, Any]:
    """Return every actor of a session by its name, supervisors first."""
    record = trace.record
    actors = _session(record)
    for name, actor in actors.items():
        came = list(trace.last.get(name, ()))
        actor["last_message"] = came[-1]["kind"] if came else ""
        actor["last_messages"] = came
        is_there = is_owned and (name != "turn" or record.unfinished is not None)
        actor["supervised"] = "running" if is_there else "stopped"
        actor |= live.get(name, {})
    return actors


def _session(record: SessionRecord) -> dict[str, Any]:
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
    return actors


def _actor(machine: str, state: str, since: float) -> dict[str, Any]:
    return {
        "kind": machine,
        "machine": machine,
        "state": state,
        "since": iso(since),
        "children": [],
        "mailbox": dict.fromkeys(LANES, 0),
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
