"""The client that the conformance suite of MCP runs: a session whose model calls what a scenario wants.

    python conformance_client.py URL

The suite lists the calls of a scenario in the environment; without such a list each tool is called once.
A form is accepted with its defaults.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import steersman
from steersman.testing import ScriptedModel

__all__ = ["CLIENT"]

CLIENT = Path(__file__).resolve()
PREFIX = "mcp__suite__"
VALUES: dict[str, Any] = {"string": "a", "integer": 5, "number": 3, "boolean": True, "object": {}}
CONFIGURATION = """
[mcp.suite]
url = "{url}"
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
        wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
        calls = wanted or [
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


async def main(url: str) -> None:
    """Have one turn in a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.toml").write_text(CONFIGURATION.format(url=url))
        async with steersman.open(folder) as home:
            agent = steersman.Agent(model=Caller([""]), tools=["mcp__*"])
            session = await home.start(agent, folder=folder)
            accepting = asyncio.create_task(accept(session))
            outcome = await session.ask("Call your tools.")
            print(outcome, file=sys.stderr)
            await session.close()
            await accepting


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
