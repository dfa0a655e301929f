"""What a run's actors tell each other and ask of the world, apart from what any session does."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .delegation import SetTimer
from .machine import Machine, State, Transition
from .messages import Lane, Message

# The machines of a workflow's step and of its work: a step has one piece of work for each item
# A step without `for_each` has one piece. Work is tried once or, with `retry`, several times; each try
# is durable before it begins. What the program's death cut off is `unknown`: it may or may not have had
# its effect, and is only done again if the step says that it may be, or a person does.
#
# When a failed run is tried again, a step that failed is reopened: what is done of it stays done. Steps
# that followed from its end are reset, as if they had never begun.


ENDED = ("done", "failed", "skipped", "blocked")
"""The states of a step that has ended, as far as this attempt at the run goes."""

STEP = Machine(
    name="step",
    doc="One step of a workflow's run.",
    initial="waiting",
    states=(
        State("waiting", "What it needs has not ended yet."),
        State("running", "Some of its work runs, or is about to."),
        State("interrupted", "The run was interrupted; what is done of it stays done."),
        State("done", "All its work is done."),
        State("failed", "Some of its work failed, or it could not begin."),
        State("skipped", "Its own condition did not hold."),
        State("blocked", "Something that it needs failed."),
    ),
    transitions=(
        Transition("start", ("waiting", "interrupted"), "running"),
        Transition("skip", ("waiting",), "skipped"),
        Transition("block", ("waiting",), "blocked"),
        Transition("finish", ("running",), "done"),
        Transition("fail", ("waiting", "running", "interrupted"), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("interrupt", ("waiting", "interrupted", *ENDED), ignored="it does not run"),
        Transition("reopen", ("failed",), "interrupted"),
        Transition("reset", ENDED, "waiting"),
    ),
    control=("interrupt",),
)

WORK = Machine(
    name="work",
    doc="A step's work for one item, one attempt after another.",
    initial="waiting",
    states=(
        State("waiting", "It begins when there is room for it."),
        State("running", "An attempt is durable, and runs or is about to."),
        State("resting", "An attempt failed; the next begins after a while."),
        State("interrupted", "It was stopped; it begins again, or its session goes on."),
        State("unknown", "The program died while it ran: nobody knows how that ended."),
        State("done", "It succeeded.", is_final=True),
        State("failed", "Its last attempt failed."),
    ),
    transitions=(
        Transition("start", ("waiting", "resting", "interrupted"), "running"),
        Transition("succeed", ("running",), "done"),
        Transition("retry", ("running",), "resting"),
        Transition("fail", ("running", "waiting"), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("interrupt", ("resting",), "waiting"),
        Transition(
            "interrupt",
            ("waiting", "interrupted", "unknown", "failed"),
            ignored="it does not run",
        ),
        Transition("lose", ("running",), "unknown"),
        Transition("lose", ("resting",), "waiting"),
        Transition("again", ("unknown", "failed"), "waiting"),
        Transition("settle", ("unknown",), "done"),
    ),
    control=("interrupt",),
)


@dataclass(frozen=True, slots=True)
class LookBefore:
    """Look at the folder before a step's commands begin; answered with `Looked`.

    One look holds for all items of a step: thousands of looks would cost more than the work.
    """

    turn: str
    epoch: int
    step: str


@dataclass(frozen=True, slots=True)
class LookAfter:
    """Look at what a step's commands have changed. Harmless when nobody looked before."""

    turn: str
    step: str


@dataclass(frozen=True, slots=True)
class SetRunTimer(SetTimer):
    """Send the run a `TimerFired` with this name, so many seconds later."""


# Messages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Looked(Message):
    """The look before a step's commands is over."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    step: str


@dataclass(frozen=True, slots=True)
class ChildCame(Message):
    """The session that works for a step has ended or stopped: how, with what it said last.

    `state` is a state of the subagent machine; `interrupted` ones can be taken up again. `more` is
    what became of its goal.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    name: str
    state: str
    text: str = ""
    reason: str = ""
    session: str = ""
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reopen(Message):
    """A person says of work whose outcome is unknown that it is to be done again, or `is_done`.

    `work` are pairs of a step and an index.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    work: tuple[tuple[str, int], ...]
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class TryAgain(Message):
    """A person says that a failed run goes on: its steps are made ready for another turn."""

    lane: ClassVar[Lane] = Lane.CONTROL
