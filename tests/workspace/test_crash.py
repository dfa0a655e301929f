"""A restore is killed at each thing it does: at the next start it is finished, or never began."""

import errno
import mmap
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from support.power_loss import content_below, disks
from support.recording import OPTIONS, Operation, recorded
from workspace.conftest import Agent
from workspace.ruin import ALL, FULL, ORDER, Origin, prepare, revert
from workspace.tracing import CALLS, NEEDS_ROOM, STRACE, inject, run_traced

from steersman.workspace.restore import RestoreFailed, load_restore
from steersman.workspace.workspace import Workspace

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


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    """A folder with all kinds of things, ruined by commands."""
    with prepare() as made:
        yield made


def killed_restore(origin: Origin, number: int) -> tuple[bool, str]:
    """Kill a restore right before the n-th thing it does: whether it was, and what it came to."""
    with origin.copy() as root:
        was_killed = run_until(number, lambda: revert(root))
        return was_killed, origin.check(root)


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


def tell(root: Path, page: mmap.mmap) -> int:
    """The same; the outcome is reported without using disk space."""
    try:
        done = Workspace(root / "state", root / "project", "s1", os.environ).revert(ORDER)
        page.write((repr(done.kept) if done.kept else ALL).encode())
    except RestoreFailed as fault:
        page.write(str(fault).encode())
    return 0


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_killed_at_each_thing_it_does(origin: Origin) -> None:
    """The sweep goes on until a run is not killed any more; both kinds of end are met."""
    ends: list[str] = []
    was_killed = True
    while was_killed:
        was_killed, end = killed_restore(origin, 1 + len(ends))
        ends.append(end)
    assert len(ends) > 40
    assert set(ends) == {"finished", "never began"}


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.skipif(STRACE is None, reason="needs strace to stop at a system call")
def test_killed_at_every_system_call(origin: Origin) -> None:
    """The same from outside, at each call that changes something or makes it last, kind by kind."""
    ends: list[str] = []
    for call in CALLS:
        status, number = -signal.SIGKILL, 0
        while status == -signal.SIGKILL:
            number += 1
            with origin.copy() as root:
                kill = inject(call, f"signal=KILL:when={number}")
                status = run_traced(lambda root=root: revert(root), *kill)
                ends.append(origin.check(root))
        assert status == 0
    assert len(ends) > 40 + len(CALLS)
    assert set(ends) == {"finished", "never began"}


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.skipif(STRACE is None, reason="needs strace to fill the disk at a system call")
def test_the_disk_is_full_from_any_point_on(origin: Origin) -> None:
    """All goes back, or nothing does and it is said what to do; with room again, all does."""
    ends: list[str] = []
    for call in NEEDS_ROOM:
        number, is_over = 0, False
        while not is_over:
            number += 1
            full = inject(call, f"error=ENOSPC:when={number}+")
            with origin.copy() as root, mmap.mmap(-1, 1 << 16) as page:
                assert run_traced(lambda root=root, page=page: tell(root, page), *full) == 0
                states = [load_restore(path).phase for path in (root / "state").glob("*/restore-*")]
                told = page[:].rstrip(b"\0").decode()
                is_over = states == ["done"]
                origin.check_told(root, told)
                ends.append(told)
    assert len(ends) > 15
    assert set(ends) == {ALL, FULL}


@pytest.fixture(scope="module")
def run(origin: Origin, tmp_path_factory: pytest.TempPathFactory) -> list[Operation]:
    """What a restore asks of the system, from its begin to its end."""
    return recorded_restore(origin, tmp_path_factory.mktemp("recorded") / "log")


def recorded_restore(origin: Origin, log: Path) -> list[Operation]:
    """Record a restore with strace."""
    with origin.copy() as root:
        assert run_traced(lambda: revert(root), *OPTIONS, log=str(log)) == 0
    return recorded(log, root, lambda path: not path.startswith(".."))


def ends_of(origin: Origin, run: list[Operation], seed: int = 0) -> Generator[tuple[int, str]]:
    """Let the power go everywhere, at the end first; say what it came to at the next start."""
    root = origin.place.with_name("run")
    before, modes = content_below(origin.place)
    states = list(disks(run, before, seed=seed, modes=modes, is_sampled=True))
    for disk in reversed(states):
        disk.write(root)
        try:
            yield disk.moment, origin.check(root)
        finally:
            shutil.rmtree(root)


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.skipif(STRACE is None, reason="needs strace to see the writes")
def test_the_power_goes_at_any_moment(origin: Origin, run: list[Operation]) -> None:
    """Whatever the disk kept of what was not synced: finished or never began, and finished at the end."""
    ends = list(ends_of(origin, run))
    assert len(ends) > 200
    assert {end for _, end in ends} == {"finished", "never began"}
    assert {end for moment, end in ends if moment == len(run)} == {"finished"}


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.skipif(STRACE is None, reason="needs strace to see the writes")
@pytest.mark.parametrize(
    "what",
    [
        "/objects/",
        "/state/.*/[.]steersman-",
        "/state/[0-9a-f]+$",
        "/project/[.]steersman",
        "/project",
    ],
    ids=["rescue copies", "record", "name of the record", "staged files", "names in the folder"],
)
def test_the_replay_sees_a_sync_that_is_missing(
    origin: Origin, run: list[Operation], what: str
) -> None:
    """Without these the same run ends mixed: that it doesn't is no matter of course."""
    careless = [
        entry for entry in run if entry.kind != "sync" or not re.search(what, f"/{entry.name}")
    ]
    assert len(careless) < len(run)
    with pytest.raises((AssertionError, KeyError, OSError, ValueError)):
        list(ends_of(origin, careless))


def test_an_interrupted_revert_of_another_session_is_reported(tmp_path: Path, folder: Path) -> None:
    """The next session in the folder gets one notice, with the command that finishes the revert."""
    (folder / "a").write_text("0")
    one = Agent(tmp_path / "state", folder)
    one.write("a", b"1")
    one.revert()
    two = Agent(tmp_path / "state", folder, "s2")
    two.write("b", b"1")
    assert two.workspace.notices == []
    (file,) = (tmp_path / "state").glob("*/restore-s1-*.json")
    file.write_text(file.read_text().replace('"phase": "done"', '"phase": "moving"'))
    two.restart()
    two.write("b", b"2")
    two.write("b", b"3")
    (told,) = two.workspace.notices
    assert "`steersman sessions revert s1` finishes it" in told
    one.restart()
    assert one.revert().restored == ()
    two.restart()
    two.write("b", b"4")
    assert two.workspace.notices == []


@pytest.mark.parametrize("torn", ["index-s1", "side-s1.json", "ledger-s1.jsonl"])
def test_a_file_torn_by_a_power_cut_blocks_nothing(tmp_path: Path, folder: Path, torn: str) -> None:
    """What it said is not known any more; from there on all is as ever."""
    (folder / "a").write_text("0")
    agent = Agent(tmp_path / "state", folder)
    agent.command(lambda: (folder / "a").write_text("1"))
    (file,) = (tmp_path / "state").glob(f"*/{torn}")
    file.write_bytes(file.read_bytes()[:100] + bytes(100))
    agent.restart()
    agent.command(lambda: (folder / "a").write_text("2"), "t2")
    assert agent.revert(turns=("t2",)).restored == ("a",)
    assert (folder / "a").read_text() == "1"
    assert agent.workspace.notices == []


def test_a_full_disk_stops_no_tool(folder: Path, agent: Agent, monkeypatch) -> None:
    """A copy that cannot be kept is reported; the tool runs, and the next change is kept again."""
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
