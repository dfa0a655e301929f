"""A session's actors as data: what each is doing, since when, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...journal.child_record import at_work
from ...journal.goal_record import GoalRecord
from ...journal.record import SessionRecord
from ...journal.run_record import RunRecord
from ...machines.lifecycles import TURN
from ..formats import iso
from .trace import Trace

__all__ = ["LANES", "Live", "actors_of"]

Live = Mapping[str, Mapping[str, Any]]
"""What only living actors have, by name: `mailbox` (depth by lane), `restarts`; `state` of a judge."""

LANES: tuple[str, ...] = ("system", "control", "data")


def actors_of(trace: Trace, live: Live, *, is_owned: bool) -> dict[str, Any]:
    """Return every actor of a session by its name, supervisors first."""
    record = trace.record
    actors = {**_session(record), **_judge(record, live)}
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
            "children": [
                *("children", "queue"),
                *(["goal"] if record.goals.goals else []),
                *(["turn"] if turn else []),
            ],
        },
        "children": {
            **_actor("subagent", "working" if busy else "idle", record.created),
            "kind": "children",
            "waiting_for": ", ".join(one.name for one in busy),
            "children": [one.session for one in busy],
        },
        "queue": {
            **_actor("queue", record.queue.state, record.queue.since or record.created),
            "waiting_for": "a person who resumes it" if held else "",
        },
    }
    if (goal := record.goals.goal) is not None:
        actors["goal"] = {
            **_actor("goal", goal.state, goal.since),
            "id": goal.id,
            "waiting_for": _goal_waits(record, goal),
        }
    if turn and record.run is not None:
        actors["turn"] = {
            **_actor("run", record.run.state, turn.since),
            "kind": "turn",
            "id": turn.id,
            "waiting_for": ", ".join(_work(record.run)),
        }
    elif turn:
        actors["turn"] = {
            **_actor("turn", turn.state, turn.since),
            "id": turn.id,
            "waiting_for": _turn_waits(record),
        }
    return actors


def _judge(record: SessionRecord, live: Live) -> dict[str, Any]:
    """Return the judge that looks at a turn, by its name; it lives and dies with its process."""
    goal = record.goals.goal
    if "judge" not in live or goal is None or not goal.judging:
        return {}
    turn = record.turns.get(goal.judging)
    state = str(live["judge"]["state"])
    waits = _JUDGE_WAITS.get(state, "").format(turn=goal.judging)
    judge = _actor("judge", state, turn.since if turn else goal.since)
    return {"judge": {**judge, "waiting_for": waits}}


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
        case "idle":
            return "a message"
        case "suspended":
            return "somebody who continues it"
        case "finalized":
            return ""
        case _:
            return f"turn {record.turn}"


_JUDGE_WAITS = {
    "gating": "a gate of the goal, after turn {turn}",
    "asking": "the model that judges turn {turn}",
    "comparing": "the files that turn {turn} changed",
}


def _goal_waits(record: SessionRecord, goal: GoalRecord) -> str:
    match goal.state:
        case "active" if goal.judging:
            return f"the judge of turn {goal.judging}"
        case "active" if goal.turn:
            return f"turn {goal.turn}"
        case "active":
            return "its turn in the queue"
        case "waiting":
            return "what the judge named"
        case "paused":
            return "a person who resumes it"
        case _:
            return ""


def _work(run: RunRecord) -> Iterator[str]:
    """Name what of a run is at work: a step, or an item of it."""
    for step, index in run.running():
        yield f"step {step.id}" + (f" ({step.name(index)})" if step.is_many else "")


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
