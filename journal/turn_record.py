"""The state of a turn and of its calls as data, and how entries move them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, assert_never

from msgspec import field
from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.conversation import Usage
from ..machines.lifecycles import CALL, TURN
from ..machines.progress import CallOutcome, TurnProgress, after_step, outcome
from ..machines.value import Value
from . import entries as e
from .fold import EntryKinds, moved
from .turn_facts import TurnFacts

EVENT_OF_STATUS = {"ok": "succeed", "failed": "fail", "timed_out": "time_out", "killed": "kill"}
EVENT_OF_REFUSAL = {"denied": "deny", "failed": "reject", "skipped": "stop"}
CALL_ENDS = CALL.final
TURN_ENDS = TURN.final
CONTINUE = "continue"
"""What is asked about in place of a tool when the model calls of a turn are used up."""
GOES_ON = ("allow", "always")
"""The answers with which a paused turn goes on."""
FOR_GOOD = 1 << 40
"""Model calls: more than a turn ever makes."""


class CallRecord(Value):
    """One tool call of the turn that runs, or ran last."""

    id: str
    """Its name in the session."""
    tool: str
    """The tool."""
    arguments: Mapping[str, Any]
    """Its arguments, as they were read."""
    state: str = "requested"
    """A state of the call machine."""
    step: int = 0
    """The step of the turn that asked for it."""
    fault: str = ""
    """What is wrong with its arguments."""
    within: str = ""
    """The call of the agent that makes it, where that is another program."""
    question: str = ""
    """The question about it, if one was asked."""
    asked: e.QuestionAsked | None = None
    """That question with its rule and its path, as those hear it who come later."""
    is_changed: bool = False
    """Whether a person has changed its arguments."""
    end: m.CallEnd | None = None
    """How it ended."""
    since: float = 0.0
    """When it came into its state, in seconds since 1970."""
    outcome: CallOutcome | None = None
    """What the progress guard needs of it, until its step is over."""

    @property
    def is_hold(self) -> bool:
        """Whether it was asked about because it is held."""
        return self.asked is not None and self.asked.is_hold


class TurnRecord(Value):
    """One turn."""

    id: str
    """Its name: `t1`, `t2`, …"""
    item: str
    """The item of the queue that it runs."""
    number: int
    """The number of that item."""
    state: str = "boundary"
    """A state of the turn machine."""
    step: int = 0
    """Its newest model call, counted from 1."""
    started: float = 0.0
    """When it began, in seconds since 1970."""
    ended: float = 0.0
    """When it ended."""
    since: float = 0.0
    """When it came into its state."""
    resumes: str = ""
    """The interrupted turn that it goes on from."""
    cause: str = ""
    """What stopped it."""
    reason: str = ""
    """Why it failed, or the limit at which it was stopped."""
    is_over: bool = False
    """It has ended, and everything that it started is dead."""
    epoch: int = 0
    """The session's epoch when it began."""
    ancestors: tuple[int, ...] = ()
    """Those of the session's ancestors, nearest first."""
    is_closing: bool = False
    """The last answer asked for no tool."""
    said: str = ""
    """What has come of an answer that streams, as far as it was kept."""
    was_cut: bool = False
    """The last answer was cut off for a steer."""
    is_spent: bool = False
    """A limit is reached, or the model failed; that was reported, and the turn is to be stopped."""
    compacted_at: int = -1
    """The step after which older turns were summed up last; -1: none."""
    dropped: int = 0
    """How many messages that concerned."""
    refusal: str = ""
    """What the server said of their length."""
    question: str = ""
    """The question whether it goes on, while it is paused."""
    until: float = 0.0
    """When it asks its model again, in seconds since 1970, if it waits for its provider."""
    wait: float = 0.0
    """How long that was to be, in seconds."""
    granted: int = 0
    """Model calls that a person granted beyond the limit."""
    usage: Usage = field(default_factory=Usage)
    """What its model calls took."""
    sent: int = 0
    """Tokens of a call that is not answered."""
    progress: TurnProgress = field(default_factory=TurnProgress)
    """What the progress guard has seen."""
    facts: TurnFacts = field(default_factory=TurnFacts)
    """What it did, as it is told at its end."""
    calls: Mapping[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    """Its tool calls, by name; of the newest turn only."""


_Folded = e.AnyTurnEntry | e.Steered
_FOLDED = EntryKinds[_Folded](_Folded)


def apply_to_turn(turn: TurnRecord, entry: e.Entry, time: float) -> TurnRecord:
    """Return the turn that an entry names after it; how a turn ends is the session's.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    if not _FOLDED.include(entry):
        return turn
    match entry:
        case e.ModelCalled():
            begun: dict[str, Any] = {"step": entry.step, "sent": entry.tokens, "said": ""}
            return move_turn(turn, "proceed", time, is_closing=False, was_cut=False, **begun)
        case e.Answered():
            return _take_answer(turn, entry, time)
        case e.QuestionAsked(call=""):
            return move_turn(turn, "pause", time, question=entry.question)
        case e.QuestionAnswered() if entry.question == turn.question and turn.state == "paused":
            return _unpause(turn, entry, time)
        case e.QuestionAsked() | e.ToolIntended() | e.ToolRefused() | e.ToolEnded():
            return _apply_to_call(turn, turn.calls[entry.call], entry, time)
        case e.CallReported():
            within: dict[str, Any] = {"step": entry.step, "within": entry.within}
            call = CallRecord(id=entry.call, tool=entry.tool, arguments=entry.arguments, **within)
            return replace(turn, calls={**turn.calls, call.id: call})
        case e.AnswerGrew():
            return replace(turn, said=turn.said + entry.text)
        case e.AnswerCut():
            return move_turn(turn, "cut", time, sent=0, was_cut=True)
        case e.Steered():
            fresh = TurnProgress(is_off=turn.progress.is_off)
            return replace(turn, is_closing=False, was_cut=False, progress=fresh)
        case e.LimitReached():
            return replace(turn, is_spent=True, reason=f"a limit is reached, {entry.what}")
        case e.NoProgress(did="ended"):
            return replace(turn, is_spent=True)
        case e.ClaimDoubted():
            facts = replace(turn.facts, is_told=True)
            return replace(turn, is_closing=False, facts=facts)
        case e.NoProgress(did=did):
            progress = replace(turn.progress, is_told=True, is_asked=did == "asked")
            return replace(turn, progress=progress)
        case e.ModelCallFailed():
            over: dict[str, Any] = {"reason": entry.reason, "sent": 0, "is_spent": True}
            return move_turn(turn, "model_failed", time, **over)
        case e.ModelAwaited():
            wait = entry.until - time
            return move_turn(turn, "wait", time, sent=0, until=entry.until, wait=wait)
        case e.ModelAskedAgain():
            return move_turn(turn, "ask_again", time, until=0.0)
        case e.CompactionBegun():
            event = "overflow" if turn.state == "calling" else "compact"
            return move_turn(
                turn,
                event,
                time,
                since=time,
                sent=entry.tokens,
                compacted_at=entry.step,
                dropped=entry.dropped,
                refusal=entry.refusal,
            )
        case e.Compacted():
            usage = turn.usage + entry.usage
            return move_turn(turn, "compacted", time, since=time, usage=usage, sent=0)
        case e.TurnStarted() | e.Interrupted() | e.Stopped() | e.TurnEnded():
            return turn  # a turn begins and ends with its session: see `record.py`
        case e.QuestionAnswered() | e.ProgressMade() | e.LateResult():
            return turn
        case _:
            assert_never(entry)


def move_turn(
    turn: TurnRecord,
    event: str,
    time: float,
    facts: frozenset[str] = frozenset(),
    **changes: Any,
) -> TurnRecord:
    """Return a turn after an event. Raises `StoreDamaged` when its machine refuses."""
    state = moved(TURN, turn.state, event, facts)
    if state != turn.state:
        changes["since"] = time
    return replace(turn, state=state, **changes)


def _unpause(turn: TurnRecord, entry: e.QuestionAnswered, time: float) -> TurnRecord:
    """Let a turn go on, if it may: for as many model calls again, or without a limit."""
    if entry.choice not in GOES_ON:
        return replace(turn, question="")
    if turn.progress.is_asked:
        progress = TurnProgress(is_off=entry.choice == "always")
        return move_turn(turn, "go_on", time, question="", progress=progress)
    granted = FOR_GOOD if entry.choice == "always" else turn.step
    return move_turn(turn, "go_on", time, question="", granted=granted)


def _take_answer(turn: TurnRecord, entry: e.Answered, time: float) -> TurnRecord:
    requests = entry.messages[0].tool_calls if entry.messages else ()
    calls = dict(turn.calls)
    for request in requests:
        calls[request.call] = CallRecord(
            id=request.call,
            tool=request.tool,
            arguments=request.arguments,
            step=entry.step,
            fault=request.fault,
        )
    facts = frozenset({"has_calls"} if requests else ())
    usage = turn.usage + entry.usage
    changes: dict[str, Any] = {"said": "", "sent": 0, "is_closing": not requests}
    return move_turn(turn, "answer", time, facts, usage=usage, calls=calls, **changes)


def _apply_to_call(
    turn: TurnRecord,
    call: CallRecord,
    entry: e.QuestionAsked | e.ToolIntended | e.ToolRefused | e.ToolEnded,
    time: float,
) -> TurnRecord:
    calls = {**turn.calls, call.id: _moved_call(call, entry, time)}
    if isinstance(entry, e.ToolEnded) and not call.within:
        turn = replace(turn, facts=turn.facts.after(entry, call.arguments.get("command")))
    if turn.state == "acting" and all(known.state in CALL_ENDS for known in calls.values()):
        ended = {name: known for name, known in calls.items() if known.outcome is not None}
        outcomes = [known.outcome for known in ended.values() if known.outcome is not None]
        calls |= {name: replace(known, outcome=None) for name, known in ended.items()}
        progress = after_step(turn.progress, outcomes)
        return move_turn(turn, "calls_done", time, calls=calls, progress=progress)
    return replace(turn, calls=calls)


def _moved_call(
    call: CallRecord,
    entry: e.QuestionAsked | e.ToolIntended | e.ToolRefused | e.ToolEnded,
    time: float,
) -> CallRecord:
    match entry:
        case e.QuestionAsked():
            state = moved(CALL, call.state, "ask")
            return replace(call, state=state, since=time, question=entry.question, asked=entry)
        case e.ToolIntended():
            state = moved(CALL, call.state, "intend")
            given = {"arguments": entry.arguments} if entry.is_changed else {}
            return replace(call, state=state, since=time, is_changed=entry.is_changed, **given)
        case e.ToolRefused():
            state = moved(CALL, call.state, EVENT_OF_REFUSAL[entry.status])
            return replace(call, state=state, since=time, outcome=_outcome(call, entry))
        case e.ToolEnded():
            return replace(
                call,
                state=moved(CALL, call.state, EVENT_OF_STATUS[entry.end.status]),
                since=time,
                end=entry.end,
                outcome=_outcome(call, entry),
            )


def _outcome(call: CallRecord, entry: e.ToolEnded | e.ToolRefused) -> CallOutcome | None:
    """Describe the end of a call of the turn's own."""
    if call.within:
        return None
    text = entry.messages[0].text if entry.messages else ""
    if isinstance(entry, e.ToolRefused):
        return outcome(call.tool, call.arguments, entry.status, text, has_run=False)
    end = entry.end
    return outcome(
        call.tool,
        call.arguments,
        end.status,
        text,
        has_run=end.exit_code is not None,
        changed=[file.path for file in end.changed],
        is_poll=end.is_poll,
    )


def lose_calls(turn: TurnRecord, found: Collection[str] = ()) -> TurnRecord:
    """Mark the calls without a result as lost: how they ended stays unknown, but for those found."""
    ended = {
        name: replace(turn.calls[name], state=moved(CALL, turn.calls[name].state, "succeed"))
        for name in found
    }
    return move_calls(replace(turn, calls={**turn.calls, **ended}) if ended else turn, "lose")


def move_calls(turn: TurnRecord, event: str) -> TurnRecord:
    """Fire an event on all calls of a turn that have not ended."""
    lost = {
        name: replace(call, state=moved(CALL, call.state, event))
        for name, call in turn.calls.items()
        if call.state not in CALL_ENDS
    }
    return replace(turn, calls={**turn.calls, **lost}) if lost else turn
