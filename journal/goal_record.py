"""A session's goals as data, and the fold of the entries that change them.

A goal's own decisions change its state and its verdicts; the turns that ran for it change what it has
spent. Neither reads what the other changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from msgspec import field
from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.lifecycles import GOAL, PURSUED
from ..machines.value import Value
from . import entries as e
from .fold import EntryKinds, moved

REMEMBERED_GOALS = 20
REMEMBERED_VERDICTS = 5
REMEMBERED_ANSWERS = 10
"""Twice the length of the longest cycle of answers that is noticed."""
VERDICT_EVENTS = {
    "done": "achieve",
    "continue": "continue",
    "wait": "wait",
    "impossible": "give_up",
}


_Decision = (
    e.GoalTurnFailed
    | e.JudgingBegun
    | e.JudgingStopped
    | e.GoalJudged
    | e.GoalPaused
    | e.GoalResumed
    | e.GoalWoken
    | e.GoalCleared
)


class VerdictRecord(Value):
    """One verdict; see `GoalJudged`."""

    turn: str
    """The turn that was judged."""
    verdict: str
    """done, continue, wait or impossible."""
    reason: str = ""
    """Why, in a sentence."""
    by: str = "judge"
    """Who says so: judge, gate or gates."""
    fault: str = ""
    """Why the judge's answer could not be used."""
    condition: Mapping[str, Any] | None = None
    """What is waited for."""


class GoalRecord(Value):
    """One goal, its state, and what it has spent. The totals never fall."""

    id: str
    """Its name: `g1`, `g2`, …"""
    text: str
    """What is to be achieved."""
    max_turns: int
    """Turns that a grant has."""
    gates: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed before a judge is asked."""
    max_tokens: int | None = None
    """Tokens that a grant has; none: no limit."""
    max_seconds: float | None = None
    """Seconds that a grant has; none: no limit."""
    user: str = ""
    """Who set it."""
    state: str = "lined_up"
    """A state of the goal machine."""
    since: float = 0.0
    """When it came into that state, in seconds since 1970."""
    reason: str = ""
    """Why it is paused or over."""
    detail: str = ""
    """More about that."""
    epoch: int = 0
    """The session's epoch when it was ordered last."""
    boundary: str = ""
    """The turn that was dealt with last."""
    judging: str = ""
    """The turn that is being judged, also while that is being stopped."""
    judged_since: int = 0
    """The session's epoch when that began."""
    idle: int = 0
    """Turns in a row that ran no tool."""
    failing: int = 0
    """Turns in a row that failed."""
    judge_failures: int = 0
    """Answers of the judge in a row that could not be used."""
    answers: tuple[str, ...] = ()
    """Digests of what the agent said since a file has changed, the newest last."""
    verdicts: tuple[VerdictRecord, ...] = field(default_factory=tuple[VerdictRecord, ...])
    """The newest verdicts."""
    gate_results: tuple[m.GateResult, ...] = ()
    """How the gates ended last."""
    base_turns: int = 0
    """`turns_total` when the grant began."""
    base_tokens: int = 0
    """`tokens_total` when the grant began."""
    base_seconds: float = 0.0
    """`seconds_total` when the grant began."""
    reserved: str = ""
    """The message whose turn is paid for and has not ended."""
    turn: str = ""
    """The turn that runs for it."""
    last_turn: str = ""
    """The last turn that ran for it."""
    is_again: bool = False
    """That turn was interrupted, goes on, and is paid for."""
    turn_began: float = 0.0
    """When its turn began, in seconds since 1970."""
    turns_total: int = 0
    """Turns that have ended for it, ever."""
    tokens_total: int = 0
    """Tokens that they took."""
    seconds_total: float = 0.0
    """Seconds that they ran."""

    @property
    def is_pursued(self) -> bool:
        """Whether something is done for it, or will be, without a person's order."""
        return self.state in PURSUED

    @property
    def is_over(self) -> bool:
        """Whether it has ended permanently."""
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


class GoalsRecord(Value):
    """All goals of a session."""

    current: str = ""
    """The one it works for, or did last."""
    made: int = 0
    """How many there have been."""
    orders: int = 0
    """How often one was begun or resumed."""
    line: tuple[str, ...] = field(default_factory=tuple[str, ...])
    """Those after the current one, in order."""
    goals: Mapping[str, GoalRecord] = field(default_factory=dict[str, GoalRecord])
    """The goals, by name."""

    @property
    def goal(self) -> GoalRecord | None:
        """The current goal."""
        return self.goals.get(self.current)

    @property
    def is_pursued(self) -> bool:
        """Whether something is done for a goal, or will be, without a person's order."""
        goal = self.goal
        return goal is not None and goal.is_pursued


_Folded = (
    e.AnyGoalEntry
    | e.Recovered
    | e.SessionResumed
    | e.SessionSuspended
    | e.SessionFinalized
    | e.Queued
    | e.Withdrawn
    | e.TurnStarted
    | e.Answered
    | e.TurnEnded
    | e.Interrupted
)
_FOLDED = EntryKinds[_Folded](_Folded)


def apply_to_goals(goals: GoalsRecord, entry: e.Entry, time: float) -> GoalsRecord:
    """Return the goals after one entry; others leave them as they are.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    if not _FOLDED.include(entry):
        return goals
    match entry:
        case e.GoalSet():
            return _set(goals, entry, time)
        case e.GoalBegun():
            line = _without(goals.line, entry.goal)
            begun = _begin(replace(goals, line=line), entry.goal, time)
            goal = replace(begun.goals[entry.goal], epoch=entry.epoch, boundary=entry.boundary)
            return replace(begun, goals={**begun.goals, goal.id: goal})
        case e.Recovered():
            return _each(goals, lambda goal: _recover(goal, entry, time))
        case e.SessionResumed() | e.SessionSuspended():
            return _each(goals, lambda goal: _rest(goal, time))
        case e.SessionFinalized():
            return _each(goals, lambda goal: goal if goal.is_over else _shift(goal, "clear", time))
        case (
            e.Queued()
            | e.Withdrawn()
            | e.TurnStarted()
            | e.Answered()
            | e.TurnEnded()
            | e.Interrupted()
        ):
            return _each(goals, lambda goal: _meter(goal, entry, time))
        case (
            e.GoalTurnFailed()
            | e.JudgingBegun()
            | e.JudgingStopped()
            | e.GoalJudged()
            | e.GoalPaused()
            | e.GoalResumed()
            | e.GoalWoken()
            | e.GoalCleared()
        ):
            return _apply_decision(goals, entry, time)
        case _:
            assert_never(entry)


def _each(goals: GoalsRecord, change: Callable[[GoalRecord], GoalRecord]) -> GoalsRecord:
    """Change each goal that a function changes."""
    if not goals.goals:
        return goals
    changes: dict[str, GoalRecord] = {}
    for name, goal in goals.goals.items():
        after = change(goal)
        if after is not goal:
            changes[name] = after
    return replace(goals, goals={**goals.goals, **changes}) if changes else goals


def _without(line: tuple[str, ...], goal: str) -> tuple[str, ...]:
    """Take a goal out of the line. Raises `ValueError` if it is not there."""
    place = line.index(goal)
    return (*line[:place], *line[place + 1 :])


def _set(goals: GoalsRecord, entry: e.GoalSet, time: float) -> GoalsRecord:
    goal = GoalRecord(
        id=entry.goal,
        text=entry.text,
        max_turns=entry.max_turns,
        gates=entry.gates,
        max_tokens=entry.max_tokens,
        max_seconds=entry.max_seconds,
        user=entry.user,
        since=time,
        epoch=entry.epoch,
        boundary=entry.boundary,
    )
    goals = replace(goals, made=goals.made + 1, goals={**goals.goals, goal.id: goal})
    if entry.is_next:
        goals = replace(goals, line=(*goals.line, goal.id))
    else:
        goals = _begin(goals, goal.id, time)
    ended = [known.id for known in goals.goals.values() if known.is_over]
    forgotten = set(ended[:-REMEMBERED_GOALS])
    if not forgotten:
        return goals
    kept = {name: known for name, known in goals.goals.items() if name not in forgotten}
    return replace(goals, goals=kept)


def _begin(goals: GoalsRecord, name: str, time: float) -> GoalsRecord:
    begun = _shift(goals.goals[name], "begin", time)
    orders = goals.orders + 1
    return replace(goals, current=name, orders=orders, goals={**goals.goals, name: begun})


def _shift(goal: GoalRecord, event: str, time: float, **changes: Any) -> GoalRecord:
    state = moved(GOAL, goal.state, event)
    since = time if state != goal.state else goal.since
    return replace(goal, state=state, since=since, **changes)


def _apply_decision(goals: GoalsRecord, entry: _Decision, time: float) -> GoalsRecord:
    goal = _decided(goals.goals[entry.goal], entry, time)
    line = goals.line
    if isinstance(entry, e.GoalCleared) and goal.id in line:
        line = _without(line, goal.id)
    orders = goals.orders + isinstance(entry, e.GoalResumed)
    return replace(goals, orders=orders, goals={**goals.goals, goal.id: goal}, line=line)


def _decided(goal: GoalRecord, entry: _Decision, time: float) -> GoalRecord:
    match entry:
        case e.GoalTurnFailed():
            failing = goal.failing + (entry.status == "failed")
            return replace(goal, boundary=entry.turn, failing=failing, detail=entry.reason)
        case e.JudgingBegun():
            return replace(goal, judging=entry.turn, judged_since=entry.epoch)
        case e.JudgingStopped():
            return replace(goal, judging="")
        case e.GoalJudged():
            return _judge(goal, entry, time)
        case e.GoalPaused():
            return _shift(goal, "pause", time, reason=entry.reason, detail=entry.detail)
        case e.GoalResumed():
            return _resume(goal, entry, time)
        case e.GoalWoken():
            return _shift(goal, "wake", time, detail=entry.why)
        case e.GoalCleared():
            return _shift(goal, "clear", time, reason=entry.cause)


def _resume(goal: GoalRecord, entry: e.GoalResumed, time: float) -> GoalRecord:
    """Go on with a new grant: nothing of what went wrong in the last one counts."""
    return _shift(
        goal,
        "resume",
        time,
        reason="",
        detail="",
        answers=(),
        idle=0,
        failing=0,
        judge_failures=0,
        base_turns=entry.turns,
        base_tokens=entry.tokens,
        base_seconds=entry.seconds,
        epoch=entry.epoch,
        boundary=entry.boundary or goal.boundary,
    )


def _judge(goal: GoalRecord, entry: e.GoalJudged, time: float) -> GoalRecord:
    verdict = VerdictRecord(
        turn=entry.turn,
        verdict=entry.verdict,
        reason=entry.reason,
        by=entry.by,
        fault=entry.fault,
        condition=entry.condition,
    )
    before = goal.answers if entry.is_unchanged else ()
    return _shift(
        goal,
        VERDICT_EVENTS[entry.verdict],
        time,
        boundary=entry.turn,
        judging="",
        failing=0,
        judge_failures=goal.judge_failures + 1 if entry.fault else 0,
        idle=goal.idle + 1 if entry.is_idle else 0,
        answers=() if entry.verdict == "wait" else (*before, entry.answer)[-REMEMBERED_ANSWERS:],
        gate_results=entry.gates,
        detail=entry.reason,
        tokens_total=goal.tokens_total + entry.usage.input + entry.usage.output,
        verdicts=(*goal.verdicts, verdict)[-REMEMBERED_VERDICTS:],
    )


def _recover(goal: GoalRecord, entry: e.Recovered, time: float) -> GoalRecord:
    settled = _settle(goal, entry.last_active)
    if settled.reserved:
        settled = replace(settled, reserved="")
    return _rest(settled, time)


def _rest(goal: GoalRecord, time: float) -> GoalRecord:
    """Pause the goal: after a restart nothing continues automatically."""
    if goal.judging:
        goal = replace(goal, judging="")
    if not goal.is_pursued:
        return goal
    return _shift(goal, "pause", time, reason="interrupt", detail="the program ended")


# Budget -------------------------------------------------------------------------------------------


def _meter(
    goal: GoalRecord,
    entry: e.Queued | e.Withdrawn | e.TurnStarted | e.Answered | e.TurnEnded | e.Interrupted,
    time: float,
) -> GoalRecord:
    match entry:
        case e.Queued(goal=name, item=item) if name == goal.id:
            return replace(goal, reserved=item)
        case e.Withdrawn(item=item) if item == goal.reserved:
            return replace(goal, reserved="")
        case e.TurnStarted(item=item, turn=turn) if item == goal.reserved:
            return replace(goal, turn=turn, turn_began=time, is_again=False)
        case e.TurnStarted(turn=turn, resumes=before) if before and before == goal.last_turn:
            return replace(goal, turn=turn, turn_began=time, is_again=True)
        case e.Answered(turn=turn) if turn == goal.turn:
            tokens = entry.usage.input + entry.usage.output
            return replace(goal, tokens_total=goal.tokens_total + tokens)
        case e.TurnEnded(turn=turn) | e.Interrupted(turn=turn) if turn == goal.turn:
            return _settle(goal, time)
        case _:  # it is about another goal, or about none
            return goal


def _settle(goal: GoalRecord, time: float) -> GoalRecord:
    """Spend what was reserved, if its turn has begun."""
    if not goal.turn:
        return goal
    return replace(
        goal,
        turns_total=goal.turns_total + (not goal.is_again),
        seconds_total=goal.seconds_total + max(0.0, time - goal.turn_began),
        last_turn=goal.turn,
        turn="",
        reserved="",
    )
