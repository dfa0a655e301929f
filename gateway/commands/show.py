"""`/show`: a tool call again, with all that it was given and all that it answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal.record import SessionRecord
from ..formats import call_words
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


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
