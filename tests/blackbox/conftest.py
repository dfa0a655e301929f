"""A home, a project, a model server; and everything that was started is gone afterwards."""

import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":  # these look at the process table of Linux
    collect_ignore = [f"test_{name}.py" for name in ("crash", "interrupt", "limits", "sweep")]

from blackbox.goal_table import REACHED, moves_in
from blackbox.judged import Start
from blackbox.terminal import Terminal
from support import patience
from support.changes import is_touched
from support.driver import Gate, Place
from support.echo import ECHO
from support.model_server import ModelServer
from support.served import Served

Serve = Callable[..., ModelServer]
NIGHTLY = pytest.mark.nightly


# A test that is marked `checks_data("/queue add", "queue list")` claims that it fails if one of these
# commands does not do its work. For each, the test is run once more with a command that only repeats what
# was typed (`support/echo.py`), and has to fail: in `make test-all`, and when the command or the test is
# changed.


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that checks the data of commands once more for each."""
    markers = list(metafunc.definition.iter_markers("checks_data"))
    if names := [name for marker in markers for name in marker.args]:
        test = Path(str(metafunc.module.__file__))
        echoes = [
            pytest.param(name, marks=() if is_touched(test, name) else NIGHTLY, id=f"echo {name}")
            for name in names
        ]
        metafunc.parametrize("echoed", [pytest.param("", id="real"), *echoes], indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Leave what a test has open, and turn the result of one around for which a command is an echo."""
    place = pyfuncitem.funcargs.get("place")
    if not isinstance(place, Place):
        return (yield)
    echoed = pyfuncitem.funcargs.get("echoed")
    try:
        result = yield
        place.leave()
    except Exception as fault:
        if echoed and not notes_of(place).exists():
            pytest.fail(f"it does not run `{echoed}`, but ends with {fault!r}")
        if echoed:
            return True
        raise
    if echoed:
        pytest.fail(f"it passes although `{echoed}` does nothing but repeat what was typed")
    return result


def notes_of(place: Place) -> Path:
    """Return the file in which an echo notes that it ran."""
    return place.home.parent / "echoed"


@pytest.fixture
def echoed(request: pytest.FixtureRequest) -> str:
    """The command that is an echo in this run of the test; mostly none."""
    return str(getattr(request, "param", ""))


@pytest.fixture
def place(tmp_path: Path, echoed: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Place]:
    """A home and a project folder of this test's own."""
    here = Place(tmp_path)
    if echoed:
        monkeypatch.setattr(patience, "given", "1")  # what an echo does not do is waited for
        here.command = (sys.executable, str(ECHO), echoed, str(notes_of(here)))
    yield here
    here.close()
    said = "\n".join(chat.diagnostics for chat in here.chats)
    assert "Traceback" not in said, said


@pytest.fixture
def serve(place: Place) -> Generator[Serve]:
    """Start a model server, and configure it as the place's only model.

    Given are its behaviours, or a function that chooses one for each request.
    """
    with ExitStack() as servers:

        def start(*minds: Any, **settings: str) -> ModelServer:
            mind = minds[0] if minds and callable(minds[0]) else minds
            server = servers.enter_context(ModelServer(mind))
            place.configure(server.base_url, **settings)
            return server

        yield start
        place.close()


@pytest.fixture
def served(place: Place) -> Generator[Callable[..., Served]]:
    """Start programs that serve the place, and end them; none of them may complain."""
    with ExitStack() as after:

        def start(*options: str) -> Served:
            one = Served(place, *options)
            one.pair(f"test{len(one.place.processes())}-{one.program.pid}")

            def close() -> None:
                said = one.close()
                assert "Traceback" not in said, said

            after.callback(close)
            return one

        yield start


@pytest.fixture
def at_keyboard(place: Place) -> Generator[Callable[..., Terminal]]:
    """Start commands in terminals of their own, and close those."""
    with ExitStack() as after:
        yield lambda *arguments, **options: after.enter_context(
            closing(Terminal(place, [*place.command, *arguments], **options))
        )


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
    with ExitStack() as servers:

        def begin(
            agent: Any, judge: Any, goals: str = "", rest: str = ""
        ) -> tuple[ModelServer, ...]:
            pause = "" if "backoff " in goals else "backoff = 0.0"
            started = [
                servers.enter_context(ModelServer(mind if callable(mind) else [mind]))
                for mind in (agent, judge)
            ]
            place.configure(
                started[0].base_url,
                rest=f"""
[models.judge]
provider = "openai"
base_url = "{started[1].base_url}"
model = "judge-model"
[agents.judge]
model = "judge"
[goals]
{pause}
{goals}
{rest}""",
            )
            return tuple(started)

        yield begin
        place.close()
    promised = {move for move, test in REACHED.items() if test == request.node.originalname}
    assert not promised or promised <= moves_in(place)
