"""`/usage`: what a session has used so far: tokens, time, and cost where prices are configured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...journal.codec import decode
from ...journal.record import SessionRecord
from ...journal.turn_record import TurnRecord
from ...machines.conversation import Usage
from ...machines.errors import UnknownSession
from ..events.contract import usage_view
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


def usage_command(conversation: Conversation, argument: str) -> Reply:
    """Show the newest turn, the session, its subagents, and all of it together."""
    record = conversation.record()
    now = time.time()
    children = [
        {"name": one.name, "state": one.state, **usage_view(used)}
        for one in record.children.values()
        for used in [_of_child(conversation, one.session, one.usage)]
    ]
    below = record.below
    for one in record.children.values():
        below += _of_child(conversation, one.session, one.usage) - one.usage
    turn = record.turns.get(record.turn)
    data: dict[str, Any] = {
        "turn": {"id": turn.id, **_of_turn(turn, now)} if turn else None,
        "session": {**usage_view(record.usage), "seconds": _seconds(record, now)},
        "children": children,
        "total": {**usage_view(record.usage + below), "seconds": _seconds(record, now)},
    }
    return Reply(True, data, _draw(data))


def _of_child(conversation: Conversation, session: str, told: Usage) -> Usage:
    """Return what a child used, with its own children; while it works it is asked."""
    try:
        return decode(SessionRecord, conversation.runtime.inspect(session)).whole_usage
    except UnknownSession:
        return told


def _of_turn(turn: TurnRecord, now: float) -> dict[str, Any]:
    seconds = round((turn.ended or now) - turn.started, 3)
    return {**usage_view(turn.usage), "seconds": seconds}


def _seconds(record: SessionRecord, now: float) -> float:
    """How long its turns ran, the one that runs included."""
    running = record.running
    return round(record.seconds + (now - running.started if running else 0.0), 3)


def _draw(data: dict[str, Any]) -> str:
    rows = [("turn", data["turn"]), ("session", data["session"])]
    rows += [(one["name"], one) for one in data["children"]]
    if data["children"]:
        rows.append(("together", data["total"]))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {usage_line(one)}" for name, one in rows if one)


def usage_line(used: dict[str, Any]) -> str:
    """Write tokens, cached share, cost and time as people read them."""
    share = f" ({100 * used['cache_read'] // used['input']} % cached)" if used["cache_read"] else ""
    parts = [f"{used['input']:,} tokens in{share}", f"{used['output']:,} out"]
    if used["cost"]:
        parts.append(f"cost {cost_text(used['cost'])}")
    if "seconds" in used:
        parts.append(f"{used['seconds']:.0f} s")
    return ", ".join(parts)


def cost_text(cost: float) -> str:
    """Write an amount with as many digits as it needs."""
    return f"{cost:.2f}" if cost >= 1 else f"{cost:.4f}"
