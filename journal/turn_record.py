"""The state of a turn and of its calls as data, and how entries move them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..machines.call import CALL
from ..machines.conversation import Usage
from ..machines.turn import TURN
from . import entries as e
from .agent_entries import CallReported
from .fold import move

__all__ = ["CALL_ENDS", "TURN_ENDS", "CallRecord", "TurnRecord", "apply_to_turn", "lose_calls"]

EVENT_OF_STATUS = {"ok": "succeed", "failed": "fail", "timed_out": "time_out", "killed": "kill"}
EVENT_OF_REFUSAL = {"denied": "deny", "failed": "reject", "skipped": "stop"}
CALL_ENDS = CALL.final
TURN_ENDS = TURN.final


@dataclass(slots=True)
class CallRecord:
    """One tool call of the turn that runs, or ran last."""

    id: str
    tool: str
    arguments: dict[str, Any]
    state: str = "requested"
    step: int = 0
    wire_id: str = ""
    question: str = ""
    exit_code: int | None = None
    bytes: int = 0
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    since: float = 0.0


@dataclass(slots=True)
class TurnRecord:
    """One turn; `calls` are kept for the newest turn only.

    `sent` are the tokens of a call that is not answered. `is_over`: it has ended, and everything that
    it started is dead.
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
    usage: Usage = field(default_factory=Usage)
    sent: int = 0
    calls: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])


def apply_to_turn(turn: TurnRecord, entry: e.Entry, time: float) -> None:
    """Fold one entry into the turn that it names; how a turn ends is the session's."""
    state = turn.state
    match entry:
        case e.ModelCalled():
            turn.step = entry.step
            move(TURN, turn, "proceed")
        case e.Answered():
            _take_answer(turn, entry)
        case CallReported():
            turn.calls[entry.call] = CallRecord(
                entry.call, entry.tool, entry.arguments, step=entry.step
            )
        case e.AnswerCut():
            move(TURN, turn, "cut")
        case e.ModelCallFailed():
            move(TURN, turn, "model_failed")
            turn.reason = entry.reason
        case e.QuestionAsked() | e.ToolIntended() | e.ToolRefused() | e.ToolEnded():
            _apply_to_call(turn, turn.calls[entry.call], entry, time)
        case _:
            pass
    if turn.state != state:
        turn.since = time


def _take_answer(turn: TurnRecord, entry: e.Answered) -> None:
    turn.usage += entry.usage
    calls = entry.messages[0].tool_calls if entry.messages else ()
    for one in calls:
        turn.calls[one.call] = CallRecord(
            one.call, one.tool, one.arguments, step=entry.step, wire_id=one.wire_id
        )
    move(TURN, turn, "answer", frozenset({"has_calls"} if calls else ()))


def _apply_to_call(turn: TurnRecord, call: CallRecord, entry: e.Entry, time: float) -> None:
    call.since = time
    match entry:
        case e.QuestionAsked():
            move(CALL, call, "ask")
            call.question = entry.question
        case e.ToolIntended():
            move(CALL, call, "intend")
        case e.ToolRefused():
            move(CALL, call, EVENT_OF_REFUSAL[entry.status])
        case e.ToolEnded():
            move(CALL, call, EVENT_OF_STATUS[entry.status])
            call.exit_code, call.bytes = entry.exit_code, entry.bytes
            call.killed, call.survivors = entry.killed, entry.survivors
        case _:
            pass
    if turn.state == "acting" and all(one.state in CALL_ENDS for one in turn.calls.values()):
        move(TURN, turn, "calls_done")


def lose_calls(turn: TurnRecord) -> None:
    """Give up on what has no result; nobody will say any more how it ended."""
    for call in turn.calls.values():
        if call.state not in CALL_ENDS:
            move(CALL, call, "lose")
