"""Which kinds of entries people may have caused, and which keep a session from being replayed.

A replay gives what came from outside at the place where the record has it, and lets the runtime decide
all else again. Some kinds come from either side: a queue is held by a person, or by the rule of a stop.
Such a one is given if the runtime would decide as recorded, or has nothing else to do.
"""

from __future__ import annotations

from typing import Final

from ...journal import entries as e
from ...journal.entries import Entry

# fmt: off
INPUTS: Final[tuple[type[Entry], ...]] = (
    e.SessionOpened, e.SessionRenamed, e.SessionResumed, e.SessionLeaving, e.SessionFinalizing,
    e.Recovered, e.PolicyChanged, e.AllowanceForgotten, e.LimitsGranted, e.InterruptPlanned,
    e.InterruptCalledOff, e.InterruptRequested, e.StopNoted, e.Queued, e.Requeued, e.Withdrawn,
    e.EditBegun, e.EditEnded, e.Edited, e.Moved, e.SteerAddressed, e.OfferWanted, e.Kept,
    e.QueueHeld, e.QueueReleased, e.QuestionAnswered, e.AllowanceGiven, e.GoalSet, e.GoalBegun,
    e.GoalPaused, e.GoalResumed, e.GoalCleared, e.RevertAsked,
)
"""What people and programs may have said, chosen or ordered."""
NOTED: Final[tuple[type[Entry], ...]] = (
    e.SessionRenamed, e.PolicyChanged, e.AllowanceForgotten, e.LimitsGranted, e.HookRan,
)
"""What is only noted, whoever said it: nothing is to be decided about it."""
REFUSED: Final[tuple[type[Entry], ...]] = (
    *e.AnyRunEntry.__args__, e.AgentSessionKnown, e.CallReported, *e.AnyChildEntry.__args__,
    e.Offered, e.OfferAnswered, e.OfferWanted, e.SteerArrived,
)
"""What a session has in which others work, and cannot be replayed."""
# fmt: on
