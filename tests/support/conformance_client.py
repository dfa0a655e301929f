"""The client that the conformance suite of MCP runs: a session whose model calls what a scenario wants.

    python conformance_client.py URL

The suite lists the calls of a scenario in the environment; without such a list each tool is called once.
A form is accepted with its defaults. When a server wants a login, the person logs in and goes on.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import steersman
from steersman.testing import ScriptedModel

__all__ = ["CLIENT"]

CLIENT = Path(__file__).resolve()
PREFIX = "mcp__suite__"
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
LOGINS = 2
VALUES: dict[str, Any] = {"string": "a", "integer": 5, "number": 3, "boolean": True, "object": {}}
CONFIGURATION = """
[mcp.suite]
url = "{url}"
client_id = "{client_id}"
client_secret = "{client_secret}"
[permissions]
rules = [{{ tool = "mcp__suite__*", do = "allow" }}]
"""


class Caller(ScriptedModel):
    """A model that makes all calls in its first answer."""

    async def answer(
        self, request: steersman.ModelRequest, listener: steersman.AnswerListener
    ) -> steersman.ModelAnswer:
        """Make the calls, and say a word after them."""
        if request.messages[-1].role == "tool":
            return steersman.ModelAnswer(text="Done.")
        calls = CONTEXT.get("toolCalls") or [
            {"name": tool.name.removeprefix(PREFIX), "arguments": some_of(tool.parameters)}
            for tool in request.tools
            if tool.name.startswith(PREFIX)
        ]
        made = [
            steersman.ToolRequest(
                call=f"{request.call_prefix}{number}",
                tool=PREFIX + call["name"],
                arguments=call["arguments"],
            )
            for number, call in enumerate(calls)
        ]
        return steersman.ModelAnswer(text="", tool_calls=tuple(made), stop_reason="tools")


def some_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Make up the arguments of a call."""
    return {name: VALUES[of.get("type", "string")] for name, of in schema["properties"].items()}


async def accept(session: steersman.SessionHandle) -> None:
    """Answer each form: what has no default is made up."""
    async for event in session.events():
        if event.type == "question":
            fields = event.arguments["schema"]["properties"]
            open_ones = {name: of for name, of in fields.items() if "default" not in of}
            await session.answer(event.id, "answer", json.dumps(some_of({"properties": open_ones})))


def log_in(folder: str) -> None:
    """Open the address of a login, as a browser would."""
    command = [sys.executable, "-m", "steersman", "mcp", "login", "suite"]
    known = {**os.environ, "STEERSMAN_HOME": folder}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=known, cwd=folder, text=True
    ) as login:
        assert login.stdout is not None
        for line in login.stdout:
            print(line, end="", file=sys.stderr)
            if line.startswith("http"):
                urllib.request.urlopen(line.strip()).read()


async def has_worked(folder: str) -> bool:
    """Have one turn; whether the server wanted no login."""
    async with steersman.open(folder) as home:
        agent = steersman.Agent(model=Caller([""]), tools=["mcp__*"])
        session = await home.start(agent, folder=folder)
        accepting = asyncio.create_task(accept(session))
        outcome = await session.ask("Call your tools.")
        servers = await session.enter("/mcp")
        print(outcome, servers, file=sys.stderr)
        await session.close()
        await accepting
    return "steersman mcp login" not in str(servers)


async def main(url: str) -> None:
    """Work in a home of its own, and log in when that is wanted, as a person would."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"client_id": "", "client_secret": "", **CONTEXT}
        (Path(folder) / "config.toml").write_text(CONFIGURATION.format(url=url, **own))
        for _ in range(LOGINS):
            if await has_worked(folder):
                return
            log_in(folder)
        await has_worked(folder)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
