"""Five programs that are hard to end, and each way in which a chat can end: nothing is left.

The five run in five chats at the same time, so that each way costs one start.
"""

import os
import select
import signal
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from blackbox.driver import COMMAND, WAIT, Place, wait_gone
from blackbox.terminal import Terminal
from hostile import HOSTILE, Mark
from serving import ModelServer, Tools

ENDINGS = {
    "INT": signal.SIGINT,
    "TERM": signal.SIGTERM,
    "HUP": signal.SIGHUP,
    "KILL": signal.SIGKILL,
    "the terminal closes": None,
}

pytestmark = pytest.mark.slow


class Work:
    """A chat in a terminal whose shell tool runs one of the programs."""

    def __init__(self, place: Place, program: str) -> None:
        self.place = place
        self._program = program
        path = place.folder / "ready"
        os.mkfifo(path)
        self._ready = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.terminal: Terminal | None = None

    def begin(self, is_one_shot: bool) -> Terminal:
        """Start the chat and say what is to be run."""
        said = [self._program] if is_one_shot else []
        self.terminal = Terminal(self.place, [*COMMAND, "chat", "--yes", *said])
        if not is_one_shot:
            self.terminal.wait("1m>")
            self.terminal.type(f"{self._program}\r")
        return self.terminal

    def wait(self) -> None:
        """Wait until the program runs."""
        came = select.select([self._ready], [], [], WAIT)[0]
        assert came, f"{self._program} did not start"

    def close(self) -> None:
        """End everything."""
        if self.terminal is not None:
            self.terminal.close()
        self.place.close()
        os.close(self._ready)


@pytest.fixture
def mark() -> Mark:
    """A mark of this test's processes."""
    return Mark()


@pytest.fixture
def works(tmp_path: Path, mark: Mark) -> Generator[list[Work]]:
    """One for each program, all with the same model."""
    calls = {
        program: [{"tool": "shell", "arguments": {"command": mark.command(program, "ready")}}]
        for program in HOSTILE
    }
    behaviours = [Tools(call, match=program) for program, call in calls.items()]
    with ExitStack() as closing, ModelServer(behaviours) as server:
        made: list[Work] = []
        for number, program in enumerate(HOSTILE):
            place = Place(tmp_path / str(number))
            place.configure(server.base_url)
            made.append(Work(place, program))
            closing.callback(made[-1].close)
        yield made
        closing.close()


@pytest.mark.parametrize("is_one_shot", [False, True], ids=["at the prompt", "one message"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left(works: list[Work], mark: Mark, ending: str, is_one_shot: bool) -> None:
    """A second after the chat's end no process of any of the five programs is alive."""
    terminals = [work.begin(is_one_shot) for work in works]
    for work in works:
        work.wait()
    started = [work.place.processes() for work in works]
    assert len(mark.pids()) >= 2 * len(HOSTILE)
    number = ENDINGS[ending]
    for terminal in terminals:
        if number is None:
            terminal.hang_up()
        else:
            terminal.process.send_signal(number)
    left = mark.until_gone(1.0)
    assert not left, [work.place.processes() for work in works]
    for terminal, work, processes in zip(terminals, works, started, strict=True):
        assert terminal.process.wait(WAIT) != 0 or not is_one_shot
        assert not wait_gone(processes, 5.0)
        assert not work.place.processes()
