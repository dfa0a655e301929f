"""A session's goals as data, and the fold of the entries that change them.

The session and its goal actor each keep a copy and fold the same entries, not always in the same
order. So a goal's state and what it was judged are changed by the goal's own decisions alone, and what
it has spent by what its turns did: neither reads what the other changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..machines.goal import GOAL, PURSUED
from ..machines.pursuit import GateResult
from . import entries as e
from . import goal_entries as g
from .fold import move

__all__ = ["GoalRecord", "GoalsRecord", "VerdictRecord", "apply_to_goals"]

REMEMBERED_GOALS = 20
REMEMBERED_VERDICTS = 5
VERDICT_EVENTS = {
    "done": "achieve",
    "continue": "continue",
    "wait": "wait",
    "impossible": "give_up",
}


@dataclass(slots=True)
class VerdictRecord:
    """One verdict; see `GoalJudged` for the fields."""

    turn: str
    verdict: str
    reason: str = ""
    by: str = "judge"
    fault: str = ""
    condition: dict[str, Any] | None = None


@dataclass(slots=True)
class GoalRecord:
    """One goal, what became of it, and what it has spent.

    `reserved` is the message whose turn is paid for and has not ended; `turn` runs for it, `last_turn`
    was the last that did. `is_again`: that turn was interrupted, goes on, and is paid for.
    `turns_total`, `tokens_total` and `seconds_total` never fall; the grant began at those of `base`.
    `boundary` is the turn that was dealt with last, `judging` one that is being judged. `idle`,
    `failing` and `judge_failures` count in a row. `answer` is a digest of what the agent said last,
    `gate_results` is how the gates ended last.
    """

    id: str
    text: str
    max_turns: int
    gates: tuple[tuple[str, ...], ...] = ()
    max_tokens: int | None = None
    max_seconds: float | None = None
    user: str = ""
    state: str = "lined_up"
    since: float = 0.0
    reason: str = ""
    detail: str = ""
    boundary: str = ""
    judging: str = ""
    idle: int = 0
    failing: int = 0
    judge_failures: int = 0
    answer: str = ""
    verdicts: list[VerdictRecord] = field(default_factory=list[VerdictRecord])
    gate_results: tuple[GateResult, ...] = ()
    base_turns: int = 0
    base_tokens: int = 0
    base_seconds: float = 0.0
    reserved: str = ""
    turn: str = ""
    last_turn: str = ""
    is_again: bool = False
    turn_began: float = 0.0
    turns_total: int = 0
    tokens_total: int = 0
    seconds_total: float = 0.0

    @property
    def is_pursued(self) -> bool:
        """Whether something is done for it, or will be, without anybody saying so."""
        return self.state in PURSUED

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self.state in GOAL.final

    @property
    def turns_used(self) -> int:
        """Turns of this grant that have ended."""
        return self.turns_total - self.base_turns

    @property
    def turns_left(self) -> int:
        """Turns of this grant that are neither spent nor reserved."""
        return max(0, self.max_turns - self.turns_used - bool(self.reserved))

    @property
    def overdraft(self) -> str:
        """Say what of its tokens or minutes is spent; empty if nothing is."""
        tokens = self.tokens_total - self.base_tokens
        if self.max_tokens is not None and tokens >= self.max_tokens:
            return f"{tokens} of {self.max_tokens} tokens are spent"
        seconds = self.seconds_total - self.base_seconds
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return f"{seconds / 60:.1f} of {self.max_seconds / 60:g} minutes are spent"
        return ""


@dataclass(slots=True)
class GoalsRecord:
    """All goals of a session: `current` is the one it works for or did last, `line` those after it."""

    current: str = ""
    made: int = 0
    line: list[str] = field(default_factory=list[str])
    goals: dict[str, GoalRecord] = field(default_factory=dict[str, GoalRecord])

    @property
    def goal(self) -> GoalRecord | None:
        """The current goal."""
        return self.goals.get(self.current)

    @property
    def is_pursued(self) -> bool:
        """Whether something is done for a goal, or will be, without anybody saying so."""
        goal = self.goal
        return goal is not None and goal.is_pursued


def apply_to_goals(goals: GoalsRecord, entry: e.Entry, time: float) -> None:
    """Fold one entry, in place; others leave it alone."""
    match entry:
        case g.GoalSet():
            _set(goals, entry, time)
        case g.GoalBegun():
            goals.line.remove(entry.goal)
            _begin(goals, entry.goal, time)
        case (
            g.GoalTurnFailed()
            | g.JudgingBegun()
            | g.JudgingStopped()
            | g.GoalJudged()
            | g.GoalPaused()
            | g.GoalResumed()
            | g.GoalWoken()
            | g.GoalCleared()
        ):
            _apply_decision(goals, goals.goals[entry.goal], entry, time)
        case e.Recovered():
            for goal in goals.goals.values():
                _settle(goal, entry.last_active)
                goal.reserved = ""
                _rest(goal, time)
        case e.SessionResumed() | e.SessionSuspended():
            for goal in goals.goals.values():
                _rest(goal, time)
        case e.SessionFinalized():
            for goal in goals.goals.values():
                if not goal.is_over:
                    _shift(goal, "clear", time)
        case _:
            for goal in goals.goals.values():
                _meter(goal, entry, time)


def _set(goals: GoalsRecord, entry: g.GoalSet, time: float) -> None:
    goals.made += 1
    goals.goals[entry.goal] = GoalRecord(
        entry.goal,
        entry.text,
        entry.max_turns,
        entry.gates,
        entry.max_tokens,
        entry.max_seconds,
        entry.user,
        since=time,
    )
    if entry.is_next:
        goals.line.append(entry.goal)
    else:
        _begin(goals, entry.goal, time)
    for name in [one.id for one in goals.goals.values() if one.is_over][:-REMEMBERED_GOALS]:
        del goals.goals[name]


def _begin(goals: GoalsRecord, name: str, time: float) -> None:
    goals.current = name
    _shift(goals.goals[name], "begin", time)


def _shift(goal: GoalRecord, event: str, time: float) -> None:
    state = goal.state
    move(GOAL, goal, event)
    if goal.state != state:
        goal.since = time
    if goal.state not in PURSUED:
        goal.judging = ""


def _apply_decision(goals: GoalsRecord, goal: GoalRecord, entry: e.Entry, time: float) -> None:
    match entry:
        case g.GoalTurnFailed():
            goal.boundary = entry.turn
            goal.failing += entry.status == "failed"
            goal.detail = entry.reason
        case g.JudgingBegun():
            goal.judging = entry.turn
        case g.JudgingStopped():
            goal.judging = ""
        case g.GoalJudged():
            _judge(goal, entry, time)
        case g.GoalPaused():
            _shift(goal, "pause", time)
            goal.reason, goal.detail = entry.reason, entry.detail
        case g.GoalResumed():
            _shift(goal, "resume", time)
            goal.reason = goal.detail = goal.answer = ""
            goal.idle = goal.failing = goal.judge_failures = 0
            goal.base_turns, goal.base_tokens = entry.turns, entry.tokens
            goal.base_seconds = entry.seconds
        case g.GoalWoken():
            _shift(goal, "wake", time)
            goal.detail = entry.why
        case g.GoalCleared():
            _shift(goal, "clear", time)
            goal.reason = entry.cause
            if goal.id in goals.line:
                goals.line.remove(goal.id)
        case _:
            pass


def _judge(goal: GoalRecord, entry: g.GoalJudged, time: float) -> None:
    goal.boundary, goal.judging = entry.turn, ""
    goal.failing = 0
    goal.judge_failures = goal.judge_failures + 1 if entry.fault else 0
    goal.idle = goal.idle + 1 if entry.is_idle else 0
    goal.answer = "" if entry.verdict == "wait" else entry.answer
    goal.gate_results = entry.gates
    goal.detail = entry.reason
    goal.tokens_total += entry.usage.input + entry.usage.output
    said = VerdictRecord(
        entry.turn, entry.verdict, entry.reason, entry.by, entry.fault, entry.condition
    )
    goal.verdicts.append(said)
    del goal.verdicts[:-REMEMBERED_VERDICTS]
    _shift(goal, VERDICT_EVENTS[entry.verdict], time)


def _rest(goal: GoalRecord, time: float) -> None:
    """Nothing goes on by itself after a restart."""
    if goal.is_pursued:
        _shift(goal, "pause", time)
        goal.reason, goal.detail = "interrupt", "the program ended"


# What is spent ------------------------------------------------------------------------------------


def _meter(goal: GoalRecord, entry: e.Entry, time: float) -> None:
    match entry:
        case e.Queued(goal=name, item=item) if name == goal.id:
            goal.reserved = item
        case e.Withdrawn(item=item) if item == goal.reserved:
            goal.reserved = ""
        case e.TurnStarted(item=item, turn=turn) if item == goal.reserved:
            goal.turn, goal.turn_began, goal.is_again = turn, time, False
        case e.TurnStarted(turn=turn, resumes=before) if before and before == goal.last_turn:
            goal.turn, goal.turn_began, goal.is_again = turn, time, True
        case e.Answered(turn=turn) if turn == goal.turn:
            goal.tokens_total += entry.usage.input + entry.usage.output
        case e.TurnEnded(turn=turn) | e.Interrupted(turn=turn) if turn == goal.turn:
            _settle(goal, time)
        case _:
            pass


def _settle(goal: GoalRecord, time: float) -> None:
    """What was reserved is spent, if its turn has begun."""
    if goal.turn:
        goal.turns_total += not goal.is_again
        goal.seconds_total += max(0.0, time - goal.turn_began)
        goal.last_turn, goal.turn, goal.reserved = goal.turn, "", ""
