"""Where each kind of entry comes from: from people, from the world, or from the runtime itself.

A replay gives what came from outside at the place where the record has it, and lets the runtime decide
all else again. Some kinds come from either side: a queue is held by a person, or by the rule of a stop.
Of these the runtime's own is awaited first.
"""

from __future__ import annotations

from typing import Final

from ...journal import entries as e
from ...journal.entries import Entry

# fmt: off
INPUTS: Final[tuple[type[Entry], ...]] = (
    e.SessionOpened, e.SessionRenamed, e.SessionResumed, e.SessionLeaving, e.SessionFinalizing,
    e.Recovered, e.PolicyChanged, e.AllowanceForgotten, e.LimitsGranted, e.InterruptPlanned,
    e.InterruptCalledOff, e.InterruptRequested, e.StopNoted, e.Queued, e.Withdrawn, e.EditBegun,
    e.EditEnded, e.Edited, e.Moved, e.SteerAddressed, e.OfferWanted, e.Kept, e.QueueHeld,
    e.QueueReleased, e.QuestionAnswered, e.AllowanceGiven, e.GoalSet, e.GoalPaused, e.GoalResumed,
    e.GoalCleared, e.RevertAsked,
)
"""What people and programs may have said, chosen or ordered."""
EFFECTS: Final[tuple[type[Entry], ...]] = (
    e.HookRan, e.AgentSessionKnown, e.Answered, e.AnswerGrew, e.AnswerCut, e.ModelCallFailed,
    e.ToolEnded, e.CallReported, e.ProgressMade, e.Compacted, e.CompactionBegun, e.LateResult,
    e.Interrupted, e.RevertBegun, e.Reverted, e.RevertRefused, e.GoalJudged, e.GoalWoken,
    e.JudgingStopped, e.ChildEnded, e.ChildInterrupted, e.SteerArrived, e.OfferAnswered,
    e.ItemEnded,
)
"""What models, tools, files, judges and children may have had as their outcome."""
DECISIONS: Final[tuple[type[Entry], ...]] = (
    e.SessionSuspended, e.SessionFinalized, e.Requeued, e.Deferred, e.Steered, e.Offered,
    e.TurnStarted, e.ModelCalled, e.QuestionAsked, e.ToolIntended, e.ToolRefused, e.NoProgress,
    e.ClaimDoubted, e.LimitReached, e.Stopped, e.TurnEnded, e.ChildStarted, e.ChildAdmitted,
    e.ChildCancelled, e.ChildDetached, e.ChildResumed, e.GoalBegun, e.GoalTurnFailed,
    e.JudgingBegun, e.RevertStarted, e.StepStarted, e.ItemStarted, e.ItemReopened, e.StepAsked,
    e.StepEnded, e.RunOverdue, e.StepReopened,
)
"""What the runtime alone decides."""
REFUSED: Final[tuple[type[Entry], ...]] = (
    *e.AnyRunEntry.__args__, e.AgentSessionKnown, e.CallReported, *e.AnyChildEntry.__args__,
    e.Offered, e.OfferAnswered, e.OfferWanted, e.SteerArrived,
)
"""What a session has in which others work, and cannot be replayed."""
# fmt: on
