"""A session's actors as data: what the journal says of each, and what those that live say themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...journal.child_record import at_work
from ...journal.record import SessionRecord
from ..formats import iso
from .trace import Trace

Live = Mapping[str, Mapping[str, Any]]
"""What actors that live say of themselves, by name; see `actors/inspection.py`."""

_UNKNOWN = dict.fromkeys(("waiting_for", "rule", "mailbox", "last_message", "restarts"))
"""State that only the actor itself knows."""


def actors_of(trace: Trace, live: Live, absent: str | None) -> dict[str, Any]:
    """Return every actor of a session by its name, supervisors first.

    `absent` says of those that said nothing whether they are `stopped`; none where that is not known.
    Where an actor says another state than the journal, `differs` has the journal's, empty for none.
    """
    actors = _journalled(trace.record)
    for name in live:
        if name not in actors:  # how far a judge is, the journal never knows
            actors[name] = _actor(name, None if name == "judge" else "", None)
    for name, actor in actors.items():
        actor |= {**_UNKNOWN, "last_messages": list(trace.last.get(name, ())), "supervised": absent}
        journalled = actor["state"]
        actor |= live.get(name, {})
        if journalled not in (None, actor["state"]):
            actor["differs"] = journalled
    return actors


def _journalled(record: SessionRecord) -> dict[str, Any]:
    turn, goal = record.turns.get(record.turn), record.goals.goal
    busy = [child.session for child in at_work(record.children)]
    beneath = [
        *("children", "queue"),
        *(["goal"] if record.goals.goals else []),
        *(["turn"] if turn else []),
    ]
    queue = record.queue
    actors = {
        "session": _actor("session", record.state, record.since or record.created, beneath),
        "children": {
            **_actor("subagent", "working" if busy else "idle", record.created, busy),
            "kind": "children",
        },
        "queue": _actor("queue", queue.state, queue.since or record.created),
    }
    if goal is not None:
        actors["goal"] = {**_actor("goal", goal.state, goal.since), "id": goal.id}
    if turn and record.run is not None:
        run = _actor("run", record.run.state, turn.since)
        actors["turn"] = {**run, "kind": "turn", "id": turn.id}
    elif turn:
        actors["turn"] = {**_actor("turn", turn.state, turn.since), "id": turn.id}
    return actors


def _actor(
    machine: str, state: str | None, since: float | None, children: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "kind": machine,
        "machine": machine,
        "state": state,
        "since": None if since is None else iso(since),
        "children": list(children),
    }
