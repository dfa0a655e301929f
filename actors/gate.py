"""The gate in front of every effect: what a stop has overtaken is not done.

An effect waits for the commit of the entries that ask for it. When it is released, the gate looks at
the record, and at those of the sessions above, as they are then.
"""

from __future__ import annotations

from typing import assert_never

from ..journal.record import SessionRecord
from ..machines.agent_call import AnswerAgent
from ..machines.delegation import (
    CloseChild,
    Delegate,
    Dismiss,
    OpenChild,
    PassSteer,
    SetTimer,
    StopChild,
)
from ..machines.delivery import Relation
from ..machines.effects import (
    CallModel,
    CancelModel,
    Effect,
    RestoreFiles,
    RunTool,
    StopTool,
    Summarise,
)
from ..machines.pursuit import (
    AskJudge,
    AwaitCondition,
    CountChanges,
    GoalTimer,
    RunGate,
    StopJudging,
)
from ..machines.workflow_order import LookAfter, LookBefore
from .lineage import Lineage

__all__ = ["admits", "goal_may_act", "turn_may_act"]


def admits(record: SessionRecord, lineage: Lineage, effect: Effect) -> bool:
    """Whether an effect may begin now. What only stops, closes or gives back always may."""
    match effect:
        case CallModel() | Summarise():
            return turn_may_act(record, lineage, effect.turn) and _is_awaited(record, effect)
        case RunTool() | AnswerAgent() | Delegate() | Dismiss() | LookBefore():
            return turn_may_act(record, lineage, effect.turn)
        case RunGate() | AskJudge() | CountChanges():
            goal = record.goals.goal
            is_judged = goal is not None and goal.judging == effect.turn
            return is_judged and goal_may_act(record, lineage, effect.goal)
        case AwaitCondition():
            goal = record.goals.goal
            is_waiting = goal is not None and goal.state == "waiting"
            return is_waiting and goal_may_act(record, lineage, effect.goal)
        case RestoreFiles():
            revert = record.reverts.get(effect.id)
            return revert is not None and revert.is_open
        case GoalTimer():
            return goal_may_act(record, lineage, effect.goal)
        case (
            CancelModel()
            | StopTool()
            | StopChild()
            | StopJudging()
            | OpenChild()
            | CloseChild()
            | PassSteer()
            | SetTimer()
            | LookAfter()
        ):
            return True
        case _:
            assert_never(effect)


def turn_may_act(record: SessionRecord, lineage: Lineage, turn: str) -> bool:
    """Whether a turn runs, and no stop, here or above, is newer than the orders that began it."""
    running = record.running
    if running is None or running.id != turn:
        return False
    is_stopped = running.epoch < record.cancelled.get(Relation.SELF, 0)
    return not is_stopped and not lineage.is_cancelled(running.lineage)


def goal_may_act(record: SessionRecord, lineage: Lineage, name: str) -> bool:
    """Whether a goal is pursued, and no stop, here or above, is newer than the order that set it."""
    goal = record.goals.goal
    if goal is None or goal.id != name or not goal.is_pursued:
        return False
    return goal.epoch >= record.cancelled.get(Relation.GOAL, 0) and lineage.may_start()


def _is_awaited(record: SessionRecord, effect: CallModel | Summarise) -> bool:
    """Whether the turn still waits for this answer: it may have been cut off before it was asked."""
    turn = record.turns[effect.turn]
    awaited = "compacting" if isinstance(effect, Summarise) else "calling"
    return (turn.step, turn.state) == (effect.step, awaited) or awaited == "compacting"
