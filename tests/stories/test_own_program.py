"""In one's own program: kill -9 inside of its tool, and what the program finds when it starts again."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from support.driver import Place, finish, wait_gone
from support.model_server import ModelServer, Text, Tools
from support.until import until

PROGRAM = Path(__file__).with_name("own_program.py")
PIPE = subprocess.PIPE


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    """A home and a folder; nothing that was started in it is left."""
    here = Place(tmp_path)
    yield here
    here.close()


def begin(place: Place, *arguments: str) -> "subprocess.Popen[str]":
    """Start the program."""
    command = (sys.executable, str(PROGRAM), str(place.home), *arguments)
    return subprocess.Popen(
        command, cwd=place.folder, env=place.environ, text=True, stdin=PIPE, stdout=PIPE
    )


def test_a_program_is_killed_in_its_tool_and_resumes(place: Place) -> None:
    """The outcome of the call is unknown and said to be so, the third question waits, nothing ran."""
    behaviours = [
        Text("You owe 30.", match="owe"),
        Tools([{"tool": "pay", "arguments": {"amount": 30}}], match="Pay it", times=1),
        Text("Your bank may have been asked: look.", match="Pay it", times=0),
        Text("Thank you.", match="thank", times=0),
    ]
    ledger = place.folder / "ledger.txt"
    with ModelServer(behaviours) as server:
        place.configure(server.base_url)
        with begin(place) as program:
            assert program.stdout is not None
            session, answer = program.stdout.readline().strip().split(" ", 1)
            assert answer == "You owe 30."
            assert program.stdout.readline() == "the bank is asked\n"
            wait_for_third(place, session)
            program.kill()
        assert wait_gone(place.processes()) == []
        asked = len(server.requests)

        with begin(place, session) as program:
            assert program.stdout is not None
            said = [program.stdout.readline().strip() for _ in range(3)]
            assert said == [
                "unknown pay {'amount': 30}",
                "interrupted Pay it.",
                "pending And thank them.",
            ]
            assert len(server.requests) == asked
            assert ledger.read_text() == "30\n"
            ran = finish(program, "go on\n")
            assert (ran.returncode, ran.stdout) == (0, "")

        results = [
            message["content"]
            for message in server.requests[asked].body["messages"]
            if message["role"] == "tool"
        ]
        assert results == [
            "[Unknown outcome: the program died while this call ran. It may or may not have had its "
            "effect. It was not run again.]"
        ]
        assert [request.prompt for request in server.requests[asked:]][-1] == "And thank them."
    assert ledger.read_text() == "30\n"


def wait_for_third(place: Place, session: str) -> None:
    """Wait until the third question is durable, as another program sees it."""

    def is_there() -> bool:
        return len(place.data("queue", "list", "--session", session)["items"]) == 2

    until(is_there)
