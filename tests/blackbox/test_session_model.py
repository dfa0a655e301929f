"""A session goes on with the model that it began with, whatever the agent's own is by then."""

import asyncio
from collections.abc import Generator

import pytest
from support.driver import Gate, Place
from support.model_server import ModelServer, Text, Tools

import steersman

WORKFLOW = """
[workflow]
name = "two"
[[step]]
id = "first"
agent = "writer"
prompt = "begin"
[[step]]
id = "second"
needs = ["first"]
agent = "writer"
prompt = "end"
"""


@pytest.fixture
def other(place: Place, serve) -> Generator[ModelServer]:
    """Another model, which the agent `writer` has of its own."""
    with ModelServer([Text("The other speaks.")]) as server:
        yield server


def own_model(server: ModelServer) -> str:
    """Configure the agent `writer` with this model."""
    return f"""
[models.other]
provider = "openai"
base_url = "{server.base_url}"
model = "other"
[agents.writer]
model = "other"
"""


def test_a_run_goes_on_with_the_model_that_was_asked_for(
    place: Place, serve, other: ModelServer, gate: Gate
) -> None:
    """Killed in its second step and resumed without `--model`: each step's agent has that model."""
    shell = Tools([gate.call])
    server = serve(Text("Begun."), shell, Text("Done."), rest=own_model(other))
    (place.folder / "two.toml").write_text(WORKFLOW, "utf-8")
    program = place.start("run", "two.toml", "--model", "main", "--yes")
    gate.wait()
    program.kill()
    program.communicate()
    gate.open()
    again = place.run("run", "--resume", "last", "--yes")
    assert again.returncode == 0, again.stderr
    assert (len(other.requests), len(server.requests) > 2) == (0, True)


def test_a_program_leaves_its_agent_to_others(place: Place, serve, other: ModelServer) -> None:
    """An agent of a library that names a model: a chat without that program goes on with the model."""
    serve(Text("Main speaks."), rest=own_model(other))

    async def begin(agent: str) -> str:
        async with steersman.open(place.home) as runtime:
            session = await runtime.start(steersman.Agent(agent, model="main"), folder=place.folder)
            await session.ask("hello")
            return session.id

    for agent in ("writer", "of-the-program"):
        session = asyncio.run(begin(agent))
        ran = place.run("chat", "--resume", session, "and now?")
        assert (ran.returncode, ran.stdout.strip()) == (0, "Main speaks."), ran.stderr
    assert other.requests == []
