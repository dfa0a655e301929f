"""A home, a project, a model server; and everything that was started is gone afterwards."""

import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

if sys.platform != "linux":  # these look at the process table of Linux
    collect_ignore = [f"test_{name}.py" for name in ("crash", "interrupt", "limits", "sweep")]

from blackbox.goal_table import REACHED, moves_in
from blackbox.judged import Start
from support.driver import Gate, Place
from support.model_server import Behaviour, ModelServer

Serve = Callable[..., ModelServer]


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    """A home and a project folder of this test's own."""
    here = Place(tmp_path)
    yield here
    here.close()
    said = "\n".join(chat.diagnostics for chat in here.chats)
    assert "Traceback" not in said, said


@pytest.fixture
def serve(place: Place) -> Generator[Serve]:
    """Start a model server with these behaviours, and configure it as the place's only model."""
    servers: list[ModelServer] = []

    def start(*behaviours: Behaviour, **settings: str) -> ModelServer:
        server = ModelServer(behaviours)
        servers.append(server)
        place.configure(server.base_url, **settings)
        return server

    yield start
    place.close()
    for server in servers:
        server.close()


@pytest.fixture
def gate(place: Place) -> Generator[Gate]:
    """A gate in the project folder."""
    here = Gate(place.folder)
    yield here
    here.close()


@pytest.fixture
def start(place: Place, request: pytest.FixtureRequest) -> Generator[Start]:
    """Start an agent's and a judge's model server, and configure both; `goals` are keys of `[goals]`.

    When the test has passed, its journals have in them what the table of transitions says.
    """
    servers: list[ModelServer] = []

    def begin(
        agent: object, judge: object, goals: str = "", rest: str = ""
    ) -> tuple[ModelServer, ...]:
        pause = "" if "backoff " in goals else "backoff = 0.0"
        for mind in (agent, judge):
            servers.append(ModelServer(mind if callable(mind) else [mind]))
        place.configure(
            servers[0].base_url,
            rest=f"""
[models.judge]
provider = "openai"
base_url = "{servers[1].base_url}"
model = "judge-model"
[agents.judge]
model = "judge"
[goals]
{pause}
{goals}
{rest}""",
        )
        return tuple(servers)

    yield begin
    place.close()
    for server in servers:
        server.close()
    promised = {move for move, test in REACHED.items() if test == request.node.originalname}
    assert not promised or promised <= moves_in(place)
