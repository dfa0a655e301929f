"""What the tests of the library share: a bound for each, and a model that keeps what it was asked."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.coroutines import run

import steersman
from steersman.testing import ScriptedModel, calls, memory_home

__all__ = ["Asked", "first", "played", "result_of", "started", "until"]


class Asked(ScriptedModel):
    """A scripted model with the `requests` that came."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(answers or ["Done."])
        self.requests: list[steersman.ModelRequest] = []

    async def answer(
        self, request: steersman.ModelRequest, listener: steersman.AnswerListener
    ) -> steersman.ModelAnswer:
        """Keep the request, and answer."""
        self.requests.append(request)
        return await super().answer(request, listener)

    @property
    def results(self) -> list[str]:
        """What the model read of its tool calls, all of them, oldest first."""
        return [message.text for message in self.requests[-1].messages if message.role == "tool"]


@asynccontextmanager
async def started(
    model: steersman.Model, *tools: Any, folder: str | Path = "."
) -> AsyncGenerator[steersman.SessionHandle]:
    """Start a session of a model with these tools, or the usual ones, in a home of its own in memory."""
    async with memory_home() as runtime:
        agent = steersman.Agent(model=model, tools=tools or None)
        yield await runtime.start(agent, folder=folder)


async def first(session: steersman.SessionHandle, kind: str, **fields: Any) -> steersman.Event:
    """Wait for the first event of a kind, whose fields are these."""
    return await until(session.events(), kind, **fields)


async def until(
    events: AsyncIterator[steersman.Event], kind: str, **fields: Any
) -> steersman.Event:
    """Read on to the next event of a kind, whose fields are these."""
    async for event in events:
        if event.type == kind and all(event.get(name) == fields[name] for name in fields):
            return event
    raise AssertionError(f"the session ended without `{kind}`")


async def played(tool: Any, **arguments: object) -> tuple[steersman.Outcome, str]:
    """Have a model call a tool, and return the outcome, and what the model read of the call."""
    model = Asked(calls(tool.name, **arguments), "Done.")
    async with started(model, tool) as session:
        outcome = await session.ask("go")
        return outcome, model.results[0]


def result_of(tool: Any, **arguments: object) -> str:
    """Return what a model reads of a call of a tool, whose turn ends as any other."""
    outcome, result = run(played(tool, **arguments))
    assert (outcome.status, outcome.text) == ("done", "Done.")
    return result
