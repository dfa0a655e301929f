"""Wakes: the actors that an entry of another actor concerns.

A wake carries no data: the actor looks at the record and does what is due. So it does not matter how
often it is woken, or in which order: only a wake that is missing would be a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ..journal import entries as e
from ..journal.record import SessionRecord
from ..journal.turn_record import CALL_ENDS
from .decisions.decision import Role

_ENDING: Final = ("leaving", "finalizing")

_ALL: Final[tuple[Role, ...]] = ("turn", "children", "queue", "goal", "session")
_AFTER_WORK: Final[tuple[Role, ...]] = ("queue", "goal", "session")
_BESIDE_TURN: Final[tuple[Role, ...]] = ("children", "queue", "goal", "session")

CONCERNS: Final[dict[type[e.Entry], tuple[Role, ...]]] = {
    e.SessionLeaving: _ALL,
    e.SessionFinalizing: _ALL,
    e.InterruptRequested: _ALL,
    e.InterruptPlanned: _ALL,
    e.InterruptCalledOff: ("turn",),
    e.StopNoted: ("children", "queue", "goal"),
    e.TurnStarted: ("children", "session", "goal"),
    e.Answered: ("goal",),
    e.TurnEnded: ("children", *_AFTER_WORK),
    e.Interrupted: ("queue",),
    e.Stopped: _AFTER_WORK,
    e.Queued: ("goal",),
    e.Withdrawn: ("children", "goal"),
    e.Requeued: ("goal",),
    e.QueueReleased: ("goal",),
    e.SteerArrived: ("queue",),
    e.ChildStarted: ("turn", "children"),
    e.ChildCancelled: ("children", "session"),
    e.ChildDetached: ("turn",),
    e.ChildInterrupted: _ALL,
    e.ChildEnded: _ALL,
    e.Reverted: _AFTER_WORK,
    e.RevertRefused: _AFTER_WORK,
    e.GoalSet: ("goal",),
    e.GoalResumed: ("goal",),
    e.GoalBegun: ("goal",),
    e.GoalPaused: ("queue", "goal", "session"),
    e.GoalCleared: ("queue", "goal", "session"),
    e.GoalJudged: ("queue", "session"),
    e.JudgingStopped: ("session", "queue"),
}
"""The entries that concern actors besides the one that decided them.

Not here are those that are decided before the other actors are there (`Recovered`, `SessionResumed`), and
those after which only the actor that decided has something to do, or none before a later entry.
"""


def interested(entries: Sequence[e.Entry], record: SessionRecord) -> Iterator[Role]:
    """Yield each actor once that has something to do after these entries."""
    names: dict[Role, None] = {}
    for entry in entries:
        concerned = CONCERNS.get(type(entry), ())
        if isinstance(entry, e.ChildInterrupted | e.ChildEnded) and _is_answer(entry.child, record):
            concerned = _BESIDE_TURN
        names |= dict.fromkeys(concerned)
    for name in names:
        if _HAS_WORK[name](record):
            yield name


def _is_answer(child: str, record: SessionRecord) -> bool:
    """Whether the turn gets a child's end anyway: it is the result of a call."""
    known, turn = record.children.get(child), record.unfinished
    if record.run is not None or known is None or turn is None:
        return False
    call = turn.calls.get(known.call)
    return call is not None and call.state not in CALL_ENDS


def _of_session(record: SessionRecord) -> bool:
    """Whether a turn is to be started, a stop to be answered, files to be restored, or all ends."""
    is_open = any(not stop.turn and stop.state == "stopping" for stop in record.stops.values())
    is_reverting = any(revert.is_open for revert in record.reverts.values())
    return record.state in ("busy", *_ENDING) or is_open or is_reverting


def _of_queue(record: SessionRecord) -> bool:
    """Whether an item may have to run, to be requeued or taken back, or an empty hold has to end."""
    queue = record.queue
    is_held_in_vain = queue.state == "held" and not queue.order
    is_special = any(item.is_next or item.goal for item in queue.special())
    return bool(queue.pending_count) or is_special or is_held_in_vain


_HAS_WORK: Final[dict[Role, Callable[[SessionRecord], bool]]] = {
    "session": _of_session,
    "queue": _of_queue,
    "turn": lambda record: record.unfinished is not None,
    "children": lambda record: bool(record.children) or record.state in _ENDING,
    "goal": lambda record: bool(record.goals.goals),
}
