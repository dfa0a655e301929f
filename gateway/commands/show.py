"""`/show`: a tool call with its arguments and its whole output."""

from __future__ import annotations

from typing import Annotated, Any

from ...machines.conversation import ChatMessage
from ..client import SessionClient
from ..formats import call_words, one_line
from .command import Argument, Reply, command

LISTED = 20
"""Calls that are listed, the newest last."""
MOST = 2_000
"""Lines of an output that are shown; the data has the whole output that the model received."""


@command(
    "show",
    "session",
    "Show a tool call again, with its whole output; without an id list the last ones.",
)
def show(client: SessionClient, wanted: Annotated[str, Argument("CALL|last")] = "") -> Reply:
    """Show a call by its id (`t3.s1.c2`) or `last`; without an id list the newest calls."""
    calls = _calls(client.messages())
    if not wanted:
        lines = [
            f"{call['call']}  {call['tool']} "
            + one_line(" ".join(call_words(call["arguments"])), 60, "...")
            for call in calls
        ]
        shown = client.redacted({"calls": calls[-LISTED:]})
        return Reply(
            ok=True, data=shown, text="\n".join(lines[-LISTED:]) or "No tool was called yet."
        )
    found = calls[-1:] if wanted == "last" else [call for call in calls if call["call"] == wanted]
    if not found:
        return Reply(ok=False, data={}, text=f"No tool call `{wanted}`. /show lists them.")
    data: dict[str, Any] = client.redacted(found[0])
    return Reply(ok=True, data=data, text=_draw(data))


def _calls(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """List the calls of a conversation, the oldest first."""
    outputs = {message.call: message.text for message in messages if message.role == "tool"}
    return [
        {
            "call": call.call,
            "tool": call.tool,
            "arguments": call.arguments,
            "output": outputs.get(call.call, ""),
        }
        for message in messages
        for call in message.tool_calls
    ]


def _draw(call: dict[str, Any]) -> str:
    given = "".join(f"\n{name}: {value}" for name, value in call["arguments"].items())
    lines = call["output"].splitlines()
    if len(lines) > MOST:
        half = MOST // 2
        left = f"[… {len(lines) - 2 * half} lines left out …]"
        lines = [*lines[:half], left, *lines[-half:]]
    return "\n".join([f"{call['call']} {call['tool']}{given}", *lines])
