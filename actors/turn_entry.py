"""The entries by which a turn tells what happened to its calls, and of orders to end."""

from __future__ import annotations

from ..journal import entries as e
from ..machines.conversation import ChatMessage, ToolRequest
from ..machines.messages import InterruptTurn
from ..machines.results import ToolFinished

__all__ = ["intended", "planned", "refused", "requested", "tool_ended"]


def intended(turn: str, step: int, request: ToolRequest, is_idempotent: bool) -> e.ToolIntended:
    """Tell that a call is about to start."""
    return e.ToolIntended(turn, step, request.call, request.tool, request.arguments, is_idempotent)


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
