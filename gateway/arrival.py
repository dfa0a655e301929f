"""What somebody who comes to a running session is told first: how it is, as events, from its dump."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..journal.codec import decode
from ..journal.entries import QuestionAsked, ToolIntended
from ..journal.goal_record import GoalsRecord
from ..journal.queue import QueueRecord
from ..journal.record import SessionRecord
from .events.contract import Event, queue_view, translate
from .events.goal import goals_view

__all__ = ["how_it_is"]


def how_it_is(data: dict[str, Any], now: float) -> Iterator[Event]:
    """Yield the events; `now` in seconds since the epoch."""
    yield {"type": "session_started", "resumed": True, "folder": data["folder"]}
    turn = data["turns"].get(data["turn"], {})
    if data["state"] == "busy" and turn:
        elapsed = round(max(0.0, now - turn["started"]), 3)
        about = {"item": turn["item"], "number": turn["number"], "elapsed": elapsed}
        yield {"type": "turn_started", "turn": turn["id"], **about}
        yield from _calls(turn)
    for child in data["children"].values():
        if inner := data["subagents"].get(child["name"]):
            about = {name: child[name] for name in ("name", "task", "agent", "relation")}
            yield {"type": "child_started", **about, "id": child["session"], "waiting": False}
            whose = {"session": child["session"], "parent": data["id"]}
            for event in _calls(inner["turns"].get(inner["turn"], {})):
                yield {**event, **whose}
    goals = decode(GoalsRecord, data["goals"])
    if goals.goal is not None and not goals.goal.is_over:
        yield {"type": "goal", **goals_view(goals)}
    yield {"type": "queue", **queue_view(decode(QueueRecord, data["queue"]))}


def _calls(turn: dict[str, Any]) -> Iterator[Event]:
    """Tell of the calls of a turn that run, or are asked about."""
    for call in turn.get("calls", {}).values():
        about = (call["id"], call["tool"], call["arguments"])
        if call["state"] == "asking":
            asked = QuestionAsked(turn["id"], about[0], call["question"], *about[1:])
            yield from translate(asked, SessionRecord())
        elif call["state"] in ("running", "stopping"):
            yield from translate(ToolIntended(turn["id"], 0, *about), SessionRecord())
