"""The entries by which a turn tells what happened to its calls, and of orders to end."""

from __future__ import annotations

from collections.abc import Sequence

from ...journal import entries as e
from ...machines.conversation import ChatMessage, ToolRequest
from ...machines.orders import InterruptTurn
from ...machines.results import ToolFinished
from ..environment import Permit
from .acting import Acting

__all__ = [
    "INTERRUPTED",
    "asked",
    "denial",
    "goes_on",
    "intended",
    "last_words",
    "planned",
    "refused",
    "requested",
    "skipped",
    "tool_ended",
]

INTERRUPTED = "[Interrupted by the user.]"
SKIPPED = "[Not run: the turn was interrupted before this call could start.]"


def intended(turn: str, step: int, request: ToolRequest, is_idempotent: bool) -> e.ToolIntended:
    """Tell that a call is about to start."""
    return e.ToolIntended(turn, step, request.call, request.tool, request.arguments, is_idempotent)


def asked(turn: str, question: str, request: ToolRequest, permit: Permit) -> e.QuestionAsked:
    """Tell that a person is asked about a call, and by which rule."""
    return e.QuestionAsked(
        turn,
        request.call,
        question,
        request.tool,
        request.arguments,
        permit.rule,
        permit.source,
        permit.may_leave_folder,
    )


def tool_ended(turn: str, request: ToolRequest, finished: ToolFinished) -> e.ToolEnded:
    """Tell a call's result, to the model as well."""
    said = ChatMessage("tool", finished.text, call=request.call, wire_id=request.wire_id)
    return e.ToolEnded(
        turn,
        request.call,
        request.tool,
        finished.status,
        finished.exit_code,
        finished.bytes,
        finished.killed,
        finished.survivors,
        finished.spilled,
        (said,),
    )


def refused(turn: str, request: ToolRequest, status: str, reason: str, text: str) -> e.ToolRefused:
    """Tell that a call never started; `text` is what the model reads."""
    said = ChatMessage("tool", text, call=request.call, wire_id=request.wire_id)
    return e.ToolRefused(turn, request.call, request.tool, status, reason, (said,))


def skipped(turn: str, loop: Acting) -> list[e.ToolRefused]:
    """Take back the calls that have not started, and give each its result."""
    waiting = [*loop.questions.values(), *loop.todo]
    for request in loop.questions.values():
        del loop.open[request.call]
    loop.questions.clear()
    loop.todo.clear()
    why = "the turn was interrupted"
    return [refused(turn, one, "skipped", why, SKIPPED) for one in waiting]


def last_words(
    conversation: Sequence[ChatMessage], loop: Acting, is_after_result: bool
) -> tuple[ChatMessage, ...]:
    """What the conversation says of a cut, so that user and assistant keep alternating.

    While calls run their results come first, and the last word with the last of them.
    """
    has_said = conversation[-1].role == "assistant" and not is_after_result
    if loop.open or has_said:
        return ()
    text = "".join(loop.partial)
    return (ChatMessage("assistant", f"{text}\n{INTERRUPTED}" if text else INTERRUPTED),)


def goes_on(turn: str, requests: Sequence[ToolRequest]) -> list[e.ToolEnded]:
    """Tell that the children of these calls work on in the background, though their turn ends."""
    text = "[It goes on in the background; its result comes as a message.]"
    return [
        e.ToolEnded(
            turn,
            one.call,
            one.tool,
            "ok",
            messages=(ChatMessage("tool", text, call=one.call, wire_id=one.wire_id),),
        )
        for one in requests
    ]


def denial(do: str, rule: str) -> str:
    """Say why a call may not run."""
    if do == "deny":
        return f"a rule forbids it: {rule}"
    allowing = "`--yes` or a rule of [permissions] allows it"
    return f"it needs permission ({rule}) and nobody can be asked; {allowing}"


def requested(turn: str, order: InterruptTurn) -> e.InterruptRequested:
    """Tell that an order to end takes effect now."""
    return e.InterruptRequested(
        order.receipt,
        turn,
        order.cause,
        order.user,
        order.client_id,
        order.matched,
        order.rule,
        order.text,
        ack=order.ack,
    )


def planned(turn: str, order: InterruptTurn, tools: list[str]) -> e.InterruptPlanned:
    """Tell that an order to end takes effect when these tools have ended."""
    return e.InterruptPlanned(
        order.receipt,
        turn,
        order.cause,
        order.user,
        order.client_id,
        order.matched,
        order.rule,
        order.text,
        tuple(tools),
        ack=order.ack,
    )
