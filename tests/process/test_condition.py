"""What a goal waits for: time, the end of a process, a file that comes or changes."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.patience import seconds

from steersman.machines.verdict import Condition
from steersman.ports.judging import await_condition
from steersman.ports.process.ancestry import is_alive, process

NEVER = 3600.0
"""Seconds within which no process of these tests ends without a signal."""
HARDLY = 0.3
"""Seconds after which a test takes it that nothing happens."""


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    """A process that sleeps until it is killed; the killer has not waited for its status."""
    with subprocess.Popen(["sleep", "60"]) as one:
        yield one
        one.kill()


def wait(folder: Path, condition: Condition, limit: float = NEVER, since: float = 0.0) -> bool:
    """Wait for it."""
    return asyncio.run(await_condition(condition, folder, limit, since))


def wait_for(folder: Path, condition: Condition, happens: Callable[[], object]) -> bool:
    """Begin to wait, let it happen once that has begun, and wait on."""

    async def scenario() -> bool:
        waiting = asyncio.create_task(await_condition(condition, folder, NEVER))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        happens()
        async with asyncio.timeout(seconds(30)):
            return await waiting

    return asyncio.run(scenario())


def test_time_is_reached_or_the_limit_is(tmp_path: Path) -> None:
    """So many seconds have happened when they are over; the limit ends any waiting earlier."""
    assert wait(tmp_path, Condition(kind="time", seconds=0.05))
    assert not wait(tmp_path, Condition(kind="time", seconds=NEVER), limit=0.05)


def test_a_zombie_counts_as_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """One that runs is waited for, one that was killed is not, whether or not its parent knows."""
    condition = Condition(kind="process", process=sleeper.pid)
    assert not wait(tmp_path, condition, limit=HARDLY)
    assert wait_for(tmp_path, condition, sleeper.kill)
    assert wait(tmp_path, condition)
    sleeper.wait()
    assert wait(tmp_path, condition)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a process has no known start here")
def test_an_id_that_was_given_again_is_another_process() -> None:
    """A process is itself only with its start: who waits for it does not wait for its successor."""
    known = process(os.getpid())
    assert known is not None
    pid, start, _ = known
    assert is_alive(pid, start)
    assert not is_alive(pid, start - 1)


@pytest.mark.parametrize("change", ["comes", "grows", "is replaced", "goes"])
def test_a_file_comes_or_changes(tmp_path: Path, change: str) -> None:
    """What is there is not enough, it has to change; what is not there has to come."""
    path = tmp_path / "built"
    if change != "comes":
        path.write_text("old")
    condition = Condition(kind="file", seconds=0.0, file="built")
    assert not wait(tmp_path, condition, limit=HARDLY)

    def happens() -> None:
        match change:
            case "goes":
                path.unlink()
            case "is replaced":
                (tmp_path / "other").write_text("new")
                (tmp_path / "other").rename(path)
            case _:
                path.write_text("more than old")

    assert wait_for(tmp_path, condition, happens)


def test_a_file_that_came_while_the_judge_thought_need_not_come_again(tmp_path: Path) -> None:
    """One of after the turn's end is there at once; one of before it is an old one."""
    began = time.time() - 1
    (tmp_path / "built").write_text("while it was judged")
    condition = Condition(kind="file", seconds=0.0, file="built")
    assert wait(tmp_path, condition, since=began)
    assert not wait(tmp_path, condition, limit=HARDLY, since=time.time() + 1)
