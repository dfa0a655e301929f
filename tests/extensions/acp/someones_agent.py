"""An external agent on the protocol's library: the first word of a prompt's last line says what it does.

    say TEXT        answers TEXT, in two pieces
    run COMMAND     asks, runs it in the shell if it may, and answers when it has ended
    write PATH      writes a file without asking, and tells of it
    flood           answers without an end
    line            answers in one line without an end
    recall          answers what was said in this session so far, also before a restart

Sessions are files in the folder of `AGENT_MEMORY`; without that it can't load any.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import acp
from acp.schema import AgentCapabilities, AllowedOutcome, PermissionOption, ToolCallUpdate

MEMORY = os.environ.get("AGENT_MEMORY", "")
OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class SomeonesAgent:
    """Remembers the prompts of each session."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}

    def on_connect(self, conn: Any) -> None:
        """Take the connection."""
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        """Say what it can."""
        able = AgentCapabilities(load_session=bool(MEMORY))
        return acp.InitializeResponse(protocol_version=1, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        """Begin a session."""
        name = uuid4().hex
        self.said[name] = []
        return acp.NewSessionResponse(session_id=name)

    async def load_session(self, session_id: str, **_: Any) -> acp.LoadSessionResponse:
        """Take up a session, and tell it again as the protocol wants it."""
        self.said[session_id] = json.loads((Path(MEMORY) / session_id).read_text())
        for one in self.said[session_id]:
            await self.tell(session_id, f"(again: {one})")
        return acp.LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        """Do what it says."""
        text = prompt[0].text
        self.said[session_id].append(text)
        if MEMORY:
            (Path(MEMORY) / session_id).write_text(json.dumps(self.said[session_id]))
        last = re.sub(r"^\[New message.*?\] ", "", text.splitlines()[-1])
        word, _, rest = last.partition(" ")
        match word:
            case "run":
                await self.run(session_id, rest)
            case "write":
                await self.write(session_id, rest)
            case "flood":
                while True:
                    await self.tell(session_id, "word " * 10_000)
            case "line":
                os.set_blocking(1, True)
                os.write(1, b'{"jsonrpc": "')
                while True:
                    os.write(1, b"x" * 60_000)
            case "recall":
                await self.tell(session_id, " / ".join(self.said[session_id]))
            case _:
                half = len(rest) // 2
                await self.tell(session_id, rest[:half])
                await self.tell(session_id, rest[half:])
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Take no notice: some agents are like that."""

    async def tell(self, session: str, text: str) -> None:
        """Answer a piece."""
        await self.client.session_update(session, acp.update_agent_message_text(text))

    async def run(self, session: str, command: str) -> None:
        """Ask, and run a command."""
        about = {"tool_call_id": uuid4().hex, "title": command, "kind": "execute"}
        asked = ToolCallUpdate(**about, raw_input={"command": command})
        answer = await self.client.request_permission(session, asked, OPTIONS)
        outcome = answer.outcome
        if not isinstance(outcome, AllowedOutcome) or outcome.option_id != "yes":
            await self.tell(session, "I was not allowed to.")
            return
        running = await asyncio.create_subprocess_shell(
            command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        code = await running.wait()
        done = acp.update_tool_call(about["tool_call_id"], status="completed")
        await self.client.session_update(session, done)
        await self.tell(session, f"It ended with {code}.")

    async def write(self, session: str, path: str) -> None:
        """Write a file, and tell of it."""
        call = uuid4().hex
        begun = acp.start_edit_tool_call(call, f"Write {path}", path, "")
        await self.client.session_update(session, begun)
        Path(path).write_text("written by the agent\n")
        await self.client.session_update(session, acp.update_tool_call(call, status="completed"))
        await self.tell(session, "Written.")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(SomeonesAgent()))
