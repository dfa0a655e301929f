"""A restore is killed at each thing it does: at the next start it is finished, or never began."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace.conftest import Agent, content_of
from workspace.test_workspace import fill, ruin

from steersman.journal.workspace.outcome import RevertOrder
from steersman.journal.workspace.restore import RestoreFailed
from steersman.journal.workspace.workspace import Workspace

TOUCHES = {
    "open",
    "os.chmod",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "shutil.rmtree",
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ORDER = RevertOrder("r1", "turn")
STEP = 5
STRACE = shutil.which("strace")
CALLS = "write,fsync,rename,renameat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,fchmod"


def prepare(root: Path) -> tuple[Path, dict[str, object], dict[str, object]]:
    """Make a folder that an agent has ruined; return it, and what it held before and after."""
    folder = root / "project"
    folder.mkdir(parents=True)
    fill(folder)
    agent = Agent(root / "state", folder)
    before = content_of(folder)
    agent.command(lambda: ruin(folder))
    return folder, before, content_of(folder)


def run_until(number: int, work: Callable[[], object]) -> bool:
    """Do something in a fork that is killed right before its n-th touch; whether it was."""
    child = os.fork()
    if child == 0:
        left = number

        def count(event: str, args: tuple[object, ...]) -> None:
            nonlocal left
            is_read = event == "open" and not int(args[2]) & WRITES  # type: ignore[call-overload]
            if event not in TOUCHES or is_read:
                return
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def check(root: Path, folder: Path, before: dict[str, object], after: dict[str, object]) -> str:
    """Start again: all or nothing, nothing left lying about; then it can be done, and undone."""
    agent = Agent(root / "state", folder)
    agent.workspace.count(RevertOrder("", "turn"))
    found = content_of(folder)
    assert found in (before, after)
    agent.workspace.revert(ORDER)
    assert content_of(folder) == before
    agent.workspace.revert(RevertOrder("r2", "undo"))
    assert content_of(folder) == after
    return "finished" if found == before else "never began"


def revert(root: Path) -> None:
    """Give everything back, as a process of its own would."""
    Workspace(root / "state", root / "project", "s1", os.environ).revert(ORDER)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_at_each_thing_it_does(tmp_path: Path) -> None:
    """The sweep goes on until a run is not killed any more; both kinds of end are met.

    Every `STEP`th; with 1 it takes half a minute.
    """
    root, origin = tmp_path / "run", tmp_path / "origin"
    folder, before, after = prepare(root)
    root.rename(origin)
    ends: list[str] = []
    was_killed = True
    while was_killed:
        shutil.copytree(origin, root, symlinks=True)
        was_killed = run_until(1 + STEP * len(ends), lambda: revert(root))
        ends.append(check(root, folder, before, after))
        shutil.rmtree(root)
    assert len(ends) > 40 // STEP
    assert set(ends) == {"finished", "never began"}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(STRACE is None, reason="needs strace to stop at a system call")
@pytest.mark.parametrize("number", range(3, 60, 19))
def test_killed_at_a_system_call(tmp_path: Path, number: int) -> None:
    """The same from outside, at the calls that change something."""
    folder, before, after = prepare(tmp_path)
    program = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[2])\n"
        "from workspace.test_crash import revert; revert(pathlib.Path(sys.argv[1]))"
    )
    inject = f"inject={CALLS}:signal=KILL:when={number}"
    tests = str(Path(__file__).parent.parent)
    command = [STRACE or "", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e", inject]
    subprocess.run(
        [*command, sys.executable, "-B", "-c", program, str(tmp_path), tests], check=False
    )
    check(tmp_path, folder, before, after)


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    """It shows while nothing has been moved yet; with room again, the same order is carried out."""
    folder, before, after = prepare(tmp_path)
    limit = 3
    real = os.fsync

    def full(*args: object) -> None:
        nonlocal limit
        limit -= 1
        if limit == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(*args)  # type: ignore[arg-type]

    agent = Agent(tmp_path / "state", folder)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RestoreFailed, match="nothing was changed: No space left"):
        agent.workspace.revert(ORDER)
    assert content_of(folder) == after
    agent.workspace.revert(ORDER)
    assert content_of(folder) == before


def test_a_full_disk_stops_no_tool(tmp_path: Path, folder: Path, monkeypatch) -> None:
    """What cannot be kept is told; the tool runs, and the next change is kept again."""
    agent = Agent(tmp_path / "state", folder)
    agent.write("a", b"1")
    real = os.rename

    def full(*args: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    agent.write("a", b"2")
    monkeypatch.setattr(os, "rename", real)
    assert "No space left" in agent.workspace.notices[0]
    agent.write("a", b"3")
    agent.revert()
    assert (folder / "a").read_bytes() == b"2"
