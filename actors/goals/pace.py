"""How fast a goal goes on, and how far: pure."""

from __future__ import annotations

import hashlib

from ...journal.goal_record import GoalRecord
from ...machines.policy import GoalPolicy

__all__ = ["digest", "pause_before", "what_is_spent"]


def what_is_spent(goal: GoalRecord) -> str:
    """Say what of a goal's budget is spent, so that no further turn may begin; empty if nothing is."""
    if not goal.turns_left:
        return f"{goal.turns_used} of {goal.max_turns} turns are spent"
    return goal.overdraft


def pause_before(goal: GoalRecord, policy: GoalPolicy) -> float:
    """Return for how many seconds nothing happens, after turns that did nothing, or failed."""
    times = max(goal.idle, goal.failing) - 2
    doubled = policy.backoff * 2.0 ** min(times, 30) if times >= 0 else 0.0
    return min(doubled, policy.backoff_limit)


def digest(text: str) -> str:
    """Tell answers apart, spaces and case aside."""
    plain = "".join(text.casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]
