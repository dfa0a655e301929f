"""`/usage`: what a session has used so far: tokens, time, and cost where prices are configured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...journal.codec import decode
from ...journal.limit_entries import LimitReached, LimitsGranted
from ...journal.record import SessionRecord
from ...journal.turn_record import TurnRecord
from ...machines.conversation import Usage
from ...machines.errors import UnknownSession
from ...machines.messages import GrantLimits
from ..events.contract import usage_view
from ..formats import call_words
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation

__all__ = [
    "cost_text",
    "limits_command",
    "of_limits",
    "show_command",
    "usage_command",
    "usage_line",
]


# `/show`: a tool call again, with all that it was given and all that it answered ------------------


LISTED = 20
"""Calls that are listed, the newest last."""
MOST = 2_000
"""Lines of an output that are shown; the data has all that the model was told."""


def show_command(conversation: Conversation, argument: str) -> Reply:
    """Show one call by its id (`t3.s1.c2`), the last one for `last`; nothing lists the newest."""
    calls = _calls(conversation.record())
    wanted = argument.strip()
    if not wanted:
        lines = [f"{one['call']}  {one['tool']} {_brief(one['arguments'])}" for one in calls]
        shown = conversation.redacted({"calls": calls[-LISTED:]})
        return Reply(True, shown, "\n".join(lines[-LISTED:]) or "No tool was called yet.")
    found = calls[-1:] if wanted == "last" else [one for one in calls if one["call"] == wanted]
    if not found:
        return Reply(False, {}, f"No tool call `{wanted}`. /show lists them.")
    data: dict[str, Any] = conversation.redacted(found[0])
    return Reply(True, data, _draw(data))


def _calls(record: SessionRecord) -> list[dict[str, Any]]:
    """List the calls of the conversation, the oldest first."""
    said = {one.call: one.text for one in record.conversation if one.role == "tool"}
    return [
        {
            "call": one.call,
            "tool": one.tool,
            "arguments": one.arguments,
            "output": said.get(one.call, ""),
        }
        for message in record.conversation
        for one in message.tool_calls
    ]


def _draw(call: dict[str, Any]) -> str:
    given = "".join(f"\n{name}: {value}" for name, value in call["arguments"].items())
    lines = call["output"].splitlines()
    if len(lines) > MOST:
        half = MOST // 2
        left = f"[… {len(lines) - 2 * half} lines left out …]"
        lines = [*lines[:half], left, *lines[-half:]]
    return "\n".join([f"{call['call']} {call['tool']}{given}", *lines])


def _brief(arguments: dict[str, Any]) -> str:
    text = " ".join(call_words(arguments))
    return text if len(text) <= 60 else f"{text[:57]}..."


# `/limits`: what a session may use, how much of it is left, and more of it ------------------------


MORE = "`/limits more` grants as much again, `/queue resume` goes on"


def of_limits(entry: LimitReached | LimitsGranted) -> list[dict[str, Any]]:
    """Return the events of a limit."""
    if isinstance(entry, LimitsGranted):
        return [{"type": "notice", "text": "The session may use as much again."}]
    text = f"A limit is reached, {entry.what}. What waits is held."
    return [{"type": "error", "code": "limit_reached", "text": text, "hint": MORE}]


def limits_command(conversation: Conversation, argument: str) -> Reply:
    """Show the limits, or grant more."""
    live = conversation.runtime.sessions.get(conversation.session)
    if live is None:
        return Reply(False, text="The session is not open here.")
    if argument.strip() not in ("", "more"):
        return Reply(False, text="/limits shows them, /limits more grants as much again.")
    if argument.strip():
        conversation.ask(GrantLimits(conversation.user))
    account = live.environment.account
    limits, shares = account.limits, account.shares
    data = {
        "max_tokens": limits.max_tokens * shares,
        "max_cost": limits.max_cost * shares,
        "max_minutes": limits.max_minutes * shares,
        "grants": shares - 1,
    }
    rows = [
        ("tokens", data["max_tokens"], f"{account.used.tokens:,}"),
        ("cost", data["max_cost"], f"{account.used.cost:.4f}"),
        ("minutes", data["max_minutes"], f"{account.seconds / 60:.1f}"),
    ]
    lines = [f"{name:<8} {used} of {most:,}" for name, most, used in rows if most]
    return Reply(
        True, data, "\n".join(lines) or "No limits are set: see [limits] in the configuration."
    )


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
    return Reply(True, data, _draw_of_usage(data))


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


def _draw_of_usage(data: dict[str, Any]) -> str:
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
