"""The state of a turn and of its calls as data, and how entries move them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.conversation import Usage
from ..machines.lifecycles import CALL, TURN
from . import entries as e
from .agent_entries import CallReported
from .fold import changed, moved
from .limit_entries import LimitReached

EVENT_OF_STATUS = {"ok": "succeed", "failed": "fail", "timed_out": "time_out", "killed": "kill"}
EVENT_OF_REFUSAL = {"denied": "deny", "failed": "reject", "skipped": "stop"}
OF_TURNS = (e.ModelCalled, e.QuestionAsked, e.ToolIntended, e.ToolRefused, CallReported)
"""Entries that are about nothing but a turn and its calls, and are folded nowhere else."""
CALL_ENDS = CALL.final
TURN_ENDS = TURN.final


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One tool call of the turn that runs, or ran last.

    `fault` says what is wrong with its arguments. `within` is the call of the agent that makes it, where
    that is another program. `is_outside`: it leads out of the session's folder.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any]
    state: str = "requested"
    step: int = 0
    wire_id: str = ""
    fault: str = ""
    within: str = ""
    question: str = ""
    is_outside: bool = False
    exit_code: int | None = None
    bytes: int = 0
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn; `calls` are kept for the newest turn only.

    `sent` are the tokens of a call that is not answered. `is_over`: it has ended, and everything that
    it started is dead. `epoch` is the session's when it began, `lineage` those of its ancestors.
    `is_closing`: the last answer asked for no tool.
    `was_cut`: it was cut off for a steer. `is_spent`: a limit is reached, and the turn is to be stopped.
    `compacted_at` is the step after which older turns were summed up last, `dropped` how many messages
    that concerns, and `refusal` what the server said of their length.
    """

    id: str
    item: str
    number: int
    state: str = "boundary"
    step: int = 0
    started: float = 0.0
    ended: float = 0.0
    since: float = 0.0
    resumes: str = ""
    cause: str = ""
    reason: str = ""
    is_over: bool = False
    epoch: int = 0
    lineage: tuple[int, ...] = ()
    is_closing: bool = False
    was_cut: bool = False
    is_spent: bool = False
    compacted_at: int = -1
    dropped: int = 0
    refusal: str = ""
    usage: Usage = field(default_factory=Usage)
    sent: int = 0
    calls: Mapping[str, CallRecord] = field(default_factory=dict[str, CallRecord])


def apply_to_turn(turn: TurnRecord, entry: e.Entry, time: float) -> TurnRecord:
    """Return the turn that an entry names after it; how a turn ends is the session's.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    match entry:
        case e.ModelCalled():
            begun: dict[str, Any] = {"step": entry.step, "sent": entry.tokens}
            return move_turn(turn, "proceed", time, is_closing=False, was_cut=False, **begun)
        case e.Answered():
            return _take_answer(turn, entry, time)
        case e.QuestionAsked() | e.ToolIntended() | e.ToolRefused() | e.ToolEnded():
            return _apply_to_call(turn, turn.calls[entry.call], entry, time)
        case CallReported():
            within: dict[str, Any] = {"step": entry.step, "within": entry.within}
            call = CallRecord(entry.call, entry.tool, entry.arguments, **within)
            return changed(turn, calls={**turn.calls, call.id: call})
        case e.AnswerCut():
            return move_turn(turn, "cut", time, sent=0, was_cut=True)
        case e.Steered():
            return changed(turn, is_closing=False, was_cut=False)
        case LimitReached():
            return changed(turn, is_spent=True)
        case e.ModelCallFailed():
            return move_turn(turn, "model_failed", time, reason=entry.reason, sent=0)
        case _:
            return turn


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
    return changed(turn, state=state, **changes)


def _take_answer(turn: TurnRecord, entry: e.Answered, time: float) -> TurnRecord:
    requests = entry.messages[0].tool_calls if entry.messages else ()
    calls = dict(turn.calls)
    for request in requests:
        calls[request.call] = CallRecord(
            request.call,
            request.tool,
            request.arguments,
            step=entry.step,
            wire_id=request.wire_id,
            fault=request.fault,
        )
    facts = frozenset({"has_calls"} if requests else ())
    usage = turn.usage + entry.usage
    is_closing = not requests
    return move_turn(
        turn, "answer", time, facts, usage=usage, calls=calls, sent=0, is_closing=is_closing
    )


def _apply_to_call(turn: TurnRecord, call: CallRecord, entry: e.Entry, time: float) -> TurnRecord:
    calls = {**turn.calls, call.id: _moved_call(call, entry, time)}
    if turn.state == "acting" and all(known.state in CALL_ENDS for known in calls.values()):
        return move_turn(turn, "calls_done", time, calls=calls)
    return changed(turn, calls=calls)


def _moved_call(call: CallRecord, entry: e.Entry, time: float) -> CallRecord:
    match entry:
        case e.QuestionAsked():
            state = moved(CALL, call.state, "ask")
            asked = {"question": entry.question, "is_outside": entry.is_outside}
            return changed(call, state=state, since=time, **asked)
        case e.ToolIntended():
            return changed(call, state=moved(CALL, call.state, "intend"), since=time)
        case e.ToolRefused():
            state = moved(CALL, call.state, EVENT_OF_REFUSAL[entry.status])
            return changed(call, state=state, since=time)
        case e.ToolEnded():
            return changed(
                call,
                state=moved(CALL, call.state, EVENT_OF_STATUS[entry.status]),
                since=time,
                exit_code=entry.exit_code,
                bytes=entry.bytes,
                killed=entry.killed,
                survivors=entry.survivors,
            )
        case _:
            return call


def lose_calls(turn: TurnRecord) -> TurnRecord:
    """Give up on what has no result; nobody will say any more how it ended."""
    return move_calls(turn, "lose")


def move_calls(turn: TurnRecord, event: str) -> TurnRecord:
    """Fire an event on all calls of a turn that have not ended."""
    lost = {
        name: changed(call, state=moved(CALL, call.state, event))
        for name, call in turn.calls.items()
        if call.state not in CALL_ENDS
    }
    return changed(turn, calls={**turn.calls, **lost}) if lost else turn
