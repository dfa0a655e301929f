"""What is journalled: one frozen type per thing that happened, past tense.

An entry is decided by one actor and applied by all that it names (see `record.py`). `messages` is
what an entry appends to the conversation, so a snapshot can name entries instead of copying texts.
In the store an entry is a JSON object with its `kind`; unknown fields of later versions are ignored
and missing ones take their defaults, so that old journals load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.attachment import Attachment
from ..machines.conversation import ChatMessage, Usage
from ..machines.policy import RoutesChoice
from .entry import Entry as Entry
from .run_entries import WorkflowCopy

# What is journalled of an order to stop: from its receipt until everything is dead ----------------


@dataclass(frozen=True, slots=True)
class _Cancel(Entry):
    """A cancel: `reaches` are the relations that the delivery table names for its cause.

    `spares` are children that go on all the same. `said` numbers what one client says; `order` is the
    parent's epoch, where the stop comes from there, else 0. `is_replaced`: another message takes the
    turn's place.
    """

    receipt: str
    turn: str
    cause: str
    user: str = ""
    client_id: str = ""
    matched: str = ""
    rule: str = ""
    text: str = ""
    ack: str = field(default="", kw_only=True)
    reaches: tuple[str, ...] = field(default=(), kw_only=True)
    spares: tuple[str, ...] = field(default=(), kw_only=True)
    said: int = field(default=0, kw_only=True)
    order: int = field(default=0, kw_only=True)
    is_replaced: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class InterruptPlanned(_Cancel):
    """A cancel was accepted that takes effect, under its receipt, when `tools` have ended."""

    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InterruptCalledOff(Entry):
    """A planned cancel was taken back before the tools that it waited for had ended."""

    receipt: str
    turn: str


@dataclass(frozen=True, slots=True)
class InterruptRequested(_Cancel):
    """A cancel was accepted; `receipt` is its id, `rule` and `matched` say why it is one."""


@dataclass(frozen=True, slots=True)
class Interrupted(Entry):
    """The turn has ended: it takes no further step. `checkpoint` is {done, total, unit} or none.

    `is_replaced`: another message took its place.
    """

    turn: str
    cause: str
    checkpoint: Mapping[str, Any] | None = None
    messages: tuple[ChatMessage, ...] = ()
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class Stopped(Entry):
    """Everything that a stop reached is dead; `killed` and `survivors` are pids.

    `turn` is empty where no turn was stopped: then `receipt` names the stop. `order` as for the stop.
    """

    turn: str
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    order: int = 0
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class StopNoted(Entry):
    """A stop found nothing at work: what was ordered before it, and has not begun, does not begin."""

    cause: str
    reaches: tuple[str, ...] = ()
    said: int = 0


# What is journalled of a session's children, in the parent's journal; they have their own, too


@dataclass(frozen=True, slots=True)
class ChildStarted(Entry):
    """A child was given a task: by tool call `call` of `turn`, or by a person, beside everything.

    `session` is the child's own id, `epoch` the parent's when it was ordered, and `above` those of the
    parent's ancestors, nearest first: a stop that is newer is the child's, too. `is_waiting`: as many as
    may work do. `item` is a side talk's place in the queue.
    `goal`: what it works for, beyond its first turn: text, gates, max_turns.
    """

    child: str
    session: str
    agent: str
    task: str
    relation: str
    turn: str = ""
    call: str = ""
    epoch: int = 0
    is_waiting: bool = False
    item: str = ""
    user: str = ""
    goal: dict[str, Any] = field(default_factory=dict[str, Any])
    above: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildAdmitted(Entry):
    """There is room now: a child that waited begins."""

    child: str


@dataclass(frozen=True, slots=True)
class ChildCancelled(Entry):
    """A child was told to end; `is_kept`: it can be resumed together with its parent."""

    child: str
    cause: str
    receipt: str = ""
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class ChildDetached(Entry):
    """The turn that waited for a child ends without it: it works in the background from now on."""

    child: str


@dataclass(frozen=True, slots=True)
class ChildInterrupted(Entry):
    """A child has stopped where it was, with everything it started, and can be resumed."""

    child: str
    why: str = ""
    text: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildResumed(Entry):
    """An interrupted child goes on, for the turn that goes on; epochs as for `ChildStarted`."""

    child: str
    turn: str = ""
    epoch: int = 0
    above: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildEnded(Entry):
    """A child is over: `status` is completed, cancelled, failed or disconnected; `text` what it had.

    `goes` is where its result goes, by the third routing table.
    """

    child: str
    status: str
    text: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    goes: str = ""


@dataclass(frozen=True, slots=True)
class Offered(Entry):
    """A result has a place in the queue, and never runs by itself; of a side talk the question."""

    item: str
    number: int
    text: str
    child: str
    user: str = ""
    client_id: str = ""
    is_answered: bool = True


@dataclass(frozen=True, slots=True)
class OfferAnswered(Entry):
    """The answer to a side talk is there."""

    item: str
    text: str


@dataclass(frozen=True, slots=True)
class OfferWanted(Entry):
    """A person decided about an answer that is not there yet: steer it, or keep it, when it comes."""

    item: str
    wants: str


@dataclass(frozen=True, slots=True)
class Kept(Entry):
    """A person wants what was offered to run, as a message in its turn; `past_hold` as for `Queued`."""

    item: str
    past_hold: bool = False


@dataclass(frozen=True, slots=True)
class SteerArrived(Entry):
    """A steer that was handed on entered a child's context, or (`turn` is empty) could not."""

    item: str
    child: str
    turn: str = ""
    step: int = 0


# What is journalled of a session's life: opened, left, taken up again, over -----------------------


@dataclass(frozen=True, slots=True)
class SessionOpened(Entry):
    """The first entry of every journal: what the model sees of it never changes after this.

    `messages` is what it has seen before its first word: a side talk its parent's conversation, a fork
    that of the session that it was `forked_from` (its id, and the entry). `workflow`: what the session
    runs, if it is a run.
    """

    session: str
    folder: str
    agent: str
    model: str
    system: str
    tools: tuple[str, ...] = ()
    user: str = ""
    parent: str = ""
    messages: tuple[ChatMessage, ...] = ()
    forked_from: str = ""
    workflow: WorkflowCopy | None = None


@dataclass(frozen=True, slots=True)
class SessionRenamed(Entry):
    """A person called the session something; empty: nothing any more."""

    name: str


@dataclass(frozen=True, slots=True)
class SessionResumed(Entry):
    """Somebody is there again."""


@dataclass(frozen=True, slots=True)
class SessionLeaving(Entry):
    """The program is being left; what runs is being stopped first, as far as `reaches` goes."""

    cause: str = "exit"
    reaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionSuspended(Entry):
    """The program was left; everything is kept."""

    cause: str = "exit"


@dataclass(frozen=True, slots=True)
class SessionFinalizing(Entry):
    """The session was told to end for good; what `reaches` names is being stopped first."""

    cause: str
    reaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionFinalized(Entry):
    """The session is over for good; `finalize` is a stable id for hooks."""

    finalize: str
    cause: str


@dataclass(frozen=True, slots=True)
class Recovered(Entry):
    """A process that owned the session died; what it left was put in order, and nothing runs.

    `messages` are results for the calls whose outcome is unknown. `last_active` is seconds since
    the epoch; `items` counts what waits or was interrupted.
    """

    cause: str
    items: int
    last_active: float
    messages: tuple[ChatMessage, ...] = ()


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
