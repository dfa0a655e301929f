"""A session goes on with the model that it began with, whatever the agent's own is by then."""

from collections.abc import Generator

import pytest
from support.driver import Gate, Place
from support.model_server import ModelServer, Text, Tools

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
