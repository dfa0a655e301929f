"""What machine interfaces are told of goals: their state after each change, and each verdict."""

from __future__ import annotations

from typing import Any

from ...journal import entries as e
from ...journal import goal_entries as g
from ...journal.goal_record import GoalRecord, GoalsRecord
from ...journal.record import SessionRecord
from ...machines.verdict import read_condition

Event = dict[str, Any]
CHANGES = (
    g.GoalBegun,
    g.GoalCleared,
    g.GoalJudged,
    g.GoalPaused,
    g.GoalResumed,
    g.GoalWoken,
)


def goal_view(goal: GoalRecord) -> Event:
    """Show a goal as programs see it; `detail` says more of its reason, or what is missing."""
    return {
        "id": goal.id,
        "state": goal.state,
        "text": goal.text,
        "turns_used": goal.turns_used,
        "turns_total": goal.turns_total,
        "max_turns": goal.max_turns,
        "reason": goal.reason or None,
        "detail": goal.detail or None,
        "tokens": goal.tokens_total,
        "max_tokens": goal.max_tokens,
    }


def goals_view(goals: GoalsRecord) -> Event:
    """Show the current goal with its last verdict, and those in line; without one `state` is null."""
    goal = goals.goal
    line = [{"id": one, "text": goals.goals[one].text} for one in goals.line]
    if goal is None:
        return {"state": None, "text": None, "next": line}
    last = goal.verdicts[-1] if goal.verdicts else None
    verdict = last and {
        "turn": last.turn,
        "verdict": last.verdict,
        "reason": last.reason or last.fault,
        "by": last.by,
        "usable": not last.fault,
        "condition": last.condition,
    }
    gates = [
        {"command": one.command, "passed": one.passed, "exit_code": one.exit_code}
        for one in goal.gate_results
    ]
    awaited = read_condition(last.condition) if last and goal.state == "waiting" else None
    more = {
        "waiting_for": str(awaited) if awaited else None,
        "seconds": round(goal.seconds_total, 3),
        "judging": bool(goal.judging),
        "gates": gates,
    }
    return {**goal_view(goal), **_budgets(goal), **more, "verdict": verdict, "next": line}


def _budgets(goal: GoalRecord) -> Event:
    """Show what of tokens and minutes this grant has used, and how much it may."""
    seconds, most = goal.seconds_total - goal.base_seconds, goal.max_seconds
    return {
        "tokens_used": goal.tokens_total - goal.base_tokens,
        "minutes_used": round(max(0.0, seconds) / 60, 3),
        "max_minutes": None if most is None else most / 60,
    }


def of_goal(entry: e.Entry, record: SessionRecord) -> list[Event]:
    """Return the events of an entry about goals; none for any other."""
    goals = record.goals
    match entry:
        case g.GoalSet(is_next=True):
            return []
        case g.GoalSet():
            return [_goal(goals.goals[entry.goal])]
        case g.GoalJudged():
            return [_verdict(entry), _goal(goals.goals[entry.goal])]
        case e.TurnEnded() | e.Interrupted():
            goal = goals.goal
            is_its = goal is not None and goal.last_turn == entry.turn and not goal.is_over
            return [_goal(goal)] if goal is not None and is_its else []
        case e.Recovered() | e.SessionResumed():
            goal = goals.goal
            return [_goal(goal)] if goal is not None and goal.state == "paused" else []
        case _ if isinstance(entry, CHANGES):
            return [_goal(goals.goals[entry.goal])]
        case _:
            return []


def _goal(goal: GoalRecord) -> Event:
    return {"type": "goal", **goal_view(goal)}


def _verdict(entry: g.GoalJudged) -> Event:
    return {
        "type": "verdict",
        "verdict": entry.verdict,
        "reason": entry.reason or entry.fault,
        "condition": entry.condition,
        "turn": entry.turn,
        "by": entry.by,
        "usable": not entry.fault,
    }
