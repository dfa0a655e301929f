"""`/limits`: what a session may use, how much of it is left, and more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal.limit_entries import LimitReached, LimitsGranted
from ...machines.messages import GrantLimits
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


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
