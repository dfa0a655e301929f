"""The gate in front of every effect: what a stop has overtaken is not done.

An effect waits for the commit of the entries that ask for it. When it is released, the gate looks at
the record, and at those of the sessions above, as they are then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from ..journal.child_record import ChildRecord
from ..journal.record import SessionRecord
from ..machines import protocol as m
from ..machines.delivery import Relation
from .decisions.queries import OVER

if TYPE_CHECKING:
    from .ledger import Ledger


# Ancestors ----------------------------------------------------------------------------------------
# Every stop raises the epoch of the session it is given to, and marks with it each child that it reaches.
# An effect of a child carries the epochs of the orders that began it, one for each ancestor. An order
# that is older than a newer stop is void, whatever messages its receiver got in the meantime: a late
# message can delay the news of a stop, never its effect.


class Ancestors:
    """The ancestors of child session `session`, as they are at this moment.

    `parent` returns the ledger of the session above; without it there are no ancestors.
    """

    __slots__ = ("_above", "_name", "_parent", "_session")

    def __init__(
        self,
        parent: Callable[[], Ledger | None] | None = None,
        name: str = "",
        session: str = "",
        above: Ancestors | None = None,
    ) -> None:
        self._parent, self._name, self._session, self._above = parent, name, session, above

    def mandate(self) -> tuple[int, ...]:
        """Return the epochs of the newest orders that began the session, nearest ancestor first."""
        child = self._as_child()
        return (child.epoch, *child.above) if child is not None else ()

    def is_stopped(self, born: tuple[int, ...]) -> bool:
        """Whether a stop of an ancestor is newer than the orders with these epochs."""
        if self._parent is None:
            return False
        child = self._as_child()
        if child is None or not born or born[0] < child.stopped:
            return True
        return self._above is not None and self._above.is_stopped(born[1:])

    def may_start(self) -> bool:
        """Whether the session may begin something on its own now."""
        return not self.is_stopped(self.mandate())

    def _as_child(self) -> ChildRecord | None:
        """Return the session as its parent knows it; none if either is over, or it is not known."""
        ledger = self._parent() if self._parent is not None else None
        if ledger is None or ledger.broken or ledger.record.state in OVER:
            return None
        child = ledger.record.children.get(self._name)
        is_its = child is not None and child.session == self._session and child.is_at_work
        return child if is_its else None


ROOT = Ancestors()
"""The ancestors of a session that is no child."""


def admits(record: SessionRecord, ancestors: Ancestors, effect: m.Effect) -> bool:
    """Whether an effect may begin now. One that only stops or closes always may."""
    match effect:
        case m.CallModel():
            return turn_may_act(record, ancestors, effect.turn) and _is_awaited(record, effect)
        case m.RunTool() | m.AnswerAgent() | m.Delegate() | m.Dismiss():
            return turn_may_act(record, ancestors, effect.turn)
        case m.RunGate() | m.AskJudge() | m.CountChanges():
            goal = record.goals.goal
            is_judged = goal is not None and goal.judging == effect.turn
            return is_judged and goal_may_act(record, ancestors, effect.goal)
        case m.AwaitCondition():
            goal = record.goals.goal
            is_waiting = goal is not None and goal.state == "waiting"
            return is_waiting and goal_may_act(record, ancestors, effect.goal)
        case m.RestoreFiles():
            revert = record.reverts.get(effect.id)
            return revert is not None and revert.is_open
        case m.GoalTimer():
            return goal_may_act(record, ancestors, effect.goal)
        case (
            m.CancelModel()
            | m.StopTool()
            | m.StopChild()
            | m.StopJudging()
            | m.OpenChild()
            | m.CloseChild()
            | m.PassSteer()
            | m.SetTimer()
            | m.LookAfter()
        ):
            return True
        case _:
            assert_never(effect)


def in_place_of(record: SessionRecord, effect: m.Effect) -> m.ToolFinished | m.AnswerAgent | None:
    """Return what is done in place of an effect that a stop above has overtaken, so that nobody waits.

    The stop may let what runs here end: a call that never ran has ended, what an agent asks is denied.
    A turn that is stopped itself sees to its calls.
    """
    match effect:
        case m.RunTool() | m.Delegate() | m.Dismiss() if turn_may_act(record, ROOT, effect.turn):
            return never_started(effect)
        case m.AnswerAgent() if turn_may_act(record, ROOT, effect.turn):
            return replace(effect, is_allowed=False)
        case _:
            return None


def never_started(
    effect: m.RunTool | m.Delegate | m.Dismiss | m.StopTool | m.StopChild,
) -> m.ToolFinished:
    """Return the end of a call that was stopped before it started."""
    result = m.ToolResult(status="killed", text="[It was stopped before it started.]")
    return m.finished(effect, result)


def turn_may_act(record: SessionRecord, ancestors: Ancestors, turn: str) -> bool:
    """Whether a turn runs, and no stop, here or above, is newer than the orders that began it."""
    running = record.running
    if running is None or running.id != turn:
        return False
    is_stopped = running.epoch < record.stopped.get(Relation.SELF, 0)
    return not is_stopped and not ancestors.is_stopped(running.ancestors)


def goal_may_act(record: SessionRecord, ancestors: Ancestors, name: str) -> bool:
    """Whether a goal is pursued, and no stop, here or above, is newer than the order that set it."""
    goal = record.goals.goal
    if goal is None or goal.id != name or not goal.is_pursued:
        return False
    return goal.epoch >= record.stopped.get(Relation.GOAL, 0) and ancestors.may_start()


def _is_awaited(record: SessionRecord, effect: m.CallModel) -> bool:
    """Whether the turn still waits for this answer: it may have been cut off before it was asked."""
    turn = record.turns[effect.turn]
    awaited = "compacting" if effect.is_summary else "calling"
    return (turn.step, turn.state) == (effect.step, awaited) or awaited == "compacting"
