"""The events of goals: their state after each change, and each verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from ...journal import entries as e
from ...journal.fold import EntryKinds
from ...journal.goal_record import GoalRecord, GoalsRecord, VerdictRecord
from ...machines.verdict import read_condition
from . import contract as c

_Shown = e.AnyGoalEntry | e.TurnEnded | e.Interrupted | e.Recovered | e.SessionResumed
_SHOWN = EntryKinds[_Shown](_Shown)


def _view(goal: GoalRecord) -> c.GoalView:
    return c.GoalView(
        id=goal.id,
        state=goal.state,
        text=goal.text,
        turns_used=goal.turns_used,
        turns_total=goal.turns_total,
        max_turns=goal.max_turns,
        reason=goal.reason or None,
        detail=goal.detail or None,
        tokens=goal.tokens_total,
        max_tokens=goal.max_tokens,
    )


def goals_view(goals: GoalsRecord) -> Mapping[str, Any]:
    """Return the current goal with its last verdict, and the next goals; `state` is null without one."""
    if goals.goal is None:
        return {"state": None, "text": None, "next": _in_line(goals)}
    return _details(goals.goal, goals)


def goal_status(goal: GoalRecord, goals: GoalsRecord, at: c.Stamp) -> c.GoalStatusEvent:
    """Return the event with all details of a goal, for a client that attaches."""
    return c.GoalStatusEvent(type="goal", **at, **_details(goal, goals))


def _details(goal: GoalRecord, goals: GoalsRecord) -> c.GoalDetails:
    last = goal.verdicts[-1] if goal.verdicts else None
    awaited = read_condition(last.condition) if last and goal.state == "waiting" else None
    return c.GoalDetails(
        **_view(goal),
        tokens_used=goal.tokens_total - goal.base_tokens,
        minutes_used=round(max(0.0, goal.seconds_total - goal.base_seconds) / 60, 3),
        max_minutes=None if goal.max_seconds is None else goal.max_seconds / 60,
        waiting_for=str(awaited) if awaited else None,
        seconds=round(goal.seconds_total, 3),
        judging=bool(goal.judging),
        gates=[
            c.GateOutcome(command=gate.command, passed=gate.passed, exit_code=gate.exit_code)
            for gate in goal.gate_results
        ],
        verdict=_verdict_view(last) if last else None,
        next=_in_line(goals),
    )


def _verdict_view(judged: VerdictRecord | e.GoalJudged) -> c.VerdictView:
    return c.VerdictView(
        turn=judged.turn,
        verdict=judged.verdict,
        reason=judged.reason or judged.fault,
        by=judged.by,
        usable=not judged.fault,
        condition=judged.condition,
    )


def _in_line(goals: GoalsRecord) -> list[c.NextGoal]:
    return [c.NextGoal(id=name, text=goals.goals[name].text) for name in goals.line]


def of_goal(entry: e.Entry, goals: GoalsRecord, at: c.Stamp) -> list[c.Event]:
    """Return the events of an entry that concern a goal; of most entries none."""
    if not _SHOWN.include(entry):
        return []
    match entry:
        case e.GoalSet(is_next=True):
            return []
        case e.GoalSet():
            return [_changed(goals.goals[entry.goal], at)]
        case e.GoalJudged():
            verdict = c.VerdictEvent(type="verdict", **at, **_verdict_view(entry))
            return [verdict, _changed(goals.goals[entry.goal], at)]
        case e.TurnEnded() | e.Interrupted():
            goal = goals.goal
            is_its = goal is not None and goal.last_turn == entry.turn and not goal.is_over
            return [_changed(goal, at)] if goal is not None and is_its else []
        case e.Recovered() | e.SessionResumed():
            goal = goals.goal
            return [_changed(goal, at)] if goal is not None and goal.state == "paused" else []
        case e.GoalBegun() | e.GoalCleared() | e.GoalPaused() | e.GoalResumed() | e.GoalWoken():
            return [_changed(goals.goals[entry.goal], at)]
        case e.NoEvent():
            return []
        case _:
            assert_never(entry)


def _changed(goal: GoalRecord, at: c.Stamp) -> c.GoalEvent:
    return c.GoalEvent(type="goal", **at, **_view(goal))
