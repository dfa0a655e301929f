"""Messages and effects of goals: between people, a session, its goal, and the judge.

A client that wants a session to work for a goal sends it `SetGoal`. The reply is a dictionary: `ok`, and
the goal's id or the `reason` why not. From then on the goal's state is `SessionRecord.goals`, whose
`current` ends up achieved, impossible, cleared or paused in every case.

The queue decides about the message that continues a goal (`GoalMessage`); it is taken back
there as soon as the goal is not pursued any more.
"""

from typing import ClassVar, Literal

from msgspec import field

from .conversation import ChatMessage, Usage
from .messages import Lane, Message
from .value import Value
from .verdict import Condition, Verdict

# From people --------------------------------------------------------------------------------------


class SetGoal(Message):
    """Work for this from now on, or, `is_next`, when the goals before it are achieved.

    `prompt` is the first turn's message, the goal's own text if empty. `gates` are commands that must
    succeed before the judge is asked, none for those of the configuration; `fault` is what keeps one of
    them from being started, for which the goal is paused at once. A budget of none is the configured one.
    `is_only`: it is refused where there was a goal already, so that it may be said again.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    text: str
    gates: tuple[tuple[str, ...], ...] | None = None
    max_turns: int | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None
    prompt: str = ""
    fault: str = ""
    is_next: bool = False
    is_only: bool = False
    user: str = ""


class ChangeGoal(Message):
    """Pause the goal, let it go on with another grant of its budget, or drop it."""

    lane: ClassVar[Lane] = Lane.CONTROL
    op: Literal["pause", "resume", "clear"]


# From the judge to its goal -----------------------------------------------------------------------


class Judged(Message):
    """The outcome of a boundary: `by` judge, gate or gates; `fault` says why there is no verdict.

    `is_unchanged`: no file has changed since the boundary before, as far as is known for sure.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    verdict: Verdict
    by: str = "judge"
    fault: str = ""
    gates: tuple["GateResult", ...] = ()
    usage: Usage = field(default_factory=Usage)
    is_unchanged: bool = False


# Effects ------------------------------------------------------------------------------------------


class GateResult(Value):
    """How a gate ended: `output` is the tail of what it printed."""

    command: str
    passed: bool
    status: str = "exited"
    exit_code: int | None = None
    output: str = ""


class RunGate(Value):
    """Run a command in the session's folder; answered with `GateEnded`."""

    goal: str
    turn: str
    number: int
    argv: tuple[str, ...]
    timeout: float


class AskJudge(Value):
    """Ask the judge about a goal after turn `turn`; answered with `JudgeAnswered`.

    `said` is what was said since the last boundary, `earlier` the judge's own last verdicts, oldest
    first.
    """

    goal: str
    turn: str
    text: str
    gates: tuple[GateResult, ...] = ()
    earlier: tuple[str, ...] = ()
    said: tuple[ChatMessage, ...] = ()
    timeout: float = 60.0


class CountChanges(Value):
    """Find out whether any file was changed by turn `turn`; answered with `ChangesCounted`."""

    goal: str
    turn: str


class StopJudging(Value):
    """Stop gate and judge at once; answered with `JudgeDead` when nothing of them is left."""

    goal: str


class AwaitCondition(Value):
    """Say `ConditionMet` when it is, or after `limit` seconds.

    `since` is the end of the turn that was judged, in seconds since the epoch: what has happened after
    it need not happen again.
    """

    goal: str
    name: str
    condition: Condition
    limit: float
    since: float = 0.0


class GoalTimer(Value):
    """Send the goal a `TimerFired` with this name, so many seconds later."""

    goal: str
    name: str
    seconds: float


GoalEffect = RunGate | AskJudge | CountChanges | StopJudging | AwaitCondition | GoalTimer


# From the ports -----------------------------------------------------------------------------------


class GateEnded(Message):
    """A gate is over, and everything that it started is dead."""

    turn: str
    number: int
    result: GateResult


class JudgeAnswered(Message):
    """The judge's answer about turn `turn`; `fault` says why there is none."""

    turn: str
    text: str = ""
    fault: str = ""
    usage: Usage = field(default_factory=Usage)


class ChangesCounted(Message):
    """So many files were changed by turn `turn`; `is_sure` if that is known of all."""

    turn: str
    files: int
    is_sure: bool = True


class JudgeDead(Message):
    """Nothing of gate or judge is left; `killed` and `survivors` are pids."""

    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


class ConditionMet(Message):
    """The condition with this name is met, or, `is_late`, was not in time."""

    name: str
    is_late: bool = False
