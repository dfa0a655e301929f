"""`/usage`, `/limits` and `/compact`: what a session has used, its limits, and its context window."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from ...journal.codec import decode
from ...journal.record import SessionRecord
from ...journal.recovery import last_sign
from ...journal.turn_record import TurnRecord
from ...machines import protocol as m
from ...machines.conversation import Usage
from ...machines.errors import UnknownSession
from ..client import SessionClient
from ..events.translation import usage_view
from .command import Argument, Reply, command


@command(
    "usage", "session", "Show usage: tokens, time, and cost where prices are known.", is_shared=True
)
def usage(client: SessionClient) -> Reply:
    """Show the usage of the newest turn, of the session, of its subagents, and the total.

    Example: steersman sessions usage last
    """
    record = client.record()
    known = client.describe()
    now = last_sign(record) if known.is_offline else time.time()  # whose program died works no more
    children, below = list[dict[str, Any]](), record.below
    for child in record.children.values():
        used = _of_child(client, child.session, child.usage)
        children.append({"name": child.name, "state": child.state, **usage_view(used)})
        below += used - child.usage
    turn, running = record.turns.get(record.turn), record.running
    seconds = round(record.seconds + (now - running.started if running else 0.0), 3)
    data: dict[str, Any] = {
        "turn": {"id": turn.id, **_of_turn(turn, now)} if turn else None,
        "session": {**usage_view(record.usage), "seconds": seconds},
        "children": children,
        "total": {**usage_view(record.usage + below), "seconds": seconds},
        "window": {"tokens": known.filled, "size": known.window or None},
    }
    return Reply(data=data, text=_draw(data))


def _of_child(client: SessionClient, session: str, reported: Usage) -> Usage:
    """Return the usage of a child and its descendants; from the child itself while it is open."""
    try:
        return decode(SessionRecord, client.view.state(session)).whole_usage
    except UnknownSession:
        return reported


def _of_turn(turn: TurnRecord, now: float) -> dict[str, Any]:
    seconds = round((turn.ended or now) - turn.started, 3)
    return {**usage_view(turn.usage), "seconds": seconds}


def _draw(data: dict[str, Any]) -> str:
    rows = [("turn", data["turn"]), ("session", data["session"])]
    rows += [(child["name"], child) for child in data["children"]]
    if data["children"]:
        rows.append(("together", data["total"]))
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {usage_line(used)}" for name, used in rows if used]
    tokens, size = data["window"]["tokens"], data["window"]["size"]
    if size:
        share = 100 * tokens // size
        lines.append(f"{'window':<{width}}  {tokens:,} of {size:,} tokens ({share} %)")
    return "\n".join(lines)


def usage_line(used: dict[str, Any]) -> str:
    """Write tokens, cached share, cost and time for people."""
    share = f" ({100 * used['cache_read'] // used['input']} % cached)" if used["cache_read"] else ""
    parts = [f"{used['input']:,} tokens in{share}", f"{used['output']:,} out"]
    if used["cost"]:
        parts.append(f"cost {used['cost']:.{2 if used['cost'] >= 1 else 4}f}")
    if "seconds" in used:
        parts.append(f"{used['seconds']:.0f} s")
    return ", ".join(parts)


@command("limits", "settings", "Show the limits of the session; grant the same amount again.")
def limits(
    client: SessionClient,
    grant: Annotated[
        Literal["more"] | None, Argument("more", help="Grant the same amount again.")
    ] = None,
) -> Reply:
    """Show the limits of a session, or grant the same amount again.

    Example: steersman sessions limits last more
    """
    if grant:
        answer = client.ask(m.GrantLimits())
        if not answer.get("ok", True):
            return Reply(ok=False, data=answer, text=f"Not granted: {answer.get('reason')}.")
    found = client.describe()
    most, shares = found.limits, found.shares
    data = {
        "max_tokens": most.max_tokens * shares,
        "max_cost": most.max_cost * shares,
        "max_minutes": most.max_minutes * shares,
        "grants": shares - 1,
    }
    rows = [
        ("tokens", data["max_tokens"], f"{found.used.tokens:,}"),
        ("cost", data["max_cost"], f"{found.used.cost:.4f}"),
        ("minutes", data["max_minutes"], f"{found.seconds / 60:.1f}"),
    ]
    lines = [f"{name:<8} {used} of {limit:,}" for name, limit, used in rows if limit]
    return Reply(
        data=data, text="\n".join(lines) or "No limits are set: see [limits] in the configuration."
    )


@command(
    "compact",
    "session",
    "Sum up the conversation so far, to make room in the model's window.",
    is_shared=True,
)
def compact(
    client: SessionClient,
    what: Annotated[
        str, Argument("WHAT MATTERS", is_rest=True, help="What the summary must keep.")
    ] = "",
) -> Reply:
    """Sum up the conversation, now or right after the running turn.

    Example: steersman sessions compact last "the names of the files"
    """
    answer = client.ask(m.Compact(wish=what))
    if not answer.get("ok"):
        return Reply(ok=False, data=answer, text=f"Not summed up: {answer.get('reason', '')}.")
    when = "" if answer.get("runs") else "It is summed up when the running turn has ended."
    return Reply(data=answer, text=when)
