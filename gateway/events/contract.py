"""The event contract: every event that machine interfaces send, one JSON object each.

`event["type"]` names the event, and type checkers narrow the union `Event` by it: a key that an event
does not have, or a builder that leaves one out, fails `make check`. An event is a plain dictionary,
written as JSON in the order in which it was built. (40 TypedDicts take 2 ms at start; as many slotted
dataclasses would take 50.)

docs/events.md is written from this module: an event's docstring says when it is sent, the comment at a
field describes the field, and the text below a union is the introduction of its section.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, TypeGuard

# Common fields ------------------------------------------------------------------------------------


class Stamp(TypedDict):
    """The fields of every event, besides `type`."""

    seq: int | None  # number of its journal entry; null if it is not journalled
    time: str  # ISO 8601, UTC
    session: str  # the session that it is about
    parent: NotRequired[str]  # in a subagent's event: the session above `session`


# Objects within events ----------------------------------------------------------------------------


class Progress(TypedDict):
    """How far something is."""

    done: int  # units that are done
    total: int  # units in all
    unit: str  # what is counted, such as `files`; may be empty


class QueueItem(TypedDict):
    """A message of the queue."""

    id: str  # the item's id
    number: int  # the number that people use: `#3`
    state: str  # a state of the machine `item`, see [machines.md](machines.md)
    text: str  # the message
    progress: Progress | None  # what the turn that runs it, or ran it, has reported
    user: str  # who sent it; may be empty
    answer: NotRequired[str]  # what an offered item brings
    turn: NotRequired[str]  # id of the turn that a steer waits for
    children: NotRequired[list[str]]  # names of the subagents that a steer is for
    # what happens to an offered item once its answer is there: steer or keep
    wants: NotRequired[str]
    stopped: NotRequired[bool]  # true if its side talk was stopped; `/queue resume` continues that
    goal: NotRequired[str]  # id of the goal that it works for
    held: NotRequired[bool]  # true if it waits until a person resumes it
    next: NotRequired[bool]  # true if it was interrupted, and goes on after what runs
    edited: NotRequired[bool]  # true while a person edits it: until then it does not start
    # true if the files of its turn were taken back: `/queue resume` leaves it for others
    reverted: NotRequired[bool]


class ChangedItem(QueueItem):
    """A message of the queue that is new, or is not as it was."""

    place: int  # its place among all messages, from 1


class QueueView(TypedDict):
    """A queue: what has not ended, in order."""

    state: str  # open or held
    items: list[QueueItem]  # the messages, the next one first
    again: NotRequired[
        int
    ]  # the message that `/queue resume` runs first though another one replaced it
    children: NotRequired[list[str]]  # names of stopped subagents that `/queue resume` goes on with


class ToolCallView(TypedDict):
    """A tool call."""

    call: str  # the call's id, unique in its session
    tool: str  # the tool's name
    arguments: Mapping[str, Any]  # what it is called with


class SavedQueueView(TypedDict):
    """The queue of a session that no program has open."""

    session: str  # the session's id
    name: str  # its name, empty if a person gave none
    folder: str  # the folder that it works in
    cause: str  # why it is not open: crash or exit
    # the messages that have not ended, or whose turn another message replaced or no model answered
    items: list[QueueItem]
    # names of the subagents that worked beside the turns; `/queue resume` goes on with them, too
    children: NotRequired[list[str]]
    last_active: str  # ISO 8601, UTC
    unknown: list[ToolCallView]  # calls whose outcome is not known


class ProcessesView(TypedDict):
    """The outcome of stopping processes."""

    killed: list[int]  # pids that had to be killed
    survivors: list[int]  # pids that could not be killed


class Tokens(TypedDict):
    """Tokens, and what they cost."""

    input: int  # tokens read, cached ones included
    output: int  # tokens written, reasoning included
    cache_read: int  # tokens of `input` that came from the server's cache
    cache_write: int  # tokens of `input` that were written to the server's cache
    reasoning: int  # tokens of `output` that were thinking
    cost: float  # by the configured prices; 0 without prices


class TurnUsage(Tokens):
    """The usage of a turn."""

    seconds: float  # time from its start to its end


class GoalView(TypedDict):
    """A goal."""

    id: str  # the goal's id
    state: str  # a state of the machine `goal`, see [machines.md](machines.md)
    text: str  # what is to be reached
    turns_used: int  # turns of this grant that have ended
    turns_total: int  # turns of all grants
    max_turns: int  # turns of this grant
    # why it is in this state: user, interrupt, budget, no_progress, judge_unusable, gate_unusable
    # or failing
    reason: str | None
    detail: str | None  # more about the reason, or what is missing
    tokens: int  # tokens of all its turns
    max_tokens: int | None  # tokens of this grant; null without a limit


class GateOutcome(TypedDict):
    """A gate's command, and how it ended."""

    command: str  # the command
    passed: bool  # whether it succeeded
    exit_code: int | None  # its exit code; null if it was stopped or did not start


class VerdictView(TypedDict):
    """A verdict about a turn of a goal."""

    turn: str  # the turn that was judged
    verdict: str  # done, continue, wait or impossible
    reason: str  # why
    by: str  # judge, gate (one failed) or gates (all passed)
    usable: bool  # false if the judge gave no verdict that could be used, which counts as continue
    # what is waited for: `{"seconds": 30}`, `{"process": 4711}` or `{"file": "out.log"}`
    condition: Mapping[str, Any] | None


class NextGoal(TypedDict):
    """A goal that comes after the current one."""

    id: str  # the goal's id
    text: str  # what is to be reached


class GoalDetails(GoalView):
    """A goal with what it has spent, how it was judged, and what comes after it."""

    tokens_used: int  # tokens of this grant
    minutes_used: float  # minutes of this grant
    max_minutes: float | None  # minutes that this grant may take; null without a limit
    waiting_for: str | None  # what it waits for, in words
    seconds: float  # seconds of all its turns
    judging: bool  # whether a turn is being judged
    gates: list[GateOutcome]  # how its gates ended last
    verdict: VerdictView | None  # the last verdict
    next: list[NextGoal]  # the goals after it


class StepView(TypedDict):
    """A step of a workflow's run."""

    step: str  # the step's id
    # running, done, failed, skipped, blocked or interrupted; of an item also retrying or unknown
    state: str
    done: NotRequired[int]  # with `for_each`: items that are done
    failed: NotRequired[int]  # with `for_each`: items that failed
    total: NotRequired[int]  # with `for_each`: items in all
    exit_code: NotRequired[int]  # exit code of a command
    reason: NotRequired[str]  # why it failed, or did not run
    unanswered: NotRequired[bool]  # whether it is a question that nobody answered


class StepQuestionText(TypedDict):
    """The question of a step."""

    text: str  # the question


# The session --------------------------------------------------------------------------------------


class SessionStartedEvent(Stamp):
    """Sent when a session has begun, or was resumed."""

    type: Literal["session_started"]
    resumed: bool  # whether it was resumed
    folder: str  # the folder that it works in
    # the model that answers, for a client that attaches to a running session
    model: NotRequired[str]


class RecoveredEvent(Stamp):
    """Sent after `session_started` if messages wait or were interrupted; nothing runs automatically."""

    type: Literal["recovered"]
    cause: str  # crash or exit
    items: list[QueueItem]  # the messages that were found
    last_active: str  # ISO 8601, UTC
    unknown: list[ToolCallView]  # calls whose outcome is not known
    found: list[ToolCallView]  # calls of which the tool told afterwards what became of them


class SavedQueuesEvent(Stamp):
    """Sent after `session_started` of a new session if others left a queue in its folder."""

    type: Literal["saved_queues"]
    saved: list[SavedQueueView]  # the newest of them, at most five
    more: NotRequired[bool]  # true if there are more than these


class NoticeEvent(Stamp):
    """Sent to tell a person something; programs need not read it."""

    type: Literal["notice"]
    text: str  # one or more lines
    # how long something is waited for (a rate limit, an overloaded server), from `time` on
    seconds: NotRequired[float]
    ends_answer: NotRequired[bool]  # true if it is about the model's answer, which is complete
    client_id: NotRequired[str]  # on a line that another terminal sent: its key


class ErrorEvent(Stamp):
    """Sent when something failed."""

    type: Literal["error"]
    # for example `model_failed`, `turn_failed`, `bad_line`, `store_failed`, or `limit_reached`: the
    # turn is then interrupted, cause `budget`
    code: str
    text: str  # what happened
    hint: str  # the next step; may be empty
    client_id: NotRequired[str]  # the key of the input line that it is about


class QueueEvent(Stamp):
    """Sent after each change of the queue: with all its messages, or of a long one with the change.

    In a queue of more than 50 messages an event has `changed` and `removed` in place of `items`, unless
    all may have changed: take out what is in either, then put each of `changed` at its place, in their
    order. `/queue` gives the whole at any time.
    """

    type: Literal["queue"]
    state: str  # open or held
    count: int  # how many messages the queue has
    items: NotRequired[list[QueueItem]]  # all messages, the next one first
    changed: NotRequired[list[ChangedItem]]  # the messages that are new, or are not as they were
    removed: NotRequired[list[str]]  # ids of the messages that have ended
    # with `items`, if there are any: with how much beside them `/queue resume` can go on, messages whose
    # turn another one replaced or the model did not answer, and subagents of the background
    resumable: NotRequired[int]
    again: NotRequired[int]  # with `items`: of those the message that `/queue resume` runs first
    children: NotRequired[list[str]]  # with `items`: of those the subagents, by name


class CompactedEvent(Stamp):
    """Sent when older turns were summed up to make room in the model's window."""

    type: Literal["compacted"]
    turn: str  # the turn that needed the room; empty between turns
    how: str  # summary, or pruned: the oldest tool results were left out
    dropped: int  # messages that the summary replaces
    before: int  # tokens before, estimated
    after: int  # tokens after, estimated
    summary: str | None  # the summary
    # why there is no summary; none where the room that old results took was enough
    reason: str | None


class RevertedEvent(Stamp):
    """Sent when a revert is done; `restored` and `kept` may both be empty."""

    type: Literal["reverted"]
    id: str  # the revert's id
    scope: str  # turn, last or undo
    turns: list[str]  # the turns whose changes were reverted, or were to be
    restored: list[str]  # paths that were restored; of an empty folder, with a slash at its end
    kept: list[str]  # paths that were left as they are
    why: dict[str, str]  # the reason for each path in `kept`
    # paths that changed while a command ran; of an undo, those that are a person's now
    shared: list[str]
    yours: list[str]  # paths that are back to a person's own version
    notes: list[str]  # what is not as it was before, or was not looked at
    original: bool  # whether a look at the whole folder found all as it was before
    user: NotRequired[str]  # who asked for it, if a name is known


class ModeEvent(Stamp):
    """Sent when a person chose another permission mode, and after `session_started` if one was chosen."""

    type: Literal["mode"]
    mode: str  # ask, edits, plan or all


class OwnCommandEvent(Stamp):
    """Sent when a person's own command (`!COMMAND`) begins, while it prints, and when it has ended.

    No model sees it. Everything that it started has ended with it, except for `survivors`.
    """

    type: Literal["own_command"]
    id: str  # `!1`, `!2`, …, in the session's order
    command: str  # the command line
    state: str  # running, or how it ended: exited, killed, failed or lost
    output: str  # what it printed since the event before
    exit_code: int | None  # its exit code, once it exited
    killed: list[int]  # process ids that were ended with it
    survivors: list[int]  # process ids that could not be ended


class SessionReplacedEvent(Stamp):
    """Sent when the program goes on in another session, as by `/edit-last`, and leaves this one."""

    type: Literal["session_replaced"]
    by: str  # the other session


class SessionSuspendedEvent(Stamp):
    """Sent when the session was saved and left; it can be resumed."""

    type: Literal["session_suspended"]


class SessionFinalizedEvent(Stamp):
    """Sent when the session has been finalized."""

    type: Literal["session_finalized"]
    id: str  # id of this end; `session_finalize` hooks get the same
    cause: str  # why it ended


SessionEvent = (
    SessionStartedEvent
    | RecoveredEvent
    | SavedQueuesEvent
    | NoticeEvent
    | ErrorEvent
    | QueueEvent
    | CompactedEvent
    | RevertedEvent
    | ModeEvent
    | OwnCommandEvent
    | SessionReplacedEvent
    | SessionSuspendedEvent
    | SessionFinalizedEvent
)
"""The session as a whole."""

# Messages -----------------------------------------------------------------------------------------

_TakenAs = TypedDict("_TakenAs", {"as": str})  # `as` is no name in Python
"""what it was accepted as: turn, queue, steer, interrupt, side_talk, command, or posted: it is in the
mailbox, and the session's next owner decides"""


class AcceptedEvent(_TakenAs, Stamp):
    """Sent when a message was accepted."""

    type: Literal["accepted"]
    id: str  # id of the queue item, or of the receipt
    number: int | None  # the item's number; null if it is not queued
    position: int | None  # its place among the messages that wait, from 1
    client_id: str | None  # the key that the sender gave
    matched: str | None  # the word that decided
    rule: str | None  # the routing row that decided
    ack: str | None  # the row's acknowledgement, see [routing.md](routing.md)
    text: str  # the message
    user: NotRequired[str]  # who sent it, if a name is known
    children: NotRequired[list[str]]  # names of the subagents that it steers
    # the number of the message whose turn it stops; `/queue resume N` brings that back
    replaces: NotRequired[int]
    # the numbers of the steers for that turn that it did not take in: they come back with it
    replaces_steers: NotRequired[list[int]]
    # the acknowledgement in words; absent for a command and for a side talk
    ack_text: NotRequired[str | None]


class RejectedEvent(Stamp):
    """Sent when a message was not accepted. Nothing of it is kept."""

    type: Literal["rejected"]
    reason: str  # why, in a word: `empty`, `queue_full`, `unknown_command`, …
    text: str  # the message
    client_id: str | None  # the key that the sender gave
    hint: NotRequired[str]  # the next step


class ResultEvent(Stamp):
    """Sent as the one answer to a slash command."""

    type: Literal["result"]
    id: str  # the `id` of the command's `accepted`
    client_id: str | None  # the key that the sender gave
    name: str  # the command: `queue`, `goal`, …
    ok: bool  # whether it was carried out
    data: dict[str, Any]  # what the command prints with `--json`
    text: str  # the answer in words
    news: NotRequired[str]  # what others who follow the session need to know of it


class SteeredEvent(Stamp):
    """Sent when a steer has entered a turn."""

    type: Literal["steered"]
    id: str  # id of the queue item
    number: int | None  # number of the item
    text: str  # the message
    turn: str  # the turn that it entered
    step: int  # the model call that reads it first
    child: NotRequired[str]  # the subagent that received it: `turn` and `step` are the subagent's


class RequeuedEvent(Stamp):
    """Sent when a steer did not enter its turn and waits again."""

    type: Literal["requeued"]
    id: str  # id of the queue item
    why: str  # the reason
    # the item that waits now: the same, or a new one if the agent handed it back with `defer`
    item: str
    number: int  # number of `item`


class PermissionQuestionEvent(Stamp):
    """Sent when a tool call needs a permission. The turn waits; an interrupt withdraws the question."""

    type: Literal["question"]
    id: str  # what an answer refers to
    # hold: the call waits for a person, allowed or not; form: an MCP server asks, within a call
    kind: Literal["permission", "hold", "form"]
    tool: str  # the tool's name
    arguments: Mapping[str, Any]  # what it would be called with
    # allow, always, deny; of a hold allow, change, answer, deny; of a form answer, deny
    options: list[str]
    rule: str | None  # the permission rule that asks
    source: str | None  # the file of the rule
    outside: bool  # whether the call leaves the session's folder
    why: str | None  # why it is asked about, if a rule seems to allow it


class StepQuestionEvent(Stamp):
    """Sent when a workflow's step asks a person. Answered by `{"answer": ID, "choice": TEXT}`."""

    type: Literal["question"]
    id: str  # what an answer refers to
    kind: Literal["ask"]  # tells it from a question about a tool call
    tool: Literal["ask"]  # always the same: no tool is called
    step: str  # the step that asks
    arguments: StepQuestionText  # the question
    options: list[str]  # the answers to choose from; may be empty
    default: str | None  # the answer if no person answers
    index: NotRequired[int]  # the place of the item that asks, from 0, if the step has `for_each`


QuestionEvent = PermissionQuestionEvent | StepQuestionEvent


class AnsweredEvent(Stamp):
    """Sent when a permission's question is closed. A step's question ends with its `step` event."""

    type: Literal["answered"]
    id: str  # the question
    turn: str  # the turn that asked
    choice: str  # allow, always or deny; withdrawn if the turn was stopped first
    user: NotRequired[str]  # who answered it, if a name is known
    rule: NotRequired[str]  # the permission rule or mode that did in a person's place


MessageEvent = (
    AcceptedEvent
    | RejectedEvent
    | ResultEvent
    | SteeredEvent
    | RequeuedEvent
    | QuestionEvent
    | AnsweredEvent
)
"""Messages, commands and answers. A message is either `accepted` or `rejected`; a command is
`accepted`, then has one `result`."""

# Turns --------------------------------------------------------------------------------------------


class TurnStartedEvent(Stamp):
    """Sent when a turn begins."""

    type: Literal["turn_started"]
    turn: str  # the turn
    item: str  # id of the queue item that it runs
    number: int  # number of the item
    # seconds since it began, for a client that attaches to a running session
    elapsed: NotRequired[float]


class TextEvent(Stamp):
    """Sent for each piece of the model's answer."""

    type: Literal["text"]
    turn: str  # the turn
    delta: str  # the piece
    # true for the first one that a client gets who joins while an answer streams: it is all that
    # came before, and takes the place of what the client has of this answer
    so_far: NotRequired[bool]


class AnswerEvent(Stamp):
    """Sent when an answer with text is whole: the pieces of it (`text`) are not in the journal."""

    type: Literal["answer"]
    turn: str  # the turn
    step: int  # the step of the turn
    text: str  # the whole answer


class ThinkingEvent(Stamp):
    """Sent for each piece of what the model thinks before it answers; no part of the conversation."""

    type: Literal["thinking"]
    turn: str  # the turn
    delta: str  # the piece


class WindowEvent(Stamp):
    """Sent after each answer of a model whose window is known: how full it is."""

    type: Literal["window"]
    turn: str  # the turn
    tokens: int  # what the conversation takes, with this answer
    size: int  # what the window holds, in tokens


class ToolStartedEvent(ToolCallView, Stamp):
    """Sent when a tool call begins."""

    type: Literal["tool_started"]
    turn: str  # the turn
    # seconds since it began, for a client that attaches to a running session
    elapsed: NotRequired[float]


class OutputEvent(Stamp):
    """Sent while a command runs for longer than half a second; at most four times a second."""

    type: Literal["output"]
    turn: str  # the turn
    call: str  # the call
    text: str  # the last lines that it has printed, at most 10


class ToolEndedEvent(Stamp):
    """Sent when a tool call has ended, or was not run."""

    type: Literal["tool_ended"]
    turn: str  # the turn
    call: str  # the call
    tool: str  # the tool's name
    status: str  # ok, failed, timed_out, killed, denied or skipped
    exit_code: int | None  # exit code of a command
    bytes: int  # size of the whole output, in bytes
    lines: int  # lines that the model reads
    output: str  # what the model reads; of more than 16,000 characters the beginning and the end
    reason: NotRequired[str]  # why it was not run
    arguments: NotRequired[Mapping[str, Any]]  # its arguments, if it was not run
    unanswered: NotRequired[bool]  # whether a person was to be asked, and none could be


class ProgressEvent(Progress, Stamp):
    """Sent when the agent reports progress."""

    type: Literal["progress"]
    turn: str  # the turn


class NoProgressEvent(Stamp):
    """Sent when a turn repeats itself."""

    type: Literal["no_progress"]
    turn: str  # the turn
    # calls (one step again and again), cycle (several in turn), errors (failures of one kind in a
    # row), or text (an answer that repeats itself)
    kind: str
    streak: int  # how often
    evidence: str  # the newest call and its result, on one line
    # told (the model), judged (the turn of a goal ends, and its judge looks), asked (a person),
    # ended (the turn), or cut (the answer)
    did: str


class InterruptingEvent(Stamp):
    """Sent when an interrupt was accepted."""

    type: Literal["interrupting"]
    turn: str | None  # the turn that is stopped; null between turns
    cause: str  # why
    user: NotRequired[str]  # who stopped it, if a name is known
    # the subagents that go on in the background, as their agents are declared
    spared: NotRequired[list[str]]


class InterruptedEvent(Stamp):
    """Sent when the turn has ended by an interrupt."""

    type: Literal["interrupted"]
    turn: str  # the turn
    cause: str  # why
    checkpoint: Progress | None  # the progress that was saved
    # the number with which `/queue resume` continues it, if a message takes its place
    replaced: NotRequired[int]


class FileFacts(TypedDict):
    """A file that a turn changed."""

    path: str  # relative to the session's folder
    added: int  # lines
    removed: int  # lines
    new: bool  # whether it was made


class FactsView(TypedDict):
    """What a turn did."""

    changed: list[FileFacts]  # the files that its calls are known to have changed
    all: bool  # whether these are all: nothing else ran that may change files
    command: str | None  # the last command
    exit_code: int | None  # its exit code
    text: str  # the same as a line for people; may be empty


class TurnEndedEvent(Stamp):
    """Sent when a turn has ended."""

    type: Literal["turn_ended"]
    turn: str  # the turn
    item: str  # id of the queue item that it ran
    status: str  # completed, interrupted or failed
    usage: TurnUsage  # what it used
    reason: NotRequired[str]  # why it failed, or `no_progress`
    resumable: NotRequired[int]  # its message, by number, where `/queue resume` goes on with it
    facts: NotRequired[FactsView]  # what it did, if it made calls


class StoppedEvent(ProcessesView, Stamp):
    """Sent when every process that a stopped turn started has exited."""

    type: Literal["stopped"]
    turn: str | None  # the turn; null between turns


TurnEvent = (
    TurnStartedEvent
    | TextEvent
    | AnswerEvent
    | ThinkingEvent
    | WindowEvent
    | ToolStartedEvent
    | OutputEvent
    | ToolEndedEvent
    | ProgressEvent
    | NoProgressEvent
    | InterruptingEvent
    | InterruptedEvent
    | TurnEndedEvent
    | StoppedEvent
)
"""Turns and tool calls. The events of an interrupt come in this order: `accepted`, `interrupting`,
`interrupted`, `turn_ended`, `stopped`."""

# Goals and subagents ------------------------------------------------------------------------------


class GoalEvent(GoalView, Stamp):
    """Sent after each change of a goal, and when one of its turns has ended."""

    type: Literal["goal"]


class GoalStatusEvent(GoalDetails, Stamp):
    """Sent to a client that attaches, if there is a goal that is not over."""

    type: Literal["goal"]


class VerdictEvent(VerdictView, Stamp):
    """Sent when a turn of a goal was judged."""

    type: Literal["verdict"]


class ChildStartedEvent(Stamp):
    """Sent when a subagent begins, or goes on: then with `name`, `task`, `id` and `resumed` alone."""

    type: Literal["child_started"]
    name: str  # the subagent's name
    task: str  # its task
    id: NotRequired[str]  # its session
    agent: NotRequired[str]  # its agent
    relation: NotRequired[str]  # foreground_child, background_child or side_talk
    waiting: NotRequired[bool]  # whether it waits for a place
    resumed: NotRequired[bool]  # true if it goes on


class ChildEndedEvent(ProcessesView, Stamp):
    """Sent when a subagent has ended, or was interrupted together with its parent."""

    type: Literal["child_ended"]
    name: str  # the subagent's name
    status: str  # completed, failed or cancelled
    reason: NotRequired[str]  # why
    # true if it was interrupted together with its parent and can go on
    resumable: NotRequired[bool]


class SideTalkEndedEvent(Stamp):
    """Sent when a side talk has ended; its answer is offered in the queue."""

    type: Literal["side_talk_ended"]
    name: str  # the side talk's name
    item: str  # id of the queue item that holds the answer
    number: int | None  # number of the item
    status: str  # completed, failed or cancelled
    text: str  # the answer
    resumable: NotRequired[bool]  # true if it was stopped and can go on


GoalAndChildEvent = (
    GoalEvent
    | GoalStatusEvent
    | VerdictEvent
    | ChildStartedEvent
    | ChildEndedEvent
    | SideTalkEndedEvent
)
"""Goals ([goals.md](goals.md)) and subagents ([delegation.md](delegation.md)). A subagent's own events
come in the same stream, with its own `session` and with `parent`."""

# Workflows ----------------------------------------------------------------------------------------


class RunStartedEvent(Stamp):
    """Sent when a run begins, or goes on."""

    type: Literal["run_started"]
    run: str  # the run's session
    workflow: str  # the workflow's name
    resumed: bool  # whether it goes on


class StepEvent(StepView, Stamp):
    """Sent when a step changes its state; with `for_each` also when an item does."""

    type: Literal["step"]
    item: NotRequired[Any]  # the item, if it is about one
    index: NotRequired[int]  # the item's place, from 0
    attempt: NotRequired[int]  # number of the item's attempt, from the second on


class RunEndedEvent(Stamp):
    """Sent when a run has ended."""

    type: Literal["run_ended"]
    run: str  # the run's session
    status: str  # succeeded, failed or interrupted
    steps: list[StepView]  # the steps that began or ended
    reason: NotRequired[str]  # why it failed
    output: NotRequired[str]  # the workflow's output, if it has one and the run succeeded


class ChangedEvent(Stamp):
    """Sent last by `steersman run --json`."""

    type: Literal["changed"]
    files: list[str]  # paths that the run has changed, over all its turns


RunEvent = RunStartedEvent | StepEvent | RunEndedEvent | ChangedEvent
"""`steersman run --json` sends these besides the events of the run's session and of its agents. A
workflow that is a step of another one is a run of its own: its events have their own `session`, and
`parent`. Lines of standard input are messages to the run; the end of input ends nothing, but questions
then stay unanswered."""

Event = SessionEvent | MessageEvent | TurnEvent | GoalAndChildEvent | RunEvent


ReceiptEvent = AcceptedEvent | RejectedEvent | ResultEvent


def notice(at: Stamp, text: str) -> NoticeEvent:
    """Return the event that tells a person something."""
    return NoticeEvent(type="notice", **at, text=text)


def is_receipt(event: Event, client_id: str) -> TypeGuard[ReceiptEvent]:
    """Whether an event is the answer to the message with this key; a command's is its `result`."""
    match event["type"]:
        case "accepted":
            return event["client_id"] == client_id and event["as"] != "command"
        case "rejected" | "result":
            return event["client_id"] == client_id
        case _:
            return False


def is_aside(event: Event) -> bool:
    """Whether an event is a subagent's own, which a screen leaves out; its questions are not."""
    return "parent" in event and event["type"] != "question"


def items_after(items: Sequence[QueueItem], event: QueueEvent) -> list[QueueItem]:
    """Return the messages of a queue after an event, from those before it."""
    if "items" in event:
        return event["items"]
    changed = event.get("changed", [])
    gone = {*event.get("removed", ()), *(item["id"] for item in changed)}
    there = [item for item in items if item["id"] not in gone]
    for item in changed:
        there.insert(item["place"] - 1, item)
    return there


def has_left(event: QueueEvent, item: str) -> bool:
    """Whether an event shows that a message is not in the queue any more."""
    if "items" in event:
        return all(row["id"] != item for row in event["items"])
    return item in event.get("removed", ())
