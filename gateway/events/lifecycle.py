"""The lifecycle events that hooks receive, translated from journal entries.

There is no `session_end`: a turn's end is `turn_ended`, leaving the program is `session_suspend`, and
only `session_finalize` is final. It has `cause` and `finalize`, and the id is the same however often
the event is reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...journal import entries as e
from ...journal.record import SessionRecord
from ...ports.hooks import HookCall
from ..wording.formats import iso


def hook_call(entry: e.Entry, seq: int, time: float, record: SessionRecord) -> HookCall | None:
    """Translate an entry, with the record as it is with this entry folded; most entries have no hook."""
    found = _event_of(entry, record)
    if found is None:
        return None
    event, more = found
    payload = {
        "session": record.id,
        "time": iso(time),
        "seq": seq,
        "folder": record.folder,
        "agent": record.agent,
        "parent": record.parent or None,
        **more,
    }
    finalize = more["finalize"] if event == "session_finalize" else ""
    return HookCall(
        event=event, payload=payload, folder=Path(record.folder), about=seq, finalize=finalize
    )


def _event_of(entry: e.Entry, record: SessionRecord) -> tuple[str, dict[str, Any]] | None:
    """Return the name of an entry's event and its own fields.

    The events of hooks are a fixed list (docs/hooks.md), so a new entry has none unless the list grows.
    """
    match entry:
        case e.SessionOpened():
            return "session_start", {"model": record.model}
        case e.SessionResumed():
            return "session_resume", {"cause": "exit"}
        case e.Recovered():
            return "session_resume", {"cause": entry.cause}
        case e.TurnStarted():
            item = record.queue.items.get(entry.item)
            text = item.text if item else ""
            return "turn_started", {**_turn(entry.turn, record), "text": text}
        case e.Answered() if entry.messages:
            text = entry.messages[0].text
            return "agent_response", {**_turn(entry.turn, record), "text": text}
        case e.TurnEnded():
            ended = {"status": entry.status, "reason": entry.reason or None}
            return "turn_ended", {**_turn(entry.turn, record), **ended}
        case e.Interrupted():
            ended = {"status": "interrupted", "reason": entry.cause}
            return "turn_ended", {**_turn(entry.turn, record), **ended}
        case e.QuestionAsked():
            asked = {"question": entry.question, "tool": entry.tool, "arguments": entry.arguments}
            return "question", {**_turn(entry.turn, record), **asked}
        case e.StepAsked():
            asked = {"question": entry.question, "text": entry.text, "step": entry.step}
            return "question", {**_turn(entry.turn, record), **asked}
        case e.ChildStarted():
            child = {"child": entry.child, "child_session": entry.session, "task": entry.task}
            more = {"child_agent": entry.agent, "relation": entry.relation}
            return "subagent_start", {**child, **more}
        case e.ChildEnded():
            ended = {"status": entry.status, "reason": entry.reason or None, "text": entry.text}
            return "subagent_end", {"child": entry.child, **ended}
        case e.GoalJudged(verdict="done"):
            return "goal_achieved", _goal(entry.goal, record)
        case e.GoalJudged(verdict="impossible") | e.GoalPaused() | e.GoalCleared():
            return "goal_stopped", _goal(entry.goal, record)
        case e.SessionSuspended():
            return "session_suspend", {"cause": entry.cause}
        case e.SessionFinalized():
            return "session_finalize", {"cause": entry.cause, "finalize": entry.finalize}
        case _:
            return None


def _turn(name: str, record: SessionRecord) -> dict[str, Any]:
    turn = record.turns.get(name)
    return {"turn": name, "number": turn.number if turn else None}


def _goal(name: str, record: SessionRecord) -> dict[str, Any]:
    goal = record.goals.goals[name]
    return {
        "goal": name,
        "text": goal.text,
        "state": goal.state,
        "reason": goal.reason or None,
        "detail": goal.detail or None,
        "turns_used": goal.turns_used,
        "turns_total": goal.turns_total,
    }
