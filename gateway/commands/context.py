"""`/context`: what fills the model's window; `/init`: the agent writes an AGENTS.md."""

from __future__ import annotations

import json
from typing import Any

from ...machines.classification import Classification
from ...machines.context import CHARACTERS, tokens_of
from ...machines.disposition import Intent
from ...ports.instructions import instructions_of
from ..client import SessionClient
from .command import Reply, command

INIT = (
    "Write the file AGENTS.md for this folder: what an agent has to know who works here. Look first: the "
    "files at the top, the build files, the tests, and an AGENTS.md that is there already, which you "
    "improve. Say how to build, how to test (also one single test), how the code is laid out, which "
    "conventions it follows, and what to leave alone. Say only what you found, and nothing that is true "
    "of any project. At most 60 lines."
)
"""The message of `/init`."""

SAID = {"user": "messages of people", "assistant": "answers and calls", "tool": "results of tools"}


@command("context", "session", "Show what fills the model's window, by part, in tokens.")
def context(client: SessionClient) -> Reply:
    """Show instructions, tools and conversation, as estimated, and what the server counted."""
    found, record = client.describe(), client.record()
    instructions = instructions_of(record.system)
    parts: dict[str, int] = {
        "system prompt": (len(record.system) - len(instructions)) // CHARACTERS,
        "AGENTS.md": len(instructions) // CHARACTERS,
        "tools": sum(
            len(json.dumps([tool.name, tool.description, tool.parameters])) for tool in found.tools
        )
        // CHARACTERS,
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
    return Reply(data=data, text=_draw(data))


def _draw(data: dict[str, Any]) -> str:
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
