"""The commands about the conversation: how large it is, and parts of it.

`/context` shows what fills the model's window, `/init` has the agent write an AGENTS.md, `/copy` is for
the clipboard of the terminal, and `/show` gives a tool call with its arguments and its whole output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any

from ...machines.classification import Classification
from ...machines.context import CHARACTERS, tokens_of
from ...machines.conversation import ChatMessage, as_told
from ...machines.disposition import Intent
from ...machines.pattern import lazy_pattern
from ...ports.instructions import instructions_of
from ..client import SessionClient
from ..wording.formats import call_words, one_line, size_text
from ..wording.terminal import clean
from .command import Argument, Reply, command

INIT = (
    "Write the file AGENTS.md for this folder: what an agent has to know who works here. Look first: the "
    "files at the top, the build files, the tests, and an AGENTS.md that is there already, which you "
    "improve. Say how to build, how to test (also one single test), how the code is laid out, which "
    "conventions it follows, and what to leave alone. Say only what you found, and nothing that is true "
    "of any project. At most 60 lines."
)
"""The message of `/init`."""

SAID = {"user": "messages of people", "assistant": "answers and calls", "tool": "results of tools"}
_BLOCK = lazy_pattern(
    r"^( {0,3})(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\2[`~]*[ \t]*$|\Z)", re.DOTALL | re.M
)
LISTED = 20
"""Calls that are listed, the newest last."""
MOST = 2_000
"""Lines of an output that are shown; the data has the whole output that the model received."""


@command("context", "session", "Show what fills the model's window, by part, in tokens.")
def context(client: SessionClient) -> Reply:
    """Show instructions, tools and conversation, as estimated, and what the server counted."""
    found, record = client.describe(), client.record()
    instructions = instructions_of(record.system)
    parts: dict[str, int] = {
        "system prompt": (len(record.system) - len(instructions)) // CHARACTERS,
        "AGENTS.md": len(instructions) // CHARACTERS,
        "tools": sum(len(json.dumps(as_told(tool))) for tool in found.tools) // CHARACTERS,
    }
    for role, name in SAID.items():
        said = [message for message in found.messages if message.role == role]
        parts[name] = tokens_of(said)
    total = sum(parts.values())
    counted = record.fill.tokens
    data: dict[str, Any] = {
        "parts": parts,
        "estimated": total,
        "counted": counted or None,
        "window": found.window or None,
        "messages": len(found.messages),
    }
    return Reply(data=data, text=_drawn_context(data))


def _drawn_context(data: dict[str, Any]) -> str:
    used = max(1, data["estimated"])
    width = max(len(name) for name in data["parts"])
    lines = [
        f"{name:<{width}}  {tokens:>8,}  {100 * tokens // used:>3} %"
        for name, tokens in data["parts"].items()
    ]
    lines.append(f"{'together':<{width}}  {data['estimated']:>8,}  estimated")
    if counted := data["counted"]:
        lines.append(f"{'last call':<{width}}  {counted:>8,}  as the server counted")
    if window := data["window"]:
        share = 100 * (counted or data["estimated"]) // window
        lines.append(f"{'window':<{width}}  {window:>8,}  {share} % full; /compact makes room")
    return "\n".join(lines)


@command("init", "files", "Have the agent write an AGENTS.md for this folder.")
def init(client: SessionClient) -> Reply:
    """Send the message that asks for it; writing the file goes by the permissions, as always."""
    client.send_message(INIT, found=Classification(intent=Intent.CONVERSE))
    return Reply(data={"message": INIT}, text="")


@command("copy", "session", "Copy the last answer, or its N-th code block, to the clipboard.")
def copy(client: SessionClient, number: Annotated[int, Argument("N")] = 0) -> Reply:
    """Return the text; the terminal that asked copies it."""
    said = (message for message in client.view.newest_messages() if message.role == "assistant")
    answer = next((message.text for message in said if message.text.strip()), "")
    if not answer:
        return Reply(ok=False, text="There is no answer yet.")
    what, text = "the last answer", answer
    if number:
        blocks = code_blocks(answer)
        if not 0 < number <= len(blocks):
            return Reply(ok=False, text=f"The last answer has {len(blocks)} code blocks.")
        what, text = f"code block {number} of the last answer", blocks[number - 1]
    text = clean(text)
    data = {"text": text, "what": what}
    size = size_text(len(text.encode()))
    return Reply(data=data, text=f"{what[:1].upper()}{what[1:]}, {size}")


def code_blocks(text: str) -> list[str]:
    """Return what is between the fences of a Markdown text, in order."""
    return [found[3] for found in _BLOCK.finditer(text)]


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
    return Reply(data=data, text=_drawn_call(data))


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


def _drawn_call(call: dict[str, Any]) -> str:
    given = "".join(f"\n{name}: {value}" for name, value in call["arguments"].items())
    lines = call["output"].splitlines()
    if len(lines) > MOST:
        half = MOST // 2
        left = f"[… {len(lines) - 2 * half} lines left out …]"
        lines = [*lines[:half], left, *lines[-half:]]
    return "\n".join([f"{call['call']} {call['tool']}{given}", *lines])
