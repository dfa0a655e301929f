"""What is journalled: one frozen type per thing that happened, past tense.

An entry is decided by one actor and applied by all that it names (see `record.py`). `messages` is
what an entry appends to the conversation, so a snapshot can name entries instead of copying texts.
In the store an entry is a JSON object with its `kind`; unknown fields of later versions are ignored
and missing ones take their defaults, so that old journals load.
"""

from dataclasses import dataclass, field
from typing import Any

from ..machines.attachment import Attachment
from ..machines.conversation import ChatMessage, Usage
from ..machines.policy import RoutesChoice
from .cancel_entries import (
    InterruptCalledOff,
    Interrupted,
    InterruptPlanned,
    InterruptRequested,
    StopNoted,
    Stopped,
)
from .child_entries import (
    ChildAdmitted,
    ChildCancelled,
    ChildDetached,
    ChildEnded,
    ChildInterrupted,
    ChildResumed,
    ChildStarted,
    Kept,
    OfferAnswered,
    Offered,
    OfferWanted,
    SteerArrived,
)
from .entry import Entry
from .session_entries import (
    Recovered,
    SessionFinalized,
    SessionFinalizing,
    SessionLeaving,
    SessionOpened,
    SessionRenamed,
    SessionResumed,
    SessionSuspended,
)

__all__ = [
    "AnswerCut",
    "Answered",
    "ChildAdmitted",
    "ChildCancelled",
    "ChildDetached",
    "ChildEnded",
    "ChildInterrupted",
    "ChildResumed",
    "ChildStarted",
    "Deferred",
    "Edited",
    "Entry",
    "InterruptCalledOff",
    "InterruptPlanned",
    "InterruptRequested",
    "Interrupted",
    "Kept",
    "LateResult",
    "ModelCallFailed",
    "ModelCalled",
    "Moved",
    "OfferAnswered",
    "OfferWanted",
    "Offered",
    "PolicyChanged",
    "ProgressMade",
    "QuestionAnswered",
    "QuestionAsked",
    "QueueHeld",
    "QueueReleased",
    "Queued",
    "Recovered",
    "Requeued",
    "SessionFinalized",
    "SessionFinalizing",
    "SessionLeaving",
    "SessionOpened",
    "SessionRenamed",
    "SessionResumed",
    "SessionSuspended",
    "SteerAddressed",
    "SteerArrived",
    "Steered",
    "StopNoted",
    "Stopped",
    "ToolEnded",
    "ToolIntended",
    "ToolRefused",
    "TurnEnded",
    "TurnStarted",
    "Withdrawn",
]


@dataclass(frozen=True, slots=True)
class Queued(Entry):
    """A message was taken in; from here on it is on disk.

    `said_as` is how the routing table took it (turn, queue, steer), `rule` its row, `matched` the
    word that decided. `position` counts from 1 among what waits. `past_hold`: it was said after what
    is held was, to a turn that runs, and runs behind that one. `for_children`: a steer for these;
    `child`: the result of that one. `purpose` is empty for a message; a `compaction`, and a
    failed run's `again`, say nothing to a model. `goal`: the next turn of that one.
    """

    item: str
    number: int
    text: str
    said_as: str
    user: str = ""
    client_id: str = ""
    matched: str = ""
    rule: str = ""
    ack: str = ""
    is_next: bool = False
    for_turn: str = ""
    position: int = 1
    for_children: tuple[str, ...] = ()
    child: str = ""
    attached: tuple[Attachment, ...] = ()
    purpose: str = ""
    goal: str = ""
    past_hold: bool = False


@dataclass(frozen=True, slots=True)
class Requeued(Entry):
    """A message waits as one of its own after all: no boundary took it in, or it was taken back.

    `is_offered`: it is a child's result, and never runs by itself. `past_hold` as for `Queued`.
    """

    item: str
    why: str
    is_offered: bool = False
    past_hold: bool = False


@dataclass(frozen=True, slots=True)
class Deferred(Entry):
    """The model handed a steer back at (turn, step): it waits anew, as `new_item`.

    `position` counts from 1 among what waits; `past_hold` as for `Queued`.
    """

    item: str
    new_item: str
    number: int
    turn: str
    step: int
    why: str
    text: str
    user: str = ""
    position: int = 1
    past_hold: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn(Entry):
    """A person took a message back."""

    item: str


@dataclass(frozen=True, slots=True)
class Edited(Entry):
    """A person said a waiting message anew."""

    item: str
    text: str
    attached: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved(Entry):
    """A person put a message elsewhere: in front of item `before`, or, if that is empty, last."""

    item: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class SteerAddressed(Entry):
    """A waiting message was handed to the running turn, or to children: it is a steer from here on."""

    item: str
    turn: str
    for_children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyChanged(Entry):
    """A person chose how this session takes messages, and by which model; what is empty stays."""

    busy_mode: str = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class QueueHeld(Entry):
    """What waits stays until a person says resume; `is_all`: also what was to run next."""

    why: str = ""
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class QueueReleased(Entry):
    """What waits may run, before all others `items`, of which `resumed` were interrupted."""

    resumed: int = 0
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnStarted(Entry):
    """An item's turn began; `resumes` names the interrupted turn that it goes on from.

    `lineage` are the epochs of the session's ancestors under which it began, nearest first.
    """

    turn: str
    item: str
    number: int
    epoch: int
    resumes: str = ""
    messages: tuple[ChatMessage, ...] = ()
    lineage: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelCalled(Entry):
    """The model is about to be asked: at most once by itself for each (turn, step).

    `tokens` is what is sent, as estimated: so much counts as used if no answer ever comes.
    """

    turn: str
    step: int
    messages: tuple[ChatMessage, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answered(Entry):
    """The model's whole answer; `messages` holds it."""

    turn: str
    step: int
    usage: Usage = field(default_factory=Usage)
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerCut(Entry):
    """An answer was cut off so that a steer enters at once; `messages` holds what had come of it."""

    turn: str
    step: int
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelCallFailed(Entry):
    """The model gave no answer."""

    turn: str
    step: int
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class QuestionAsked(Entry):
    """A person is asked whether a tool call may run: by which rule, of which file.

    `is_outside`: it leads outside the session's folder.
    """

    turn: str
    call: str
    question: str
    tool: str
    arguments: dict[str, Any]
    rule: str = ""
    source: str = ""
    is_outside: bool = False


@dataclass(frozen=True, slots=True)
class QuestionAnswered(Entry):
    """The answer to a question; `withdrawn` if the turn ended first."""

    turn: str
    question: str
    choice: str


@dataclass(frozen=True, slots=True)
class ToolIntended(Entry):
    """A tool call is about to start; durable before it does."""

    turn: str
    step: int
    call: str
    tool: str
    arguments: dict[str, Any]
    is_idempotent: bool = False


@dataclass(frozen=True, slots=True)
class ToolRefused(Entry):
    """A tool call that never started: `status` is denied, failed (it made no sense) or skipped."""

    turn: str
    call: str
    tool: str
    status: str
    reason: str
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolEnded(Entry):
    """A tool call's result; everything it started is dead, or listed in `survivors`."""

    turn: str
    call: str
    tool: str
    status: str
    exit_code: int | None = None
    bytes: int = 0
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    spilled: str = ""
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgressMade(Entry):
    """How far the turn says it is: a checkpoint to resume from."""

    turn: str
    done: int
    total: int
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Steered(Entry):
    """Waiting steers entered the context at (turn, step), as one user message, in order."""

    items: tuple[str, ...]
    turn: str
    step: int
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnEnded(Entry):
    """The turn ended by itself: `status` is completed or failed, `reason` says why it failed."""

    turn: str
    status: str
    reason: str = ""
    hint: str = ""
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class LateResult(Entry):
    """A result came after its turn had ended: counted and ignored."""

    turn: str
    what: str
    usage: Usage = field(default_factory=Usage)
