"""What a person wants of a goal, decided: pure, for a session that runs and for one that nobody has open.

Mid-turn rules are the session's (`pursuing.py`); here a goal is set, replaced, lined up, paused, let go
on with another grant, or dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from ...journal import entries as e
from ...journal import goal_entries as g
from ...journal.goal_record import GoalRecord, GoalsRecord
from ...machines.policy import GoalPolicy
from ...machines.pursuit import ChangeGoal, Continuation, SetGoal
from .wording import continuation

__all__ = ["Wish", "decided"]

MOST_IN_LINE = 20


@dataclass(frozen=True, slots=True)
class Wish:
    """The reply to whoever wants it, and the entries that do it, if it can be done."""

    reply: dict[str, Any]
    goal: str = ""
    entries: tuple[e.Entry, ...] = ()
    drops: Literal["", "waiting", "interrupted", "all"] = ""
    goes_on: Continuation | None = field(default=None)

    @property
    def is_done(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.entries)


def decided(goals: GoalsRecord, wish: SetGoal | ChangeGoal, policy: GoalPolicy) -> Wish:
    """Decide what becomes of what somebody wants."""
    return _set(goals, wish, policy) if isinstance(wish, SetGoal) else _change(goals, wish)


def _set(goals: GoalsRecord, wish: SetGoal, policy: GoalPolicy) -> Wish:
    """Set a goal, in place of the one that is there, or line it up behind that."""
    fault = _fault(wish)
    if fault:
        return _no(fault)
    old = goals.goal
    is_free = old is None or old.is_over
    if wish.is_next and not (is_free and not goals.line):
        if len(goals.line) >= MOST_IN_LINE:
            return _no(f"{MOST_IN_LINE} goals are in line, which is as many as may be")
        entry = _entry(goals, wish, policy, is_next=True)
        return Wish(_yes(entry.goal, place=len(goals.line) + 1), entry.goal, (entry,))
    entry = _entry(goals, wish, policy, is_next=False)
    cleared: tuple[e.Entry, ...] = ()
    replaced = None
    if old is not None and not old.is_over:
        replaced = old.text
        cleared = (g.GoalCleared(old.id, "replaced"),)
    opening = Continuation(wish.prompt or wish.text, wish.user, is_first=True)
    reply = _yes(entry.goal, replaced=replaced)
    return Wish(reply, entry.goal, (*cleared, entry), "all", opening)


def _fault(wish: SetGoal) -> str:
    if not wish.text.strip():
        return "a goal says what is to be reached"
    if wish.max_turns is not None and wish.max_turns < 1:
        return (
            f"a goal takes at least 1 turn, not {wish.max_turns}: its own first message is turn 1"
        )
    if wish.max_tokens is not None and wish.max_tokens < 1:
        return f"a goal takes at least 1 token, not {wish.max_tokens}: leave it out for no limit"
    if wish.max_minutes is not None and not 0 < wish.max_minutes < math.inf:
        return f"a goal takes time, not {wish.max_minutes:g} minutes: leave it out for no limit"
    if any(not gate or not gate[0] for gate in wish.gates or ()):
        return "a gate is a command"
    return ""


def _entry(goals: GoalsRecord, wish: SetGoal, policy: GoalPolicy, *, is_next: bool) -> g.GoalSet:
    minutes = policy.max_minutes if wish.max_minutes is None else wish.max_minutes
    return g.GoalSet(
        f"g{goals.made + 1}",
        wish.text,
        wish.max_turns or policy.max_turns,
        policy.gates if wish.gates is None else wish.gates,
        wish.max_tokens or policy.max_tokens,
        None if minutes is None else minutes * 60.0,
        is_next,
        wish.user,
    )


def _change(goals: GoalsRecord, wish: ChangeGoal) -> Wish:
    """Pause the goal, let it go on, or drop it."""
    goal = goals.goal
    if goal is None or goal.is_over:
        if goals.line and wish.op != "pause":
            return _of_line(goals, wish)
        return _no("there is no goal: `/goal TEXT` sets one")
    match wish.op:
        case "pause":
            if not goal.is_pursued:
                return _no(f"it is paused already ({goal.reason})")
            paused = g.GoalPaused(goal.id, "user")
            return Wish(_yes(goal.id), goal.id, (paused,), "waiting")
        case "resume":
            return _resume(goal)
        case "clear":
            cleared = g.GoalCleared(goal.id)
            return Wish(_yes(goal.id, left=len(goals.line)), goal.id, (cleared,), "all")


def _of_line(goals: GoalsRecord, wish: ChangeGoal) -> Wish:
    """The last goal is over, and was not achieved: others wait for a word."""
    after = goals.goals[goals.line[0]]
    if wish.op == "clear":
        reply = _yes(after.id, left=len(goals.line) - 1)
        return Wish(reply, after.id, (g.GoalCleared(after.id),))
    opening = Continuation(after.text, after.user, is_first=True)
    return Wish(_yes(after.id), after.id, (g.GoalBegun(after.id),), "", opening)


def _resume(goal: GoalRecord) -> Wish:
    if goal.state == "active":
        return _no("it is active: nothing is to be resumed")
    resumed = g.GoalResumed(goal.id, goal.turns_total, goal.tokens_total, goal.seconds_total)
    goes_on = Continuation(continuation(goal), goal.user)
    return Wish(_yes(goal.id), goal.id, (resumed,), "all", goes_on)


def _no(reason: str) -> Wish:
    return Wish({"ok": False, "reason": reason})


def _yes(goal: str, **more: Any) -> dict[str, Any]:
    return {"ok": True, "goal": goal, **more}
