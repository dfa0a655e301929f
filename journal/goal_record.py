"""A session's goals as data, and the fold of the entries that change them.

The session and its goal actor each keep a copy and fold the same entries, not always in the same
order. So a goal's state and what it was judged are changed by the goal's own decisions alone, and what
it has spent by what its turns did: neither reads what the other changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.lifecycles import GOAL, PURSUED
from ..machines.pursuit import GateResult
from . import entries as e
from . import goal_entries as g
from .fold import changed, moved

REMEMBERED_GOALS = 20
REMEMBERED_VERDICTS = 5
VERDICT_EVENTS = {
    "done": "achieve",
    "continue": "continue",
    "wait": "wait",
    "impossible": "give_up",
}


_DECISIONS = (
    g.GoalTurnFailed,
    g.JudgingBegun,
    g.JudgingStopped,
    g.GoalJudged,
    g.GoalPaused,
    g.GoalResumed,
    g.GoalWoken,
    g.GoalCleared,
)
_Decision = (
    g.GoalTurnFailed
    | g.JudgingBegun
    | g.JudgingStopped
    | g.GoalJudged
    | g.GoalPaused
    | g.GoalResumed
    | g.GoalWoken
    | g.GoalCleared
)


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """One verdict; see `GoalJudged` for the fields."""

    turn: str
    verdict: str
    reason: str = ""
    by: str = "judge"
    fault: str = ""
    condition: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GoalRecord:
    """One goal, what became of it, and what it has spent.

    `reserved` is the message whose turn is paid for and has not ended; `turn` runs for it, `last_turn`
    was the last that did. `is_again`: that turn was interrupted, goes on, and is paid for.
    `turns_total`, `tokens_total` and `seconds_total` never fall; the grant began at those of `base`.
    `epoch` is the session's when it was ordered last. `boundary` is the turn that was dealt with last,
    `judging` one that is being judged, since epoch `judged_since`, also while that is being stopped.
    `idle`, `failing` and `judge_failures` count in a row. `answer` is a digest of what the agent said
    last, `gate_results` is how the gates ended last.
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
    epoch: int = 0
    boundary: str = ""
    judging: str = ""
    judged_since: int = 0
    idle: int = 0
    failing: int = 0
    judge_failures: int = 0
    answer: str = ""
    verdicts: tuple[VerdictRecord, ...] = field(default_factory=tuple[VerdictRecord, ...])
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


@dataclass(frozen=True, slots=True)
class GoalsRecord:
    """All goals of a session: `current` is the one it works for or did last, `line` those after it."""

    current: str = ""
    made: int = 0
    line: tuple[str, ...] = field(default_factory=tuple[str, ...])
    goals: Mapping[str, GoalRecord] = field(default_factory=dict[str, GoalRecord])

    @property
    def goal(self) -> GoalRecord | None:
        """The current goal."""
        return self.goals.get(self.current)

    @property
    def is_pursued(self) -> bool:
        """Whether something is done for a goal, or will be, without anybody saying so."""
        goal = self.goal
        return goal is not None and goal.is_pursued


def apply_to_goals(goals: GoalsRecord, entry: e.Entry, time: float) -> GoalsRecord:
    """Return the goals after one entry; others leave them as they are.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    if isinstance(entry, _DECISIONS):
        return _apply_decision(goals, entry, time)
    match entry:
        case g.GoalSet():
            return _set(goals, entry, time)
        case g.GoalBegun():
            line = _without(goals.line, entry.goal)
            begun = _begin(changed(goals, line=line), entry.goal, time)
            goal = changed(begun.goals[entry.goal], epoch=entry.epoch, boundary=entry.boundary)
            return changed(begun, goals={**begun.goals, goal.id: goal})
        case e.Recovered():
            return _each(goals, lambda goal: _recover(goal, entry, time))
        case e.SessionResumed() | e.SessionSuspended():
            return _each(goals, lambda goal: _rest(goal, time))
        case e.SessionFinalized():
            return _each(goals, lambda goal: goal if goal.is_over else _shift(goal, "clear", time))
        case _:
            return _each(goals, lambda goal: _meter(goal, entry, time))


def _each(goals: GoalsRecord, change: Callable[[GoalRecord], GoalRecord]) -> GoalsRecord:
    """Change each goal that a function changes."""
    if not goals.goals:
        return goals
    changes: dict[str, GoalRecord] = {}
    for name, goal in goals.goals.items():
        after = change(goal)
        if after is not goal:
            changes[name] = after
    return changed(goals, goals={**goals.goals, **changes}) if changes else goals


def _without(line: tuple[str, ...], goal: str) -> tuple[str, ...]:
    """Take a goal out of the line. Raises `ValueError` if it is not there."""
    place = line.index(goal)
    return (*line[:place], *line[place + 1 :])


def _set(goals: GoalsRecord, entry: g.GoalSet, time: float) -> GoalsRecord:
    goal = GoalRecord(
        entry.goal,
        entry.text,
        entry.max_turns,
        entry.gates,
        entry.max_tokens,
        entry.max_seconds,
        entry.user,
        since=time,
        epoch=entry.epoch,
        boundary=entry.boundary,
    )
    goals = changed(goals, made=goals.made + 1, goals={**goals.goals, goal.id: goal})
    if entry.is_next:
        goals = changed(goals, line=(*goals.line, goal.id))
    else:
        goals = _begin(goals, goal.id, time)
    ended = [known.id for known in goals.goals.values() if known.is_over]
    forgotten = set(ended[:-REMEMBERED_GOALS])
    if not forgotten:
        return goals
    kept = {name: known for name, known in goals.goals.items() if name not in forgotten}
    return changed(goals, goals=kept)


def _begin(goals: GoalsRecord, name: str, time: float) -> GoalsRecord:
    begun = _shift(goals.goals[name], "begin", time)
    return changed(goals, current=name, goals={**goals.goals, name: begun})


def _shift(goal: GoalRecord, event: str, time: float, **changes: Any) -> GoalRecord:
    state = moved(GOAL, goal.state, event)
    since = time if state != goal.state else goal.since
    return changed(goal, state=state, since=since, **changes)


def _apply_decision(goals: GoalsRecord, entry: _Decision, time: float) -> GoalsRecord:
    goal = _decided(goals.goals[entry.goal], entry, time)
    line = goals.line
    if isinstance(entry, g.GoalCleared) and goal.id in line:
        line = _without(line, goal.id)
    return changed(goals, goals={**goals.goals, goal.id: goal}, line=line)


def _decided(goal: GoalRecord, entry: _Decision, time: float) -> GoalRecord:
    match entry:
        case g.GoalTurnFailed():
            failing = goal.failing + (entry.status == "failed")
            return changed(goal, boundary=entry.turn, failing=failing, detail=entry.reason)
        case g.JudgingBegun():
            return changed(goal, judging=entry.turn, judged_since=entry.epoch)
        case g.JudgingStopped():
            return changed(goal, judging="")
        case g.GoalJudged():
            return _judge(goal, entry, time)
        case g.GoalPaused():
            return _shift(goal, "pause", time, reason=entry.reason, detail=entry.detail)
        case g.GoalResumed():
            return _resume(goal, entry, time)
        case g.GoalWoken():
            return _shift(goal, "wake", time, detail=entry.why)
        case g.GoalCleared():
            return _shift(goal, "clear", time, reason=entry.cause)


def _resume(goal: GoalRecord, entry: g.GoalResumed, time: float) -> GoalRecord:
    """Go on with a new grant: nothing of what went wrong in the last one counts."""
    return _shift(
        goal,
        "resume",
        time,
        reason="",
        detail="",
        answer="",
        idle=0,
        failing=0,
        judge_failures=0,
        base_turns=entry.turns,
        base_tokens=entry.tokens,
        base_seconds=entry.seconds,
        epoch=entry.epoch,
        boundary=entry.boundary or goal.boundary,
    )


def _judge(goal: GoalRecord, entry: g.GoalJudged, time: float) -> GoalRecord:
    verdict = VerdictRecord(
        entry.turn, entry.verdict, entry.reason, entry.by, entry.fault, entry.condition
    )
    return _shift(
        goal,
        VERDICT_EVENTS[entry.verdict],
        time,
        boundary=entry.turn,
        judging="",
        failing=0,
        judge_failures=goal.judge_failures + 1 if entry.fault else 0,
        idle=goal.idle + 1 if entry.is_idle else 0,
        answer="" if entry.verdict == "wait" else entry.answer,
        gate_results=entry.gates,
        detail=entry.reason,
        tokens_total=goal.tokens_total + entry.usage.input + entry.usage.output,
        verdicts=(*goal.verdicts, verdict)[-REMEMBERED_VERDICTS:],
    )


def _recover(goal: GoalRecord, entry: e.Recovered, time: float) -> GoalRecord:
    settled = _settle(goal, entry.last_active)
    if settled.reserved:
        settled = changed(settled, reserved="")
    return _rest(settled, time)


def _rest(goal: GoalRecord, time: float) -> GoalRecord:
    """Nothing goes on by itself after a restart."""
    if goal.judging:
        goal = changed(goal, judging="")
    if not goal.is_pursued:
        return goal
    return _shift(goal, "pause", time, reason="interrupt", detail="the program ended")


# What is spent ------------------------------------------------------------------------------------


def _meter(goal: GoalRecord, entry: e.Entry, time: float) -> GoalRecord:
    match entry:
        case e.Queued(goal=name, item=item) if name == goal.id:
            return changed(goal, reserved=item)
        case e.Withdrawn(item=item) if item == goal.reserved:
            return changed(goal, reserved="")
        case e.TurnStarted(item=item, turn=turn) if item == goal.reserved:
            return changed(goal, turn=turn, turn_began=time, is_again=False)
        case e.TurnStarted(turn=turn, resumes=before) if before and before == goal.last_turn:
            return changed(goal, turn=turn, turn_began=time, is_again=True)
        case e.Answered(turn=turn) if turn == goal.turn:
            tokens = entry.usage.input + entry.usage.output
            return changed(goal, tokens_total=goal.tokens_total + tokens)
        case e.TurnEnded(turn=turn) | e.Interrupted(turn=turn) if turn == goal.turn:
            return _settle(goal, time)
        case _:
            return goal


def _settle(goal: GoalRecord, time: float) -> GoalRecord:
    """What was reserved is spent, if its turn has begun."""
    if not goal.turn:
        return goal
    return changed(
        goal,
        turns_total=goal.turns_total + (not goal.is_again),
        seconds_total=goal.seconds_total + max(0.0, time - goal.turn_began),
        last_turn=goal.turn,
        turn="",
        reserved="",
    )
