"""A goal's messages in the queue: when one may wait there, and what takes it back.

Pure. There is at most one that waits, none while anybody else's message does, and none that outlives
what it was for.
"""

from __future__ import annotations

from ...journal import entries as e
from ...journal.queue import ItemRecord, QueueRecord
from ...journal.workspace.ledger import number_of
from ...machines.pursuit import Continuation, GoalDecided

__all__ = ["of_goal", "overtaken"]

STATES = {
    "": (),
    "waiting": ("pending",),
    "interrupted": ("interrupted",),
    "all": ("pending", "interrupted"),
}


def of_goal(queue: QueueRecord, decided: GoalDecided) -> tuple[e.Entry, ...]:
    """Return a goal's own entries, between what they take back and what they let wait."""
    states = STATES[decided.drops]
    gone = [one.id for one in queue.live() if one.goal and one.state in states]
    entries = (*(e.Withdrawn(one) for one in gone), *decided.entries)
    said = decided.goes_on
    if said is None or not _is_welcome(queue, gone, said):
        return entries
    is_alone = len(gone) == len(queue.order)
    return (*entries, _queued(queue, decided.goal, said, 0 if is_alone else queue.number))


def overtaken(queue: QueueRecord, item: ItemRecord) -> tuple[e.Entry, ...]:
    """Take back a goal's message when somebody's own runs first: it is judged again after that."""
    if item.goal:
        return ()
    waiting = [one for one in queue.pending() if one.goal]
    return tuple(e.Withdrawn(one.id) for one in waiting)


def _is_welcome(queue: QueueRecord, gone: list[str], said: Continuation) -> bool:
    """Whether a goal's message may wait; its first also behind or past somebody's own."""
    if said.after is not None and number_of(said.after) != _newest_turn(queue):
        return False
    left = [one for one in queue.live() if one.id not in gone]
    if any(one.goal and one.state in ("pending", "running") for one in left):
        return False
    return said.is_first or not any(one.state in ("pending", "running") for one in left)


def _newest_turn(queue: QueueRecord) -> int:
    turns = (number_of(one.turn) for one in queue.items.values() if not one.purpose)
    return max(turns, default=0)


def _queued(queue: QueueRecord, goal: str, said: Continuation, number: int) -> e.Queued:
    is_held = queue.state == "held"
    return e.Queued(
        f"m{queue.made + 1}",
        number + 1,
        said.text,
        "goal",
        said.user,
        rule="goal",
        is_next=is_held,
        position=len(queue.waiting()) + 1,
        goal=goal,
    )
