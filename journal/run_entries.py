"""What is journalled of a workflow's run; `turn` is the turn of the session that the run is.

`index` counts a step's items from 0; a step without `for_each` has one, number 0.
"""

from dataclasses import dataclass, field
from typing import Any

from .entry import Entry


@dataclass(frozen=True, slots=True)
class WorkflowCopy:
    """The workflow of a run as it was when the run began, with the values of its variables.

    `file` is what it is called, `folder` where paths beside it begin, `source` its text.
    """

    name: str
    file: str
    folder: str
    source: str
    variables: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What an attempt came to; `output` is text as it was said, `more` what its kind has besides."""

    output: str = ""
    errors: str = ""
    exit_code: int | None = None
    reason: str = ""
    more: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class StepStarted(Entry):
    """A step began, or goes on; `items` are given the first time, none without `for_each`."""

    turn: str
    step: str
    items: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class ItemStarted(Entry):
    """An attempt is about to begin; durable before it does. `call` is its name in this session.

    `attempt` counts from 1. `is_child`: a session does it, which can be taken up again.
    """

    turn: str
    step: str
    index: int
    call: str
    attempt: int = 1
    is_child: bool = False


@dataclass(frozen=True, slots=True)
class ItemEnded(Entry):
    """How an attempt ended: `status` is ok, failed, retry (another follows) or interrupted."""

    turn: str
    step: str
    index: int
    status: str
    result: WorkResult = field(default_factory=WorkResult)


@dataclass(frozen=True, slots=True)
class ItemReopened(Entry):
    """Work of unknown outcome: it is done again, or, `is_done`, was found to be done."""

    step: str
    index: int
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class StepAsked(Entry):
    """A person is asked something by a step; `default` answers where nobody does."""

    turn: str
    step: str
    index: int
    question: str
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True)
class StepEnded(Entry):
    """A step came to its end: `status` is done, failed, skipped or blocked."""

    turn: str
    step: str
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepReopened(Entry):
    """A failed run is tried again with this step: what failed of it, or, `is_anew`, all of it."""

    step: str
    is_anew: bool = False
