"""What an agent reads when its goal goes on, and what a judge reads of its own earlier verdicts."""

from __future__ import annotations

from ...journal.goal_record import GoalRecord

__all__ = ["continuation", "earlier_verdicts"]

MOST_OUTPUT = 2_000
"""Characters of a gate's output that go with a continuation."""


def continuation(goal: GoalRecord) -> str:
    """Write the message that a goal's next turn begins with."""
    parts = [f"Go on working towards the goal: {goal.text}"]
    last = goal.verdicts[-1] if goal.verdicts else None
    failed = next((one for one in goal.gate_results if not one.passed), None)
    if last is not None and last.verdict == "wait":
        parts.append(f"You waited ({last.reason or 'as the judge said'}): {goal.detail}.")
    elif last is not None and last.by == "gate" and failed is not None:
        output = failed.output[-MOST_OUTPUT:].strip()
        parts.append(f"It is not reached yet: {last.reason}." + (f"\n{output}" if output else ""))
    elif last is not None and not last.fault and last.reason:
        parts.append(f"It is not reached yet: {last.reason}")
    parts.append("When it is reached, say so and how one can see it. If it cannot be, say why.")
    return "\n\n".join(parts)


def earlier_verdicts(goal: GoalRecord) -> tuple[str, ...]:
    """Write the judge's last verdicts, oldest first."""
    said = [one for one in goal.verdicts if one.by == "judge" and not one.fault]
    return tuple(f"{one.verdict}: {one.reason}" for one in said)
