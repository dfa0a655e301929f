"""How a saved queue is announced."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .formats import age, call_words
from .progress import item_line

if TYPE_CHECKING:
    from .shelf import Saved


# Announcements ------------------------------------------------------------------------------------


def announce(event: Mapping[str, Any], now: float, *, can_utf8: bool = True) -> str:
    """Return the lines that say what a `recovered` event found."""
    items, count = event["items"], len(event["items"])
    found = (
        f"Found saved queue from crashed session ({item_count(count)}, not auto-resuming)"
        if event["cause"] == "crash"
        else f"Found {count} queued item{'s' if count != 1 else ''} from previous session"
        " (not auto-resuming)"
    )
    last = datetime.fromisoformat(event["last_active"]).timestamp()
    return "\n".join(
        (
            f"📥 {found}" if can_utf8 else found,
            f"Last active: {age(max(0.0, now - last))}",
            "Saved items:",
            *(item_line(item) for item in items),
            "Use `/queue restore` to list, `/queue resume` to continue, or `/queue discard` to delete",
            *(_lost(call) for call in event.get("unknown", ())),
        )
    )


def announce_other(newest: Saved | None, more: int) -> str:
    """Return the line that says that earlier sessions of a folder left something; empty if none."""
    if newest is None:
        return ""
    others = f" (and {more} more: `/queue restore --list`)" if more else ""
    name = newest.row.session
    if newest.row.workflow:
        return (
            f"Run {name} of this folder (workflow {newest.row.workflow}) was interrupted: "
            f"`steersman run --resume {name}` continues where it stopped{others}"
        )
    return (
        f"Session {name} of this folder has a saved queue ({item_count(len(newest.items))}): "
        f"`/queue resume {name}` resumes it, `/queue restore {name}` moves it here"
        f"{others}"
    )


def item_count(count: int) -> str:
    """Write how many items: `1 item`, `2 items`."""
    return f"{count} item{'s' if count != 1 else ''}"


def _lost(call: Mapping[str, Any]) -> str:
    what = " ".join(call_words(call["arguments"]))[:60]
    return f"Outcome unknown, not run again: {call['tool']} {what}"
