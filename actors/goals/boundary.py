"""The boundary between two turns of a goal: what its judge is given, and the entry of the verdict."""

from __future__ import annotations

from ...journal.goal_entries import GoalJudged
from ...journal.goal_record import GoalRecord
from ...machines.pursuit import Judged, Rested
from .judge import Boundary
from .pace import digest
from .wording import earlier_verdicts

__all__ = ["boundary_of", "judged_entry"]


def boundary_of(goal: GoalRecord, at: Rested, *, are_gates_known: bool, is_dirty: bool) -> Boundary:
    """Say what there is to judge.

    `are_gates_known`: nothing can have changed since the gates ran. `is_dirty`: files may have changed
    since the boundary before the last.
    """
    is_same = not is_dirty and not at.is_persons and goal.answer == digest(at.answer)
    return Boundary(
        goal.id,
        at.turn,
        goal.text,
        goal.gates,
        goal.gate_results if are_gates_known else (),
        earlier_verdicts(goal),
        is_repeated=is_same,
        may_have_changed=at.may_have_changed,
    )


def judged_entry(goal: str, message: Judged, at: Rested) -> GoalJudged:
    """Tell what the judge said of what was reached at a boundary."""
    verdict = message.verdict
    return GoalJudged(
        goal,
        message.turn,
        verdict.kind,
        verdict.reason,
        verdict.condition.as_data() if verdict.condition else None,
        message.by,
        message.fault,
        digest(at.answer),
        not at.has_acted,
        message.gates,
        message.usage,
    )
