"""Calls that go on at the server as tasks: waited for, stopped, and not lost by any crash."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from extensions.mcp.test_sessions import ALLOWED, called, last_result, table
from support.driver import Chat, Place
from support.model_server import Text
from support.patience import seconds
from support.task_server import TASKS
from support.until import until

FORM = "mcp:elicitation"
TOLD = "It goes on at the server. Call the tool again"


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    """The folder of the server's tasks."""
    folder = tmp_path / "yard"
    folder.mkdir()
    return folder


def local(yard: Path) -> str:
    """Configure a server that ends with the session."""
    return table("notes", sys.executable, str(TASKS), str(yard)) + ALLOWED


@contextmanager
def on_the_web(yard: Path) -> Iterator[str]:
    """Run a server that outlives all sessions, and configure it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd = listener.fileno()
        command = [sys.executable, str(TASKS), str(yard), str(fd)]
        process = subprocess.Popen(command, pass_fds=[fd])
        times = f"start_timeout = {seconds(60)}\nwait = {seconds(60)}"
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        try:
            yield f'[mcp.notes]\nurl = "{url}"\n{times}\n{ALLOWED}'
        finally:
            process.terminate()
            process.wait()


def begun(yard: Path) -> list[str]:
    """Return the tasks that were begun."""
    file = yard / "begun"
    return file.read_text().split() if file.exists() else []


def is_reported(chat: Chat) -> bool:
    """Whether the person has seen what the server says of its task."""
    return any("house at work" in event["text"] for event in chat.seen("output"))


def build(place: Place) -> Chat:
    """Have the model build a house, until the person sees that it has begun."""
    chat = place.chat()
    chat.send("build it")
    until(lambda: is_reported(chat))
    return chat


def go_on(place: Place) -> Chat:
    """Go on in a new chat with what a crash cut off."""
    chat = place.chat("--continue")
    chat.send("/queue resume")
    return chat


def test_a_task_is_waited_for(place: Place, serve: Any, yard: Path) -> None:
    """What the server says of it is shown; its end is the result, a failure too."""
    again = called("build", name="shed")
    server = serve(called("build", name="house"), again, Text("Done."), rest=local(yard))
    chat = build(place)
    (yard / "house.done").touch()
    until(lambda: "shed" in begun(yard))
    assert last_result(server) == "built house"
    (yard / "shed.failed").touch()
    chat.wait("turn_ended", status="completed")
    assert "the task of the server failed: no room" in last_result(server)
    assert begun(yard) == ["house", "shed"]
    assert chat.close() == 0


def test_a_task_may_ask(place: Place, serve: Any, yard: Path) -> None:
    """What it wants to know is a question of the session, asked once."""
    server = serve(called("ask", name="house"), Text("Done."), rest=local(yard))
    chat = place.chat()
    chat.send("build it")
    question = chat.wait("question", tool=FORM)
    assert question["arguments"]["message"] == "Where does house go?"
    assert chat.ask(f"/answer {question['id']} answer garden")["ok"]
    (yard / "house.done").touch()
    chat.wait("turn_ended", status="completed")
    assert last_result(server) == "built house garden"
    assert len(chat.seen("question")) == 1
    assert chat.close() == 0


def test_a_stop_ends_the_task(place: Place, serve: Any, yard: Path) -> None:
    """The server is asked to end it, and has; it lives."""
    serve(called("build", name="house"), rest=local(yard))
    chat = build(place)
    chat.send("/stop")
    stopped = chat.wait("stopped")
    assert (stopped["killed"], stopped["survivors"]) == ([], [])
    assert (yard / "house.cancelled").exists()
    assert chat.close() == 0


def test_a_server_that_dies_in_a_task_is_asked_again(place: Place, serve: Any, yard: Path) -> None:
    """It is started again, and knows its task; one that has forgotten it says so."""
    again = called("build", name="shed")
    server = serve(called("build", name="house"), again, Text("Done."), rest=local(yard))
    chat = build(place)
    (yard / "die").touch()
    until(lambda: not (yard / "die").exists())
    (yard / "house.done").touch()
    until(lambda: "shed" in begun(yard))
    assert last_result(server) == "built house"
    (yard / "shed.task").unlink()
    chat.wait("turn_ended", status="completed")
    assert "there is no task shed" in last_result(server)
    assert begun(yard) == ["house", "shed"]
    assert chat.close() == 0


def test_a_task_ends_while_the_program_is_dead(place: Place, serve: Any, yard: Path) -> None:
    """After a kill -9 its result is there when the turn goes on."""
    with on_the_web(yard) as rest:
        server = serve(called("build", name="house"), Text("Done."), rest=rest)
        build(place).kill()
        (yard / "house.done").touch()
        chat = go_on(place)
        chat.wait("turn_ended", status="completed")
        assert "built house" in str(server.requests[-1].body["messages"])
        assert begun(yard) == ["house"]
        assert chat.close() == 0


def test_a_task_outlives_two_crashes(place: Place, serve: Any, yard: Path) -> None:
    """The model is told that it goes on; the same call joins it, also after another kill -9."""
    call = called("build", name="house")
    with on_the_web(yard) as rest:
        server = serve(call, call, call, Text("Done."), rest=rest)
        build(place).kill()
        first = go_on(place)
        until(lambda: is_reported(first))
        assert TOLD in str(server.requests[-1].body["messages"])
        first.kill()
        second = go_on(place)
        until(lambda: is_reported(second))
        assert str(server.requests[-1].body["messages"]).count(TOLD) == 2
        (yard / "house.done").touch()
        second.wait("turn_ended", status="completed")
        assert last_result(server) == "built house"
        assert begun(yard) == ["house"]
        assert second.close() == 0
