"""The entries of the journal: one immutable type per thing that happened, past tense.

An entry is decided by one actor and folded by every part of the record that it concerns (see
`record.py`). Each belongs to a family: the part of the record that folds a family handles each of its
entries, and passes over the families that do not concern it, so that the type checker names the place
that forgot a new entry. A new entry also goes into the union of its family, at the end.

`messages` is what an entry appends to the conversation, so a snapshot can name entries instead of
copying texts. In the store an entry is a JSON object with its `kind`; unknown fields of later versions
are ignored and missing ones take their defaults, so that old journals load.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import field

from ..machines import protocol as m
from ..machines.conversation import ChatMessage, Usage
from ..machines.policy import RoutesChoice
from ..machines.value import Value


class SessionEntry(Value):
    """Something about the session as a whole: its life, what people chose in it, stops."""


class QueueEntry(Value):
    """Something about the queue: its messages, until a turn takes them."""


class TurnEntry(Value):
    """Something about a turn, its model calls or its tool calls."""

    turn: str


class ChildEntry(Value):
    """Something about a child, in its parent's journal; the child has its own journal, too."""

    child: str


class GoalEntry(Value):
    """Something about a goal."""

    goal: str


class RevertEntry(Value):
    """Something about a revert, which restores files."""

    id: str


class RunEntry(Value):
    """Something about a workflow's run.

    `turn` is the turn of the session that the run is. `index` counts a step's items from 0; a step
    without `for_each` has one, number 0.
    """


class NoEvent(Value):
    """Mixed into entries that have no event of their own, but for that of the queue if they change it."""


class WorkflowCopy(Value):
    """The workflow of a run as it was when the run began, with the values of its variables.

    `file` is what it is called, `folder` where paths beside it begin, `source` its text.
    """

    name: str
    file: str
    folder: str
    source: str
    variables: dict[str, Any] = field(default_factory=dict[str, Any])


class WorkResult(Value):
    """The result of an attempt; `output` is its text, `more` the fields of its kind.

    `is_unanswered`: it is a question that nobody answered.
    """

    output: str = ""
    errors: str = ""
    exit_code: int | None = None
    reason: str = ""
    is_unanswered: bool = False
    more: dict[str, Any] = field(default_factory=dict[str, Any])


# Sessions -----------------------------------------------------------------------------------------


class SessionOpened(SessionEntry):
    """The first entry of every journal: what the model sees of it never changes after this.

    `messages` is what it has seen before its first word: a side talk its parent's conversation, a fork
    that of the session that it was `forked_from` (its id, and the entry), of which `turns` had been made:
    the fork's turns are numbered behind them, so that a call has one id. `workflow`: what the session
    runs, if it is a run. `asked_model` was asked for at its start, for all its agents; `model_name` is
    what the configuration calls the agent's own model, where it names one. `imported_from` is the name of
    the file that it came from: then `system` and `tools` are empty, and those of the agent hold.
    `replay_of`: up to an entry nothing was done, it was only decided again (`ID@ENTRY`). `news` is what
    the model has to know with its first message.
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
    turns: int = 0
    workflow: WorkflowCopy | None = None
    asked_model: str = ""
    model_name: str = ""
    imported_from: str = ""
    replay_of: str = ""
    news: str = ""


class SessionRenamed(SessionEntry, NoEvent):
    """A person named the session; an empty name removes the name."""

    name: str


class SessionResumed(SessionEntry):
    """A client opened the session again."""


class SessionLeaving(SessionEntry, NoEvent):
    """The program is ending; the work that `reaches` names is stopped first."""

    cause: str = "exit"
    reaches: tuple[str, ...] = ()


class SessionSuspended(SessionEntry):
    """The program has ended; the session can be resumed."""

    cause: str = "exit"


class SessionFinalizing(SessionEntry, NoEvent):
    """The session is to end permanently; the work that `reaches` names is stopped first."""

    cause: str
    reaches: tuple[str, ...] = ()


class SessionFinalized(SessionEntry):
    """The session has ended permanently; `finalize` is a stable id for hooks."""

    finalize: str
    cause: str


class Recovered(SessionEntry):
    """The process that owned the session died; its unfinished work was marked, and nothing runs.

    `messages` are results for the calls that ran; `found` are those of them whose tool told afterwards
    what became of them, the others' outcome is unknown. `last_active` is in seconds since 1970; `items`
    counts the items that wait or were interrupted.
    """

    cause: str
    items: int
    last_active: float
    messages: tuple[ChatMessage, ...] = ()
    found: tuple[str, ...] = ()


class PolicyChanged(SessionEntry):
    """A person changed how this session takes messages, its model, its permission mode or its holds.

    Empty fields stay as they were. `holds` are (tool, pattern): such calls wait for a person. `label` is
    what the model that answers is called, `system` and `tools` what fits it, where it is of another kind.
    """

    busy_mode: str = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None
    model: str = ""
    mode: str = ""
    holds: tuple[tuple[str, str], ...] | None = None
    label: str = ""
    system: str = ""
    tools: tuple[str, ...] | None = None
    user: str = ""


class AllowanceGiven(SessionEntry, NoEvent):
    """A person answered `always`: calls of `tool` that match `pattern` are not asked about again."""

    tool: str
    pattern: str
    user: str = ""


class AllowanceForgotten(SessionEntry, NoEvent):
    """A person took the permission back: such calls are asked about again."""

    tool: str
    pattern: str
    user: str = ""


class LimitsGranted(SessionEntry):
    """A person granted this session its limits once more; the use so far stays counted."""

    user: str = ""


class AgentSessionKnown(SessionEntry, NoEvent):
    """The agent's own id of this session: it is loaded under it when the agent is started again."""

    session: str


class HookRan(SessionEntry, NoEvent):
    """A hook of `event` ended: `status` is exited, timed_out, failed, killed, lost or skipped.

    `command` says which, `output` is the head and tail of what it printed, `seconds` how long it
    took. `about` is the number of the entry that it was called for, `finalize` the id of a session's
    end.
    """

    event: str
    command: str
    status: str
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""
    about: int = 0
    finalize: str = ""


class _Stop(SessionEntry):
    """A stop: `reaches` are the relations that the delivery table names for its cause.

    Of these `patient` stop at their own boundary. `spares` are children that go on all the same.
    """

    receipt: str
    turn: str
    order: m.StopOrder
    reaches: tuple[str, ...] = ()
    patient: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """The cause by which the delivery table was asked."""
        return self.order.cause


class InterruptPlanned(_Stop):
    """A stop was accepted that takes effect, under its receipt, when `tools` have ended."""

    tools: tuple[str, ...] = ()


class InterruptCalledOff(SessionEntry):
    """A planned stop was taken back before the tools that it waited for had ended."""

    receipt: str
    turn: str


class InterruptRequested(_Stop):
    """A stop was accepted; `receipt` is its id, and its order says why it is one."""


class StopNoted(SessionEntry, NoEvent):
    """A stop found nothing running: work that was ordered before it and has not begun does not begin."""

    order: m.StopOrder
    reaches: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """The cause by which the delivery table was asked."""
        return self.order.cause


# The queue ----------------------------------------------------------------------------------------


class Queued(QueueEntry):
    """A message was queued; from here on it is on disk.

    `position` counts from 1 among what waits. `past_hold`: it was said after what
    is held was, to a turn that runs, and runs behind that one. `for_children`: a steer for these;
    `child`: the result of that one. `goal`: the next turn of that one. `is_interrupted`: its turn in
    another session was interrupted at `progress`, which is {done, total, unit} or none.
    """

    item: str
    number: int
    said: m.Said
    routed: m.Routed = m.Routed()
    item_kind: m.ItemKind = m.ItemKind.MESSAGE
    is_next: bool = False
    for_turn: str = ""
    position: int = 1
    for_children: tuple[str, ...] = ()
    child: str = ""
    goal: str = ""
    past_hold: bool = False
    is_interrupted: bool = False
    progress: dict[str, Any] | None = None


class Requeued(QueueEntry):
    """A steer waits as a message of its own: no boundary took it in, or a person took it back.

    `is_offered`: it is a child's result, and never runs unasked. `past_hold` as for `Queued`.
    """

    item: str
    why: str
    is_offered: bool = False
    past_hold: bool = False


class Deferred(QueueEntry):
    """The model handed a steer back at (turn, step): it is queued again, as `new_item`.

    `position` counts from 1 among what waits; `past_hold` as for `Queued`.
    """

    item: str
    new_item: str
    number: int
    turn: str
    step: int
    why: str
    said: m.Said
    position: int = 1
    past_hold: bool = False


MOVED = "moved to session "
"""How it begins why an item is over that waits in another session now."""


class Withdrawn(QueueEntry, NoEvent):
    """A person took a message back. `children` have it as a steer, and give it back when they go on.

    `moved_to`: it is not gone, but in that session.
    """

    item: str
    children: tuple[str, ...] = ()
    moved_to: str = ""

    @property
    def why(self) -> str:
        """Why the message is over, if it is there elsewhere."""
        return f"{MOVED}{self.moved_to}" if self.moved_to else ""


class EditBegun(QueueEntry, NoEvent):
    """A person edits a message in the client `editor`: it does not start until that is over."""

    item: str
    editor: str


class EditEnded(QueueEntry, NoEvent):
    """The person left the edit, or the client is gone: the message waits as before."""

    item: str


class Edited(QueueEntry):
    """A person replaced the words of a queued message; an edit of it is over.

    `user` did that. A message whose words are replaced by somebody else is theirs from then on.
    """

    item: str
    said: m.Said
    user: str = ""


class Moved(QueueEntry, NoEvent):
    """A person moved a message in front of item `before`, or to the end if that is empty."""

    item: str
    before: str = ""


class SteerAddressed(QueueEntry, NoEvent):
    """A waiting message was handed to the running turn, or to children: it is a steer from here on."""

    item: str
    turn: str
    for_children: tuple[str, ...] = ()


class Steered(QueueEntry):
    """Waiting steers entered the context at (turn, step), as one user message, in order."""

    items: tuple[str, ...]
    turn: str
    step: int
    messages: tuple[ChatMessage, ...] = ()


class SteerArrived(QueueEntry):
    """A steer that was handed on entered a child's context, or (`turn` is empty) could not."""

    item: str
    child: str
    turn: str = ""
    step: int = 0


class Offered(QueueEntry):
    """A child's result, or a side talk's question, is listed in the queue; it never runs unasked."""

    item: str
    number: int
    said: m.Said
    child: str
    is_answered: bool = True


class OfferAnswered(QueueEntry, NoEvent):
    """The answer to a side talk is there."""

    item: str
    text: str


class OfferWanted(QueueEntry, NoEvent):
    """A person decided before the answer came what happens to it: steer or keep."""

    item: str
    wants: str


class Kept(QueueEntry, NoEvent):
    """A person keeps an offered result: it runs as a queued message. `past_hold` as for `Queued`."""

    item: str
    past_hold: bool = False


class QueueHeld(QueueEntry, NoEvent):
    """The queue is held until a person resumes it; `is_all`: also the message that was to run next.

    `only` names what is held, if that is not all that waits: the rest was said after it.
    """

    why: str = ""
    is_all: bool = False
    only: tuple[str, ...] = ()


class QueueReleased(QueueEntry, NoEvent):
    """The queue runs again, `items` first; `resumed` of them were interrupted."""

    resumed: int = 0
    items: tuple[str, ...] = ()


# Turns --------------------------------------------------------------------------------------------


class TurnStarted(TurnEntry):
    """An item's turn began; `resumes` names the interrupted turn that it goes on from.

    `ancestors` are the epochs of the session's ancestors under which it began, nearest first. `storage`
    names where its copies of files are from now on, if that is elsewhere than before.
    """

    item: str
    number: int
    epoch: int
    resumes: str = ""
    messages: tuple[ChatMessage, ...] = ()
    ancestors: tuple[int, ...] = ()
    storage: str = ""


class ModelCalled(TurnEntry, NoEvent):
    """The model is about to be called: at most once automatically for each (turn, step).

    `tokens` is what is sent, as estimated: so much counts as used if no answer ever comes.
    """

    step: int
    messages: tuple[ChatMessage, ...] = ()
    tokens: int = 0


class Answered(TurnEntry):
    """The model's whole answer; `messages` holds it."""

    step: int
    usage: Usage = field(default_factory=Usage)
    messages: tuple[ChatMessage, ...] = ()


class AnswerGrew(TurnEntry, NoEvent):
    """More of an answer that streams, so that a crash leaves it: `text` follows what was kept before."""

    step: int
    text: str


class AnswerCut(TurnEntry):
    """An answer was cut off so that a steer enters at once; `messages` holds what had come of it."""

    step: int
    messages: tuple[ChatMessage, ...] = ()


class ModelCallFailed(TurnEntry):
    """The model gave no answer."""

    step: int
    reason: str
    hint: str = ""


class QuestionAsked(TurnEntry):
    """A person is asked whether a tool call may run: by which rule, of which file, and why.

    `path` is the resolved path that it is about, if there is one; `is_outside`: it leads outside the
    session's folder. Without a `call` the question is whether the turn, whose model calls are used up,
    goes on. `is_hold`: the call is held, whether it is allowed or not.
    """

    call: str
    question: str
    tool: str
    arguments: dict[str, Any]
    rule: str = ""
    source: str = ""
    path: str = ""
    is_outside: bool = False
    why: str = ""
    is_hold: bool = False


class QuestionAnswered(TurnEntry):
    """The answer to a question; `withdrawn` if the turn ended first.

    `rule`: not a person has answered, but this permission rule or mode, which came to hold meanwhile.
    """

    question: str
    choice: str
    user: str = ""
    rule: str = ""


class ToolIntended(TurnEntry):
    """A tool call is about to start; durable before it does. `path` is what it was allowed for.

    `allowed_by` is the permission rule, or the mode, that allowed it: one that asks where no person need
    be asked. It is empty where a person was.
    `is_changed`: a person has put these arguments in the place of the model's.
    """

    step: int
    call: str
    tool: str
    arguments: dict[str, Any]
    is_idempotent: bool = False
    path: str = ""
    allowed_by: str = ""
    is_changed: bool = False


class ToolRefused(TurnEntry):
    """A tool call that never started: `status` is denied, failed (it made no sense) or skipped.

    `is_unanswered`: a person was to be asked about it, and none could be.
    """

    call: str
    tool: str
    status: str
    reason: str
    is_unanswered: bool = False
    messages: tuple[ChatMessage, ...] = ()


class ToolEnded(TurnEntry):
    """A tool call's result; everything it started is dead, or among the survivors."""

    call: str
    tool: str
    end: m.CallEnd
    messages: tuple[ChatMessage, ...] = ()


class NoProgress(TurnEntry):
    """A turn repeats itself: what, how often, and one line that shows it.

    `did` says what follows: `told` the model, `judged` (the turn of a goal ends, so that its judge
    looks), `asked` a person, `ended` the turn, or `cut` the answer off.
    """

    what: str
    count: int
    evidence: str
    did: Literal["told", "judged", "asked", "ended", "cut"]
    messages: tuple[ChatMessage, ...] = ()


class ClaimDoubted(TurnEntry):
    """The last answer claims what the facts of the turn contradict, and the model is told once."""

    fact: str
    messages: tuple[ChatMessage, ...] = ()


class CallReported(TurnEntry, NoEvent):
    """The agent reported that it uses a tool of its own, in call `within` of the turn."""

    step: int
    within: str
    call: str
    tool: str
    arguments: dict[str, Any]


class ProgressMade(TurnEntry):
    """How far the turn says it is: a checkpoint to resume from."""

    done: int
    total: int
    unit: str = ""
    note: str = ""


class LimitReached(TurnEntry):
    """A model call was not made because of a limit; `what` says which, and how much is used."""

    what: str
    hint: str = ""


class ModelAwaited(TurnEntry):
    """The model's provider takes no call until a time, in seconds since 1970: the turn waits for that."""

    step: int
    until: float
    reason: str


class ModelAskedAgain(TurnEntry, NoEvent):
    """The time has come: the turn goes on."""


class CompactionBegun(TurnEntry):
    """A summary is about to be asked for.

    `why` is asked (by a person), full, or refused (the server found the conversation too long).
    `tokens` is how many it takes of the window's `window`, 0 where that is not known. `dropped` oldest
    messages are to be summed up; `refusal` is what the server said.
    """

    step: int
    why: str
    tokens: int = 0
    window: int = 0
    dropped: int = 0
    refusal: str = ""


class Compacted(TurnEntry):
    """From here on the model sees `messages` instead of the `dropped` oldest ones.

    The originals stay in the entries that hold them. `how` is summary or pruned (the oldest results
    of tools were left out; `reason` says why there is no summary). `before` and `after` are tokens.
    """

    step: int
    dropped: int
    how: str
    summary: str = ""
    reason: str = ""
    before: int = 0
    after: int = 0
    left_out: int = 0
    usage: Usage = field(default_factory=Usage)
    messages: tuple[ChatMessage, ...] = ()


class Interrupted(TurnEntry):
    """The turn has ended: it takes no further step. `checkpoint` is {done, total, unit} or none.

    `is_replaced`: another message took its place.
    """

    cause: str
    checkpoint: Mapping[str, Any] | None = None
    messages: tuple[ChatMessage, ...] = ()
    is_replaced: bool = False


class Stopped(TurnEntry):
    """Every process that a stop reached has exited; `killed` and `survivors` are process ids.

    `turn` is empty where no turn was stopped: then `receipt` names the stop. `order` as for the stop.
    """

    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    order: int = 0
    receipt: str = ""


class TurnEnded(TurnEntry):
    """The turn ended without a stop: `status` is completed or failed, `reason` says why it failed.

    `is_unanswered`: the model gave no answer, and a person can have the turn go on.
    """

    status: str
    reason: str = ""
    hint: str = ""
    is_unanswered: bool = False
    messages: tuple[ChatMessage, ...] = ()


class LateResult(TurnEntry, NoEvent):
    """A result came after its turn had ended: its tokens are counted, the result is ignored."""

    what: str
    usage: Usage = field(default_factory=Usage)


# Children -----------------------------------------------------------------------------------------


class ChildStarted(ChildEntry):
    """A child was given a task: by tool call `call` of `turn`, or by a person, beside everything.

    `session` is the child's own id, `epoch` the parent's when it was ordered, and `above` those of the
    parent's ancestors, nearest first: a stop that is newer is the child's, too. `is_waiting`: as many as
    may work do. `item` is a side talk's place in the queue.
    `goal`: what it works for, beyond its first turn: text, gates, max_turns.
    """

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


class ChildAdmitted(ChildEntry, NoEvent):
    """A child that waited for a free place starts."""


class ChildCancelled(ChildEntry, NoEvent):
    """A child is to end, as `user` asked for; `is_kept`: it can be resumed together with its parent."""

    cause: str
    receipt: str = ""
    is_kept: bool = False
    user: str = ""


class ChildDetached(ChildEntry, NoEvent):
    """The turn that waited for a child ends without it: it works in the background from now on."""


class ChildInterrupted(ChildEntry):
    """A child and everything it started has stopped; it can be resumed."""

    why: str = ""
    text: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


class ChildResumed(ChildEntry):
    """An interrupted child goes on, for the turn that goes on; epochs as for `ChildStarted`."""

    turn: str = ""
    epoch: int = 0
    above: tuple[int, ...] = ()


class ChildEnded(ChildEntry):
    """A child is over: `status` is completed, cancelled, failed or disconnected; `text` what it had.

    `goes` is where its result goes, by the third routing table.
    """

    status: str
    text: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    goes: str = ""


# Goals --------------------------------------------------------------------------------------------


class GoalSet(GoalEntry):
    """A person set a goal; `is_next`: it begins after the goals before it.

    `gates` are commands that must succeed before a judge is asked. Budgets of none are no limit.
    `epoch` is the session's when it was said: a newer stop pauses the goal. `boundary` is the newest turn
    then, which is not judged.
    """

    text: str
    max_turns: int
    gates: tuple[tuple[str, ...], ...] = ()
    max_tokens: int | None = None
    max_seconds: float | None = None
    is_next: bool = False
    user: str = ""
    epoch: int = 0
    boundary: str = ""


class GoalBegun(GoalEntry):
    """The goals before this one are achieved, or a person wants it to begin; see `GoalSet`."""

    epoch: int = 0
    boundary: str = ""


class GoalTurnFailed(GoalEntry, NoEvent):
    """A turn of the goal ended without an answer that could be judged: `status` failed, interrupted."""

    turn: str
    status: str
    reason: str = ""


class JudgingBegun(GoalEntry, NoEvent):
    """Turn `turn` is a boundary: gates and judge look at it, once. `epoch` is the session's then."""

    turn: str
    epoch: int = 0


class JudgingStopped(GoalEntry, NoEvent):
    """A message or a stop came first, and nothing of the judging is left: there is no verdict."""

    turn: str
    why: str = ""
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


class GoalJudged(GoalEntry):
    """The verdict about turn `turn`: done, continue, wait or impossible.

    `by` is who says so: judge, gate (one that failed) or gates. `fault` says why there was none that
    could be used, which means continue. `answer` is a digest of what the agent said last; `is_idle`:
    the turn ran no tool; `is_unchanged`: no file has changed since the verdict before.
    """

    turn: str
    verdict: str
    reason: str = ""
    condition: dict[str, Any] | None = None
    by: str = "judge"
    fault: str = ""
    answer: str = ""
    is_idle: bool = False
    is_unchanged: bool = False
    gates: tuple[m.GateResult, ...] = ()
    usage: Usage = field(default_factory=Usage)


class GoalPaused(GoalEntry):
    """The goal waits until a person resumes it; `reason` says why."""

    reason: str
    detail: str = ""


class GoalResumed(GoalEntry):
    """A person resumed the goal, with a new budget: what was used before these totals does not count."""

    turns: int
    tokens: int = 0
    seconds: float = 0.0
    epoch: int = 0
    boundary: str = ""


class GoalWoken(GoalEntry):
    """The condition that the goal waited for was met, its time ran out, or a message came."""

    why: str = ""


class GoalCleared(GoalEntry):
    """The goal was dropped; `cause` is user, replaced or finalize."""

    cause: str = "user"


# Restored files -----------------------------------------------------------------------------------


class RevertAsked(RevertEntry, NoEvent):
    """A person wants files restored; see `RestoreFiles` for the fields.

    `turn` has to be over before the revert begins; it is empty if no turn runs.
    """

    scope: Literal["turn", "last", "undo"]
    turn: str = ""
    turns: tuple[str, ...] = ()
    since: str = ""
    paths: tuple[str, ...] = ()
    force: bool = False
    is_dry_run: bool = False
    user: str = ""


class RevertStarted(RevertEntry, NoEvent):
    """Nothing else changes files any more; the workspace works out what to restore."""


class RevertBegun(RevertEntry):
    """So many files are about to be restored."""

    files: int


class Reverted(RevertEntry):
    """Files were restored, or in a dry run would be; see `RestoreEnded` for the fields.

    `is_partial`: a revert was undone for some files only, and others of its turns stay as it left them.
    """

    scope: str
    is_dry_run: bool = False
    restored: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_original: bool = False
    is_partial: bool = False


class RevertRefused(RevertEntry):
    """Nothing was changed."""

    reason: str


# Workflow runs ------------------------------------------------------------------------------------


class StepStarted(RunEntry):
    """A step began, or goes on; `items` are given the first time, none without `for_each`."""

    turn: str
    step: str
    items: tuple[Any, ...] | None = None


class ItemStarted(RunEntry):
    """An attempt is about to begin; durable before it does. `call` is its name in this session.

    `attempt` counts from 1. `is_child`: a session does it, which can be taken up again. `is_told`: it
    gets what people have said to the run.
    """

    turn: str
    step: str
    index: int
    call: str
    attempt: int = 1
    is_child: bool = False
    is_told: bool = False


class ItemEnded(RunEntry):
    """How an attempt ended: `status` is ok, failed, retry (another follows), interrupted or unknown.

    `killed` and `survivors` are the processes of one that was interrupted. `user` is who answered a
    question, if that has a name.
    """

    turn: str
    step: str
    index: int
    status: str
    result: WorkResult = field(default_factory=WorkResult)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    user: str = ""


class ItemReopened(RunEntry, NoEvent):
    """Work waits again: its outcome is unknown, or the pause before its next attempt is over.

    `is_done`: its outcome was unknown, and it was found to be done.
    """

    step: str
    index: int
    is_done: bool = False


class StepAsked(RunEntry):
    """A step asks a person a question; `default` is the answer if none is given in time.

    `is_hold`: its work is held, and the question is whether it may begin.
    """

    turn: str
    step: str
    index: int
    question: str
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    is_hold: bool = False


class StepReleased(RunEntry, NoEvent):
    """A person, `user`, lets work begin that was held; `is_child` and `is_told` as for `ItemStarted`."""

    turn: str
    step: str
    index: int
    is_child: bool = False
    is_told: bool = False
    user: str = ""


class StepEnded(RunEntry):
    """A step has ended: `status` is done, failed, skipped or blocked."""

    turn: str
    step: str
    status: str
    reason: str = ""


class RunOverdue(RunEntry, NoEvent):
    """The run has worked for as long as its `timeout` allows: only its final steps may still begin."""

    turn: str


class StepReopened(RunEntry, NoEvent):
    """A failed run is tried again with this step: what failed of it, or, `is_anew`, all of it."""

    step: str
    is_anew: bool = False


AnySessionEntry = (
    SessionOpened
    | SessionRenamed
    | SessionResumed
    | SessionLeaving
    | SessionSuspended
    | SessionFinalizing
    | SessionFinalized
    | Recovered
    | PolicyChanged
    | AllowanceGiven
    | AllowanceForgotten
    | LimitsGranted
    | AgentSessionKnown
    | HookRan
    | InterruptPlanned
    | InterruptCalledOff
    | InterruptRequested
    | StopNoted
)
AnyQueueEntry = (
    Queued
    | Requeued
    | Deferred
    | Withdrawn
    | EditBegun
    | EditEnded
    | Edited
    | Moved
    | SteerAddressed
    | Steered
    | SteerArrived
    | Offered
    | OfferAnswered
    | OfferWanted
    | Kept
    | QueueHeld
    | QueueReleased
)
AnyTurnEntry = (
    TurnStarted
    | ModelCalled
    | Answered
    | AnswerGrew
    | AnswerCut
    | ModelCallFailed
    | QuestionAsked
    | QuestionAnswered
    | ToolIntended
    | ToolRefused
    | ToolEnded
    | CallReported
    | ProgressMade
    | NoProgress
    | ClaimDoubted
    | LimitReached
    | ModelAwaited
    | ModelAskedAgain
    | CompactionBegun
    | Compacted
    | Interrupted
    | Stopped
    | TurnEnded
    | LateResult
)
AnyChildEntry = (
    ChildStarted
    | ChildAdmitted
    | ChildCancelled
    | ChildDetached
    | ChildInterrupted
    | ChildResumed
    | ChildEnded
)
AnyGoalEntry = (
    GoalSet
    | GoalBegun
    | GoalTurnFailed
    | JudgingBegun
    | JudgingStopped
    | GoalJudged
    | GoalPaused
    | GoalResumed
    | GoalWoken
    | GoalCleared
)
AnyRevertEntry = RevertAsked | RevertStarted | RevertBegun | Reverted | RevertRefused
AnyRunEntry = (
    StepStarted
    | ItemStarted
    | ItemEnded
    | ItemReopened
    | StepAsked
    | StepReleased
    | StepEnded
    | RunOverdue
    | StepReopened
)
Entry = (
    AnySessionEntry
    | AnyQueueEntry
    | AnyTurnEntry
    | AnyChildEntry
    | AnyGoalEntry
    | AnyRevertEntry
    | AnyRunEntry
)
"""Any entry of a journal."""
