"""What a run's actors tell each other and ask of the world, apart from what any session does."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .delegation import SetTimer
from .messages import Lane, Message

# Effects ------------------------------------------------------------------------------------------


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
