"""What is journalled of goals; see `entries.py`."""

from dataclasses import dataclass, field
from typing import Any

from ..machines.conversation import Usage
from ..machines.pursuit import GateResult
from .entry import Entry


@dataclass(frozen=True, slots=True)
class GoalSet(Entry):
    """Somebody wants this to be reached; `is_next`: after the goals before it.

    `gates` are commands that must succeed before a judge is asked. Budgets of none are no limit.
    `epoch` is the session's when it was said: a newer stop pauses the goal. `boundary` is the newest turn
    then, which is not judged.
    """

    goal: str
    text: str
    max_turns: int
    gates: tuple[tuple[str, ...], ...] = ()
    max_tokens: int | None = None
    max_seconds: float | None = None
    is_next: bool = False
    user: str = ""
    epoch: int = 0
    boundary: str = ""


@dataclass(frozen=True, slots=True)
class GoalBegun(Entry):
    """The goals before this one are achieved, or a person wants it to begin; see `GoalSet`."""

    goal: str
    epoch: int = 0
    boundary: str = ""


@dataclass(frozen=True, slots=True)
class GoalTurnFailed(Entry):
    """A turn of the goal ended without an answer that could be judged: `status` failed, interrupted."""

    goal: str
    turn: str
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgingBegun(Entry):
    """Turn `turn` is a boundary: gates and judge look at it, once. `epoch` is the session's then."""

    goal: str
    turn: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class JudgingStopped(Entry):
    """A message or a stop came first, and nothing of the judging is left: there is no verdict."""

    goal: str
    turn: str
    why: str = ""
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GoalJudged(Entry):
    """The verdict about turn `turn`: done, continue, wait or impossible.

    `by` is who says so: judge, gate (one that failed) or gates. `fault` says why there was none that
    could be used, which means continue. `answer` is a digest of what the agent said last; `is_idle`:
    the turn ran no tool.
    """

    goal: str
    turn: str
    verdict: str
    reason: str = ""
    condition: dict[str, Any] | None = None
    by: str = "judge"
    fault: str = ""
    answer: str = ""
    is_idle: bool = False
    gates: tuple[GateResult, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class GoalPaused(Entry):
    """It goes on when a person says so; `reason` is one of `machines.goal.REASONS`."""

    goal: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class GoalResumed(Entry):
    """A person lets it go on: its budget is granted again, from what was spent so far; see `GoalSet`."""

    goal: str
    turns: int
    tokens: int = 0
    seconds: float = 0.0
    epoch: int = 0
    boundary: str = ""


@dataclass(frozen=True, slots=True)
class GoalWoken(Entry):
    """What was waited for has happened, or its time is up, or a message came."""

    goal: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class GoalCleared(Entry):
    """It is dropped; `cause`: user, replaced, finalize."""

    goal: str
    cause: str = "user"
