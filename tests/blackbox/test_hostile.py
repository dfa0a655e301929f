"""Five programs that are hard to end, and each way in which a chat can end: nothing is left.

With a message on the command line each program has a chat of its own, and all five run at the same
time; at the prompt all five are started by one tool.
"""

import os
import signal
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from blackbox.terminal import Terminal
from support.driver import COMMAND, WAIT, Place, wait_gone
from support.hostile import HOSTILE, Mark
from support.model_server import ModelServer, shell
from support.patience import seconds
from support.readable import readable

ENDINGS = {
    "INT": (signal.SIGINT, 130),
    "TERM": (signal.SIGTERM, 143),
    "HUP": (signal.SIGHUP, 129),
    "KILL": (signal.SIGKILL, -9),
    "the terminal closes": (None, 129),
}
"""Which signal, if any, and the exit code that belongs to it."""

pytestmark = pytest.mark.nightly


class Work:
    """A chat in a terminal, whose shell tool runs some of the programs until the chat ends."""

    def __init__(self, place: Place, programs: Sequence[str], mark: Mark) -> None:
        self.place = place
        self._count = len(programs)
        path = place.folder / "ready"
        os.mkfifo(path)
        self._ready = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        command = mark.command(programs, path.name)
        self.model = ModelServer([shell(command)])
        place.configure(self.model.base_url)
        self.started: dict[int, str] = {}

    def begin(self, *said: str, answers: bool = True) -> None:
        """Start the chat; what is not said on the command line is typed."""
        self.terminal = Terminal(self.place, [*COMMAND, "chat", "--yes", *said], answers)
        if not said:
            self.terminal.wait("1m>")
            self.terminal.type("work\r")

    def wait(self) -> None:
        """Wait until the programs run."""
        said = b""
        while said.count(b"ready") < self._count:
            assert readable(self._ready, timeout=seconds(WAIT)), said
            said += os.read(self._ready, 1000)
        self.started = self.place.processes()

    def end(self, number: int | None) -> None:
        """Signal the chat, or close its terminal."""
        if number is None:
            self.terminal.hang_up()
        else:
            self.terminal.process.send_signal(number)

    def close(self) -> None:
        """End everything."""
        self.terminal.close()
        self.place.close()
        self.model.close()
        os.close(self._ready)


@contextmanager
def working(
    root: Path, mark: Mark, programs: Sequence[str], *said: str, answers: bool = True
) -> Generator[Work]:
    """Give a chat that begins to run some of the programs."""
    work = Work(Place(root / programs[0].replace(" ", "-")), programs, mark)
    try:
        work.begin(*said, answers=answers)
        yield work
    finally:
        work.close()


def end_chats(root: Path, ending: str, *, is_at_prompt: bool) -> None:
    """Run the five programs, end their chats in this way, and assert that nothing is left."""
    mark = Mark()
    said, groups = ((), [[*HOSTILE]]) if is_at_prompt else (("work",), [[one] for one in HOSTILE])
    with ExitStack() as stack:
        works = [stack.enter_context(working(root, mark, group, *said)) for group in groups]
        for work in works:
            work.wait()
        assert len(mark.pids()) > len(HOSTILE) + 1
        number, code = ENDINGS[ending]
        for work in works:
            work.end(number)
        assert not mark.until_gone(1.0), [work.place.processes() for work in works]
        for work in works:
            is_asked_to_leave = is_at_prompt and ending == "INT"  # as by Ctrl-D
            assert work.terminal.process.wait(seconds(5.0)) == (0 if is_asked_to_leave else code)
            assert not wait_gone(work.started)
            assert not work.place.processes()


@pytest.mark.parametrize("is_at_prompt", [True, False], ids=["at the prompt", "one message"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left(tmp_path: Path, ending: str, is_at_prompt: bool) -> None:
    """A second after the end no process of any of the five is alive; the chats end, too."""
    end_chats(tmp_path, ending, is_at_prompt=is_at_prompt)


@pytest.mark.parametrize("ending", ["TERM", "HUP"])
def test_a_mute_terminal_does_not_block_leaving(tmp_path: Path, ending: str) -> None:
    """A terminal that never says where its cursor is does not hold up the end."""
    mark = Mark()
    with working(tmp_path, mark, ["threads"], answers=False) as work:
        work.wait()
        number, code = ENDINGS[ending]
        work.end(number)
        assert work.terminal.process.wait(seconds(WAIT)) == code
        assert not mark.pids()
