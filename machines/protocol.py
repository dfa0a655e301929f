"""The protocol of a session: messages between actors, effects asked of the ports, their results, facts.

Imported as `m`, as the entries of the journal are as `e`. Every value is frozen and says what its sender
wants or found; nobody is sent a copy of state, since a session's actors share one record.
"""

import signal
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, Literal

from msgspec import field

from .conversation import Attachment, ChatMessage, Picture, Thought, ToolRequest, Usage
from .policy import RoutesChoice
from .value import Value
from .verdict import Condition, Verdict

# What is said -------------------------------------------------------------------------------------


class Said(Value):
    """Words, and who said them: as they were when they were sent.

    `user` is a person, a child, or empty for the owner of the session. `client_id` is the sender's own
    key: what comes a second time with the same is known. `attached` is what the text names by `@path`.
    """

    text: str
    user: str = ""
    client_id: str = ""
    attached: tuple[Attachment, ...] = ()


NOBODY = Said(text="")
"""What stands where nobody said anything."""


class Routed(Value):
    """How the routing table took what was said: as what, by which row and word, with which answer.

    `said_as` is turn, queue, steer or interrupt, or for what no table has routed goal, result or
    side_talk. `matched` is the word that decided, empty where the row would have been the same without.
    """

    said_as: str = "turn"
    rule: str = ""
    matched: str = ""
    ack: str = ""


class StopOrder(Value):
    """An order to stop, from a person, a limit or a parent; `cause` is a key of the delivery table.

    `utterance` numbers what one client says: a stop overtakes what it said before. `epoch` is the
    parent's, where a stop of the parent reaches its child, else 0. `is_replaced`: another message takes
    the place of the turn that is stopped. `is_revert`: files are to be restored then.
    """

    cause: str
    said: Said = NOBODY
    routed: Routed = Routed()
    utterance: int = 0
    epoch: int = 0
    is_replaced: bool = False
    is_revert: bool = False


class ItemKind(StrEnum):
    """What an item of a queue is; only the first three have words for the model that can be changed."""

    MESSAGE = "message"  # a person's, or of a program in the place of one
    RESULT = "result"  # what a child found
    TALK = "talk"  # a question beside the work, and its answer
    GOAL = "goal"  # the next turn of a goal
    SUMMARY = "summary"  # an order to sum up the conversation; its text is what matters most
    RETRY = "retry"  # a run that has failed is tried again


SPOKEN = (ItemKind.MESSAGE, ItemKind.RESULT, ItemKind.TALK)
"""The kinds whose words somebody said, and which may be edited, steered or kept."""
SILENT = (ItemKind.SUMMARY, ItemKind.RETRY)
"""The kinds that say nothing to the model."""


def shown(kind: ItemKind, text: str) -> str:
    """Return an item's text as people read it."""
    return f"/compact {text}".rstrip() if kind is ItemKind.SUMMARY else text


# From people and other programs -------------------------------------------------------------------
# Lanes are served SYSTEM, then CONTROL, then DATA; within a lane each sender's messages stay in order.
# SYSTEM is the runtime's own traffic (a child is down, journal entries that were decided, commits that
# are durable); CONTROL is what must not wait behind work (interrupt, steer, timer); DATA is everything
# else. Only messages from outside (`is_external`) are counted against a mailbox's bound.


class Lane(IntEnum):
    """Service order of a mailbox, first to last."""

    SYSTEM = 0
    CONTROL = 1
    DATA = 2


class Message(Value):
    """Base of all messages; a subclass that says nothing travels in DATA, from inside."""

    lane: ClassVar[Lane] = Lane.DATA
    is_external: ClassVar[bool] = False


class SystemMessage(Message):
    """Base of the runtime's own messages: they are served first."""

    lane: ClassVar[Lane] = Lane.SYSTEM


class ControlMessage(Message):
    """Base of messages that must not wait behind work."""

    lane: ClassVar[Lane] = Lane.CONTROL


class Request(Message):
    """Base of what people and other programs ask of a session: each has a row (`handlers.py`)."""


class UserMessage(Request):
    """A person's message, classified before it is posted; one type from every surface.

    `intent` and `matched` are the classification, `queue_position` where to put it (none: last).
    `then` is what of an interrupting message is left to run next, empty if nothing. `utterance` rises
    with each message of one client: a stop overtakes those before it. `to` names the
    child that a steer is for, or `parent`; `revert` is what to restore once the turn has stopped.
    """

    type: Literal["normal", "steer", "interrupt"]
    said: Said
    intent: str
    matched: str = ""
    then: str = ""
    queue_position: int | None = None
    utterance: int = 0
    to: str = ""
    revert: Literal["", "turn", "last"] = ""

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL for whatever stops or steers, so that it never waits behind data."""
        return Lane.DATA if self.type == "normal" else Lane.CONTROL

    @property
    def is_external(self) -> bool:  # type: ignore[override]
        """Counted against the bound, apart from interrupts, which are never refused."""
        return self.type != "interrupt"


class Interrupt(Request):
    """A stop by command, key or signal, by a limit or the parent.

    `turn` none addresses whatever turn runs; a turn's id addresses that one and no other.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    order: StopOrder
    turn: str = ""


CHOICES = ("allow", "always", "deny")
"""The answers to a tool call's question."""
CHOICES_OF_HOLD = ("allow", "change", "answer", "deny")
"""The answers to the question of a call that is held."""
CHOICES_OF_FORM = ("answer", "deny")
"""The answers to a form of a server; the reason is what was filled in, or why not."""


def question_id(path: tuple[str, ...], asked: str) -> str:
    """Name what is asked: by the children that lead to the session, and the call, step or turn in it."""
    return f"q-{':'.join((*path, asked))}"


def child_that_asks(path: tuple[str, ...], question: str) -> str:
    """Return which child of the session at a path leads to a question; empty if none does."""
    names = tuple(question.removeprefix("q-").split(":")[:-1])
    return names[len(path)] if names[: len(path)] == path and len(names) > len(path) else ""


class Answer(Request):
    """A person's answer to a question.

    To a tool call's question `choice` is allow, always or deny; `reason` is why not, or with `always`
    the pattern that is allowed from now on, empty for this call. To that of a call that is held it is
    allow, deny, change with other arguments as JSON in `reason`, or answer, with what the model gets in
    the call's place. To a step's question it is one of the step's options, by text or number, or free
    text; `deny` with a reason: no person answers. `rule`: no person does either, but this permission
    rule or mode, which came to hold after the question was asked.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    question: str
    choice: str
    reason: str = ""
    user: str = ""
    rule: str = ""


class Allow(Request):
    """A person lets calls of `tool` that match `pattern` run unasked; without `is_given` no more."""

    lane: ClassVar[Lane] = Lane.CONTROL
    tool: str
    pattern: str
    is_given: bool = True
    user: str = ""


class QueueChange(Request):
    """A change of the queue that a person asked for: `op` with its number, new words or position.

    `position` counts from 1 among what waits. `to`: the child to steer, `parent`,
    or empty for what is at work; the session finds out `for_children`. `editor` is the client in which
    a person edits message `number`, or stops; without a number all that it edits. `moved_to`:
    the session that has the messages now. `user` is who asks.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    op: Literal[
        "withdraw",
        "clear",
        "discard",
        "hold",
        "release",
        "edit",
        "begin_edit",
        "end_edit",
        "move",
        "steer",
        "keep",
    ]
    number: int | None = None
    said: Said | None = None
    position: int = 1
    to: str = ""
    for_children: tuple[str, ...] = ()
    editor: str = ""
    moved_to: str = ""
    user: str = ""


class ImportedItem(Value):
    """A message of another session's queue or of a file; `progress` is {done, total, unit} or none.

    `is_steer`: it waited for a turn that is not here; it comes back as a message of its own.
    """

    said: Said
    is_interrupted: bool = False
    progress: dict[str, Any] | None = None
    is_steer: bool = False


class QueueImport(Request):
    """Take in all of these, in order, or none; held where nothing runs.

    `may_overfill`: what was saved once may come back, however many may wait now.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    items: tuple[ImportedItem, ...]
    may_overfill: bool = False


class PolicyChange(Request):
    """A person chooses how this session takes messages, its model, its permission mode, its holds.

    What is empty stays. `label` is what the model that answers is called, `system` and `tools` what fits
    it where that is of another kind than the one before.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    busy_mode: Literal["", "interrupt", "steer", "queue"] = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None
    model: str = ""
    mode: Literal["", "ask", "edits", "plan", "all"] = ""
    holds: tuple[tuple[str, str], ...] | None = None
    label: str = ""
    system: str = ""
    tools: tuple[str, ...] | None = None
    user: str = ""


class Rename(Request):
    """A person calls this session something; an empty name takes its name away."""

    lane: ClassVar[Lane] = Lane.CONTROL
    name: str = ""


class TakeBack(Request):
    """The newest message was not meant as it was read: let it wait in the queue instead."""

    lane: ClassVar[Lane] = Lane.CONTROL


class ResumeQueue(Request):
    """Run what was interrupted, from its checkpoint, then what waits.

    `children`: those beside the turns that go on, too; the session finds them out. `is_beside_goal`: a
    goal goes on automatically, so nothing is to be done unless a message waits that is none of its own.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    number: int | None = None
    children: tuple[str, ...] = ()
    is_beside_goal: bool = False


class Suspend(Request):
    """Leave: interrupt what runs, keep everything, answer when it is durable."""

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str = "exit"


class Finalize(Request):
    """End the session permanently; happens once."""

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str = "user"


class Compact(Request):
    """Sum up the conversation so far, as soon as no turn runs; `wish` says what matters.

    Answered with {ok, runs} or {ok: False, reason}.
    """

    wish: str = ""
    user: str = ""


class GrantLimits(Request):
    """Let this session use as much again as its limits say."""

    user: str = ""


# Reverts ------------------------------------------------------------------------------------------


class Revert(Request):
    """A person wants files as they were; a running turn is stopped first.

    `scope`: the newest turn that changed files (or those since turn `since`), its last change, or
    the last revert itself (`undo`, of `paths` if any are named).
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    scope: Literal["turn", "last", "undo"] = "turn"
    since: str = ""
    paths: tuple[str, ...] = ()
    force: bool = False
    is_dry_run: bool = False
    user: str = ""


class RevertOutcome(Request):
    """Ask for the outcome of revert `id`. Answered when that is known."""

    id: str


# Between the actors of a session ------------------------------------------------------------------
# They share one record (`actors/ledger.py`), so no message carries a copy of state. A message says what
# its sender wants; the receiver looks at the record as it is then.


class Wake(SystemMessage):
    """The record has changed in a way that concerns the receiver: it does what is due."""


class OpenSession(SystemMessage):
    """The first message of a new session: `entry` is the first entry of its journal."""

    entry: Any


class NoteEntry(SystemMessage):
    """Journal an entry about the session that none of its actors decides: a hook that has run."""

    entry: Any


class Committed(SystemMessage):
    """Everything up to entry `seq` of this session is durable."""

    seq: int


class StoreBroke(SystemMessage):
    """The journal cannot be written, or another process owns it: nothing more may be accepted."""

    reason: str
    hint: str = ""
    is_lease_lost: bool = False


class RecoverRecord(SystemMessage):
    """The journal can be written again: recover a session that broke off from its durable entries."""


class Down(SystemMessage):
    """A supervised actor ended; its last act. `reason` is empty for a normal end.

    `wants_restart`: it asks to be started again, and has not failed.
    """

    name: str
    urn: str
    reason: str = ""
    letter: str = ""
    wants_restart: bool = False


class Kill(SystemMessage):
    """End now; the mailbox is kept for the next incarnation.

    `incarnation` is the one that is meant, counted from 0: a later one ignores the order.
    """

    incarnation: int = 0


class Mailed(Message):
    """A message from the session's mailbox: the decision about it consumes the one with id `posted`."""

    message: Message
    posted: int

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """That of the message."""
        return self.message.lane

    @property
    def is_external(self) -> bool:  # type: ignore[override]
        """As the message is."""
        return self.message.is_external


def mailed(message: Any, posted: int) -> Any:
    """Return a message as one from the mailbox; unchanged with id 0, which no posted one has."""
    return Mailed(message=message, posted=posted) if posted else message


class Retire(SystemMessage):
    """Forget the session `name`, which this program does not own any more."""

    name: str
    urn: str


class Timer(Value):
    """Which of its timers an actor set; `about` names a child, a call, a step or an item."""

    kind: str
    about: str = ""
    index: int = 0


class TimerFired(ControlMessage):
    """A timer that the receiver set has run out."""

    timer: Timer
    epoch: int = 0


class Enqueue(SystemMessage):
    """Take a message into the queue.

    `is_next`: run before everything that waits, also while the queue is held. `is_overtaken`: it was
    said before a stop that was served first. `for_turn`: a steer for a boundary of that turn;
    `for_children`: for one of each of these, or, with `beneath`, for a child of theirs. `child`: it is
    the result of that child.
    """

    said: Said
    routed: Routed = Routed()
    kind: ItemKind = ItemKind.MESSAGE
    is_next: bool = False
    for_turn: str = ""
    position: int | None = None
    for_children: tuple[str, ...] = ()
    child: str = ""
    beneath: str = ""
    is_overtaken: bool = False


class TakeSteers(SystemMessage):
    """At a boundary before `step` of `turn`: hand over what waits for it. Answered with `Wake`."""

    turn: str
    step: int


class SteerWaits(SystemMessage):
    """The queue's news for the turn that steer `item` waits for its next boundary."""

    item: str


class HandBack(SystemMessage):
    """The model can't work a message in: `words` are how it begins, empty if there is only one.

    The queue answers the turn with the result of the tool call.
    """

    turn: str
    epoch: int
    step: int
    call: str
    words: str
    why: str


class GoalMessage(SystemMessage):
    """Let the message that goes on with a goal wait in the queue.

    `is_first`: it is the goal's first, which also runs past what is held and behind what waits.
    `after`: only while that turn is the newest; none if a person wants it, whatever has run.
    """

    goal: str
    said: Said
    is_first: bool = False
    after: str | None = None


class CloseChildren(SystemMessage):
    """The session ends: answered with `ChildrenClosed` once no child's session is open here."""


class ChildrenClosed(SystemMessage):
    """No session of a child is open any more."""


class Describe(ControlMessage):
    """Ask a session for a `SessionDescription`; answered to an `ask`."""


class Inspect(Message):
    """Ask an actor for its part of a dump; answered to an `ask`.

    `is_last`: only after everything that waits in the mailbox now. `is_of_queue`: a session has its
    queue answer, behind all earlier messages to both.
    """

    is_last: bool = False
    is_of_queue: bool = False

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL, so that a busy actor answers; DATA to see the outcome of all messages."""
        return Lane.DATA if self.is_last else Lane.CONTROL


# Delegation ---------------------------------------------------------------------------------------
# The child supervisor is the one authority on a session's children, as the queue is on messages. A
# child is a session; what it does is reported through its journal, once that is durable.


ReportKind = Literal["ended", "stopped", "closed", "steered", "missed"]


# Effects of delegation -----------------------------------------------------------------------------


class Delegate(SystemMessage):
    """A tool call of turn `turn` gives a task to a child; its result is the call's.

    `epoch` is the session's when that was decided: the turn may have gone on after a stop of children.
    `ancestors` are the epochs of the session's ancestors under which the turn began, nearest first.
    """

    turn: str
    epoch: int
    call: str
    arguments: dict[str, Any]
    ancestors: tuple[int, ...] = ()


class Dismiss(SystemMessage):
    """A tool call of turn `turn` ends a child, named as in `EndChild`; it has its result at once."""

    turn: str
    epoch: int
    call: str
    arguments: dict[str, Any]


class StopChild(SystemMessage):
    """End the child that this tool call waits for; the call's result still comes."""

    turn: str
    epoch: int
    call: str


class OpenChild(Value):
    """Open a child's session: `seed` is what it has seen before its first word, `task` what that is.

    Answered with `ChildOpened` or `ChildLost`. `number` tells an answer to it from a late one to an
    earlier order: it is that of the newest entry when this was decided.
    """

    number: int
    name: str
    session: str
    agent: str
    relation: str
    seed: tuple[ChatMessage, ...] = ()
    task: str = ""


class CloseChild(Value):
    """Close a child's session, and release its lease."""

    session: str


class PassSteer(SystemMessage):
    """Hand a steer on to the children named; each takes it in at its own next boundary.

    `beneath`: it is for a child of theirs, named as in `EndChild`.
    """

    item: str
    names: tuple[str, ...]
    said: Said
    beneath: str = ""


class SetTimer(Value):
    """Send the actor that asked a `TimerFired`, so many seconds later."""

    timer: Timer
    seconds: float
    epoch: int = 0


# To the child supervisor ---------------------------------------------------------------------------


class ResumeChildren(SystemMessage):
    """Turn `turn` goes on where `earlier` were interrupted, newest first: so do the children of those.

    Both empty: those go on for which no turn waits. `epoch` is the session's when that was decided.
    """

    earlier: tuple[str, ...]
    turn: str
    epoch: int


class EndChild(Request):
    """A person ends one child: at once, or after it has summed up what it has (`is_gentle`).

    `child` is its name, or the names that lead to a child of a child, with `/` between them.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    child: str
    is_gentle: bool = False
    user: str = ""
    cause: str = "user"


class SideTalk(Request):
    """A question beside the main turn, answered by a session of its own that only reads."""

    lane: ClassVar[Lane] = Lane.CONTROL
    is_external: ClassVar[bool] = True
    said: Said


class Recall(Request):
    """Take back the steer with this key, if it still waits."""

    lane: ClassVar[Lane] = Lane.CONTROL
    key: str


# To the queue -------------------------------------------------------------------------------------


class Offer(SystemMessage):
    """Give a result a place in the queue where it waits until a person decides about it."""

    said: Said
    child: str


class AnswerOffer(SystemMessage):
    """The answer to a side talk is there; it goes where the person wanted it in the meantime."""

    item: str
    text: str
    turn: str = ""


# From the ports, and from the children ------------------------------------------------------------


class ChildOpened(SystemMessage):
    """A child's session is open: `start` starts its actor, `entry` is the first of a new journal.

    For a session that was opened before: `has_task` says whether its task reached it, `is_over`
    whether it has ended permanently, `last` its last report, if it has nothing more to do.
    """

    number: int
    name: str
    session: str
    start: Any
    entry: Any = None
    has_task: bool = False
    is_over: bool = False
    last: "ChildReport | None" = None


class ChildLost(SystemMessage):
    """A child's session could not be opened."""

    number: int
    name: str
    reason: str
    hint: str = ""


class ChildReport(SystemMessage):
    """A child's report, durable in its journal.

    ended: it has nothing more to do; `status` is completed or failed, and `text` its last word.
    stopped: it was interrupted and everything it started is dead; `order` is the parent's epoch of the
    stop that it obeyed, 0 if that came from elsewhere. closed: it is suspended or final. steered,
    missed: the steer with `key` entered at (turn, step), or can't.
    """

    name: str
    kind: ReportKind
    status: str = ""
    text: str = ""
    reason: str = ""
    key: str = ""
    turn: str = ""
    step: int = 0
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    order: int = 0


# Goals --------------------------------------------------------------------------------------------
# A client that wants a session to work for a goal sends it `SetGoal`. The reply is a dictionary: `ok`,
# and the goal's id or the `reason` why not. From then on the goal's state is `SessionRecord.goals`,
# whose `current` ends up achieved, impossible, cleared or paused in every case.
#
# The queue decides about the message that continues a goal (`GoalMessage`); it is taken back
# there as soon as the goal is not pursued any more.


# From people --------------------------------------------------------------------------------------


class SetGoal(Request):
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


class ChangeGoal(Request):
    """Pause the goal, let it go on with another grant of its budget, or drop it."""

    lane: ClassVar[Lane] = Lane.CONTROL
    op: Literal["pause", "resume", "clear"]


# From the judge to its goal -----------------------------------------------------------------------


class Judged(SystemMessage):
    """The outcome of a boundary: `by` judge, gate or gates; `fault` says why there is no verdict.

    `is_unchanged`: no file has changed since the boundary before, as far as is known for sure.
    """

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
    """Send the goal a `TimerFired` with a timer of this kind, so many seconds later."""

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


# From models, tools, restores and external agents -------------------------------------------------
# An external agent's work is to the turn one tool call, `AGENT_TOOL`. The calls of the agent within it
# are journalled as those of any agent, but started by it and not by us.


class ModelText(Message):
    """A piece of streaming text. `is_due`: what has come until now is to be kept."""

    turn: str
    epoch: int
    step: int
    delta: str
    is_due: bool = False


class ModelThought(Message):
    """A piece of what the model thinks before it answers."""

    turn: str
    epoch: int
    step: int
    delta: str


class ToolPrinted(Message):
    """A command that runs has printed more: its last lines so far."""

    turn: str
    call: str
    text: str


class ModelNoticed(Message):
    """The model port waits for something, and says for what, and for how long if it knows."""

    turn: str
    epoch: int
    text: str
    seconds: float = 0.0


class ModelAnswered(Message):
    """A whole answer; `window` is how many tokens the model can look at, 0 where it is not known."""

    turn: str
    epoch: int
    step: int
    text: str
    tool_calls: tuple[ToolRequest, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = "stop"
    window: int = 0
    thoughts: tuple[Thought, ...] = ()


class ModelFailed(Message):
    """No answer: why, and the next step; `is_too_long`: the conversation is, for the window.

    `again`: the provider takes no call for so many seconds; 0 if it did not say.
    """

    turn: str
    epoch: int
    step: int
    reason: str
    hint: str = ""
    is_too_long: bool = False
    window: int = 0
    again: float = 0.0


class Summarised(Message):
    """The model's summary of the older turns; without `text`, `reason` says why."""

    turn: str
    epoch: int
    step: int
    text: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


ToolStatus = Literal["ok", "failed", "timed_out", "killed", "unknown"]


class ChangedFile(Value):
    """A file that a call changed, and how many lines of it: `path` is relative to the folder."""

    path: str
    added: int = 0
    removed: int = 0
    is_new: bool = False


class CallEnd(Value):
    """How a call ended, beside what the model reads of it: what is journalled and shown.

    `unknown`: contact was lost to the machine on which it ran, and it may have had its effect. `bytes` is
    the size of all output before capping. `killed` and `survivors` are process ids. `changed` are the
    files that it is known to have changed; `is_poll`: it looked whether something outside has happened,
    so that to repeat it is right.
    """

    status: ToolStatus
    exit_code: int | None = None
    bytes: int = 0
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    is_poll: bool = False


class ToolResult(CallEnd):
    """The end of a call with what came of it.

    `text` is what the model gets (capped: head and tail of long output, and the file of the whole).
    `progress` is (done, total, unit, note) for the tool `progress`, else none. For a workflow's
    command `text` is its standard output alone; `errors` is its standard error, `is_cut` says that
    something is missing in the middle of `text`, and `missing` names declared files that it did not
    make. `pictures` go beside the text.
    """

    text: str
    spilled: str = ""
    progress: tuple[int, int, str, str] | None = None
    errors: str = ""
    is_cut: bool = False
    missing: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def end(self) -> CallEnd:
        """What is journalled of it."""
        return CallEnd(**{name: getattr(self, name) for name in CallEnd.__struct_fields__})


class ToolProgressed(Message):
    """A tool that runs says how far it is."""

    call: str
    done: int
    total: int
    unit: str = ""
    note: str = ""


class ToolFinished(Message):
    """A tool call is over and everything it started is dead, or listed in `survivors`."""

    turn: str
    epoch: int
    call: str
    result: ToolResult


class RestoreCounted(Message):
    """A revert is about to restore so many files."""

    id: str
    files: int


class RestoreEnded(Message):
    """A revert is over; `fault` says why nothing was changed, and is empty if all went well.

    `restored` are paths; one that ends in a slash is an empty folder that was made or removed again.
    `kept` are pairs of a path and why it stays as it is. `shared` changed while a command of the turn
    ran, `yours` went back to a person's own version. `notes` name what is not as it was before, or was
    not looked at. `is_original`: a look at the whole folder found nothing of the kind.
    """

    id: str
    fault: str = ""
    restored: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_original: bool = False


# External agents ----------------------------------------------------------------------------------
# `call` is the turn's call of `AGENT_TOOL`, `inner` a call of the agent within it.


AGENT_TOOL = "agent"
"""The tool of a session whose agent is another program."""


class AgentBound(Message):
    """The agent's own id of the session, under which it can be loaded again."""

    call: str
    session: str


class AgentSaid(Message):
    """A piece of its answer."""

    call: str
    text: str


class AgentCalled(Message):
    """It runs a tool of its own, or with `asks` wants to and waits for an answer."""

    call: str
    request: ToolRequest
    asks: bool = False


class AgentCallEnded(Message):
    """A tool of its own has ended: `status` is ok or failed."""

    call: str
    inner: str
    status: ToolStatus


class AnswerAgent(Value):
    """Tell the agent whether its call `inner` may run; or a tool what was filled in (`content`)."""

    turn: str
    epoch: int
    inner: str
    is_allowed: bool
    content: dict[str, Any] = field(default_factory=dict[str, Any])


def exit_words(code: int) -> str:
    """Say how a process ended: `exit 1`, or the signal's name in place of Python's negative number."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # one of the real-time signals
        return f"signal {-code}"


# Workflow runs ------------------------------------------------------------------------------------


class LookAfter(Value):
    """Look at what a step's commands have changed, once for all of its items.

    Harmless where none has begun.
    """

    turn: str
    step: str


class Reopen(Request):
    """A person says of work whose outcome is unknown that it is to be done again, or `is_done`.

    `work` are pairs of a step and an index.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    work: tuple[tuple[str, int], ...]
    is_done: bool = False


class TryAgain(Request):
    """A person says that a failed run goes on: its steps are made ready for another turn."""

    lane: ClassVar[Lane] = Lane.CONTROL


# Effects: what is asked of the ports once it is durable -------------------------------------------
# An actor never performs them. The session hands them to the effect executor after the entries that
# ask for them are durable, and only if `epoch` is still the turn's; results come back as messages.
# A model is asked while its entry is being made durable; what it says is told and acted upon after that.


class CallModel(Value):
    """Ask the turn's model; `messages` is the whole conversation, oldest first.

    `max_tokens` is how long the answer may get; none leaves it to the model. `unusable` names tools which
    would only be refused. For a summary `messages` is what is summed up, and the last one asks for it.
    """

    turn: str
    epoch: int
    step: int
    messages: Sequence[ChatMessage]
    max_tokens: int | None = None
    unusable: tuple[str, ...] = ()
    is_summary: bool = False


class RunTool(Value):
    """Start a tool call whose intent is durable.

    `path` is the resolved path that the call was allowed for. `is_again`: an earlier call of the turn
    with this tool and path failed. `step` is the step of a run that the command is part of: the folder is
    looked at before the first of them, and once more at `LookAfter`.
    """

    turn: str
    epoch: int
    call: str
    tool: str
    arguments: dict[str, Any]
    path: str = ""
    is_again: bool = False
    step: str = ""


class CancelModel(Value):
    """Close the model call of this turn at once. Harmless when none is open."""

    turn: str


class StopTool(Value):
    """Stop a tool call and everything it started; its result still comes."""

    turn: str
    epoch: int
    call: str


class RestoreFiles(Value):
    """Restore files; an order with the same `id` is carried out once.

    `scope`: `turn` restores what `turns` changed, `since` what one turn and all after it did, and with
    neither what the newest turn did that changed anything; `last` restores its last change only;
    `undo` takes back the last revert, of `paths` if any are named. `resumed` are pairs of a turn and
    the one that it goes on from: together they are one.
    """

    id: str
    scope: Literal["turn", "last", "undo"]
    turns: tuple[str, ...] = ()
    since: str = ""
    paths: tuple[str, ...] = ()
    resumed: tuple[tuple[str, str], ...] = ()
    force: bool = False
    is_dry_run: bool = False


PortEffect = (
    CallModel
    | RunTool
    | CancelModel
    | StopTool
    | AnswerAgent
    | OpenChild
    | CloseChild
    | SetTimer
    | RestoreFiles
    | GoalEffect
    | LookAfter
)
"""The effects of the ports."""

Effect = PortEffect | Delegate | Dismiss | StopChild | PassSteer
"""All effects, performed once they are durable; the last four by the child supervisor."""


def finished(
    effect: RunTool | StopTool | Delegate | Dismiss | StopChild, result: ToolResult
) -> ToolFinished:
    """Return the end of the call that an effect began, or was to begin or stop."""
    return ToolFinished(turn=effect.turn, epoch=effect.epoch, call=effect.call, result=result)


# Facts: shown, and not journalled -----------------------------------------------------------------


FULL_QUEUE = (
    "at most {} may wait (`auto_queue.max_queue_size`): `/queue pop N` or `/queue clear` makes room, "
    "`/queue steer N` hands one to the running turn"
)
"""Why a full queue rejects a message, given its limit, and what can be done."""
ANOTHER_CHAT = "`steersman chat` begins another session"
"""What can be done in place of a message to a finalized session."""
FINALIZED = f"the session is finalized; {ANOTHER_CHAT}"
"""Why a finalized session carries out no order."""
NOT_OPEN = "the session is not open: `steersman chat --resume {}` resumes it"
"""Why a session that no program runs carries out no order, given its id."""
RUN_NOT_OPEN = "the run is not open: `steersman run --resume {}` resumes it"
"""The same of a workflow's run."""
IN_RUN = "`/steer TEXT` tells its next agent, `steersman inspect {}` shows how far it is"
"""What can be done in place of a question beside the work to a run, given its session."""
ANOTHER_RUN = "`steersman run` starts a new run, `steersman sessions show {}` shows this one"
"""What can be done in place of a message to a run that has succeeded, given its session."""


class TextStreamed(Value):
    """A piece of the model's answer."""

    turn: str
    delta: str


class ThoughtStreamed(Value):
    """A piece of what the model thinks before it answers; no part of the conversation."""

    turn: str
    delta: str


class WindowFilled(Value):
    """An answer came: it and the conversation before it take `tokens` of the model's window of `size`."""

    turn: str
    tokens: int
    size: int


class Notice(Value):
    """A line for people; `seconds` until what it reports is over, 0 where that is not known.

    `ends_answer`: it is about the whole answer, which is complete.
    """

    text: str
    seconds: float = 0.0
    ends_answer: bool = False


class OutputShown(Value):
    """The last lines that a command has printed so far; its result has the whole."""

    turn: str
    call: str
    text: str


class MessageRejected(Value):
    """A message was not taken in; it goes back to the sender. `hint` is what can be done."""

    reason: str
    said: Said
    hint: str = ""


class MessageKnown(Value):
    """A message with this key came before: `id` is the item or receipt it got then."""

    id: str
    number: int | None
    client_id: str
    routed: Routed


class StoreLost(Value):
    """The journal cannot be written any more: nothing is accepted from here on."""

    code: str
    text: str
    hint: str


Fact = (
    TextStreamed
    | ThoughtStreamed
    | WindowFilled
    | Notice
    | OutputShown
    | MessageRejected
    | MessageKnown
    | StoreLost
)
