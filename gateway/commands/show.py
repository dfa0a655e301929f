"""`/show`: a tool call with its arguments and its whole output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any

from ...machines.conversation import ChatMessage
from ..client import SessionClient
from ..wording.formats import call_words, one_line
from .command import Argument, Reply, command

LISTED = 20
"""Calls that are listed, the newest last."""
MOST = 2_000
"""Lines of an output that are shown; the data has the whole output that the model received."""


@command(
    "show",
    "session",
    "Show a tool call again, with its whole output; without an id list the last ones.",
    is_shared=True,
)
def show(client: SessionClient, wanted: Annotated[str, Argument("CALL|last")] = "") -> Reply:
    """Show a call by its id (`t3.s1.c2`) or `last`; without an id list the newest calls."""
    newest = _newest_calls(client.view.newest_messages())
    if not wanted:
        calls = list(islice(newest, LISTED))[::-1]
        lines = [
            f"{call['call']}  {call['tool']} "
            + one_line(" ".join(call_words(call["arguments"])), 60, "...")
            for call in calls
        ]
        shown = client.view.redacted({"calls": calls})
        return Reply(data=shown, text="\n".join(lines) or "No tool was called yet.")
    found = next((call for call in newest if wanted in ("last", call["call"])), None)
    if found is None:
        return Reply(ok=False, data={}, text=f"No tool call `{wanted}`. /show lists them.")
    data: dict[str, Any] = client.view.redacted(found)
    return Reply(data=data, text=_draw(data))


def _newest_calls(newest_first: Iterable[ChatMessage]) -> Iterator[dict[str, Any]]:
    """Give the calls of a conversation that is read backwards; a call's output comes before it."""
    outputs = dict[str, str]()
    for message in newest_first:
        if message.role == "tool":
            outputs.setdefault(message.call, message.text)
        for call in reversed(message.tool_calls):
            yield {
                "call": call.call,
                "tool": call.tool,
                "arguments": call.arguments,
                "output": outputs.pop(call.call, ""),
            }


def _draw(call: dict[str, Any]) -> str:
    given = "".join(f"\n{name}: {value}" for name, value in call["arguments"].items())
    lines = call["output"].splitlines()
    if len(lines) > MOST:
        half = MOST // 2
        left = f"[… {len(lines) - 2 * half} lines left out …]"
        lines = [*lines[:half], left, *lines[-half:]]
    return "\n".join([f"{call['call']} {call['tool']}{given}", *lines])
