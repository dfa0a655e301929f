"""Nothing that a command starts outlives its stop, its timeout, or the runtime."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.driver import wait_gone
from support.hostile import HOSTILE

from steersman.ports.process.ancestry import arguments
from steersman.ports.process.host import ProcessHost
from steersman.ports.process.leftover import leftovers, orphaned_commands
from steersman.ports.process.process import Process, ProcessResult


def parent_of(pid: int) -> int:
    """Read the parent's pid from /proc."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_stop_is_a_proof(hosting, mark, hostile):
    """When the result of a stopped command is there, no process of it is."""
    result, left = hosting.ended(mark, mark.spec(*hostile, grace=0.05))

    assert left == []
    assert (result.status, result.survivors) == ("killed", ())
    assert result.killed


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
def test_the_end_of_the_runtime(mark, hostile, number):
    """When the runtime is ended by a signal, nothing that it started is left a second later."""
    with mark.runtime(*hostile) as runtime:
        assert mark.pids()
        runtime.send_signal(number)

    assert runtime.returncode == -number
    assert mark.until_gone(1.0) == []


def test_the_end_of_the_spawner(hosting, mark):
    """When the spawner is killed, what runs goes on and can be stopped, and a new one serves."""

    async def scenario(host: ProcessHost) -> tuple[ProcessResult, ProcessResult, list[int]]:
        process = await hosting.ready(host, mark.spec("sh", "-c", "echo ready; sleep 60"))
        old = host.spawner_pid
        os.kill(old, signal.SIGKILL)
        again = await (await host.spawn(mark.spec("sh", "-c", "echo again"))).wait()
        while again.status == "lost":  # handed over before the death was known
            again = await (await host.spawn(mark.spec("sh", "-c", "echo again"))).wait()
        assert host.spawner_pid != old
        process.stop()
        return await process.wait(), again, mark.pids()

    result, again, left = hosting(scenario)

    assert (result.status, left) == ("killed", [])
    assert (again.status, again.head) == ("exited", b"again\n")


def test_the_end_of_a_supervisor(hosting, mark, hostile):
    """When a supervisor is killed, the spawner ends its orphans, and the result is `lost`."""

    def end(process: Process) -> None:
        os.kill(parent_of(process.pid), signal.SIGKILL)

    result, left = hosting.ended(mark, mark.spec(*hostile), end)

    assert left == []
    assert (result.status, result.survivors) == ("lost", ())
    assert result.killed


def test_a_supervisor_serves_again(hosting, mark, tmp_path):
    """The next command has the same supervisor and nothing of the one before, also no late stop."""

    async def scenario(host: ProcessHost) -> tuple[int, int, list[str]]:
        spec = mark.spec("sh", "-c", "echo ready; sleep 60", cwd=tmp_path, stdin=b"go\n")
        first = await hosting.ready(host, spec)
        before = parent_of(first.pid)
        first.stop()
        await first.wait()
        look = "echo ready; pwd; ls /proc/$$/fd; exec sleep 60"
        second = await hosting.ready(host, mark.spec("sh", "-c", look))
        first.stop()
        assert second.pid in mark.pids()
        parent = parent_of(second.pid)
        second.stop()
        result = await second.wait()
        return before, parent, result.head.decode().split()

    before, after, said = hosting(scenario)

    assert before == after
    assert said[1] == "/"
    assert set(said[2:]) <= {"0", "1", "2", "10"}  # a shell may keep its script open as 10


def test_the_end_of_a_spare_supervisor(hosting, mark):
    """A supervisor that was killed while it had no command costs nothing: the next command runs."""

    async def scenario(host: ProcessHost) -> list[str]:
        found: list[str] = []
        for _ in range(5):
            process = await hosting.ready(host, mark.spec("sh", "-c", "echo ready; exec sleep 60"))
            supervisor = parent_of(process.pid)
            process.stop()
            await process.wait()
            os.kill(supervisor, signal.SIGKILL)
            assert await asyncio.to_thread(wait_gone, [supervisor]) == []
            found.append((await (await host.spawn(mark.spec("true"))).wait()).status)
        return found

    assert hosting(scenario) == ["exited"] * 5


def test_a_stuck_spawner(hosting, mark):
    """When the spawner does not answer, a supervisor itself looks for what it has to end."""

    async def scenario(host: ProcessHost) -> tuple[ProcessResult, list[int]]:
        argv = HOSTILE["double-forking daemon"]
        process = await hosting.ready(host, mark.spec(*argv))
        os.kill(host.spawner_pid, signal.SIGSTOP)
        try:
            process.stop()
            return await process.wait(), mark.pids()
        finally:
            os.kill(host.spawner_pid, signal.SIGCONT)

    result, left = hosting(scenario)

    assert left == []
    assert (result.status, result.survivors) == ("killed", ())


def test_many_stops_at_once(hosting, mark):
    """Many trees with a grandchild in a session of its own are ended side by side, each by proof."""

    async def scenario(host: ProcessHost) -> tuple[list[ProcessResult], list[int]]:
        script = "setsid sh -c 'echo ready; sleep 60' & wait"
        spec = mark.spec("sh", "-c", script)
        running = await asyncio.gather(*(hosting.ready(host, spec) for _ in range(40)))
        for process in running:
            process.stop()
        results = [await process.wait() for process in running]
        return results, mark.pids()

    results, left = hosting(scenario)

    assert left == []
    assert {(result.status, result.survivors) for result in results} == {("killed", ())}
    assert min(len(result.killed) for result in results) > 1


@pytest.mark.parametrize(
    "name", ["shell with a background job", "ignores TERM", "threads", "forks again every 3 ms"]
)
def test_the_end_of_a_supervisor_and_the_spawner(hosting, mark, name):
    """When both are killed, what the command left is found by its mark, ended, and named."""

    async def scenario(host: ProcessHost) -> tuple[ProcessResult, list[int], list[int]]:
        process = await hosting.ready(host, mark.spec(*HOSTILE[name]))
        running = mark.pids()
        supervisor = parent_of(process.pid)
        os.kill(host.spawner_pid, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
        return await process.wait(), running, mark.pids()

    result, running, left = hosting(scenario)

    assert left == []
    assert (result.status, result.survivors) == ("lost", ())
    assert running
    assert result.killed


def test_what_a_dead_program_left_is_listed(hosting, mark):
    """A command whose program, spawner and supervisor are all dead is a leftover of that program."""
    with mark.runtime("sh", "-c", "echo ready; sleep 60") as runtime:
        (shell,) = [pid for pid in mark.pids() if mark.word in arguments(pid)[-1:]][:1]
        supervisor = parent_of(shell)
        above = (runtime.pid, parent_of(supervisor), supervisor)
        for pid in above:
            os.kill(pid, signal.SIGSTOP)
        for pid in above:
            os.kill(pid, signal.SIGKILL)
    try:
        assert wait_gone(above) == []
        found = [item for item in leftovers() if shell in (item.pid, *item.below)]
        assert [(item.what, item.owner) for item in found] == [
            ("a process of a command", runtime.pid)
        ]
        assert [text for text in orphaned_commands() if f"process {runtime.pid}," in text]
    finally:
        for pid in mark.pids():
            os.kill(pid, signal.SIGKILL)


def test_closing_the_host(hosting, mark, hostile):
    """Closing the host ends what still runs, and its result says so."""

    async def scenario(host: ProcessHost) -> tuple[ProcessResult, list[int]]:
        process = await hosting.ready(host, mark.spec(*hostile))
        await host.aclose()
        return await process.wait(), mark.pids()

    result, left = hosting(scenario)

    assert (result.status, left) == ("killed", [])


def test_a_cancelled_spawn(hosting, mark):
    """A spawn that is cancelled before the command has started leaves nothing behind."""

    async def scenario(host: ProcessHost) -> None:
        for turns in range(12):
            spawning = asyncio.create_task(host.spawn(mark.spec("sh", "-c", "sleep 60")))
            for _ in range(turns):
                await asyncio.sleep(0)
            spawning.cancel()
            await asyncio.wait([spawning])

    hosting(scenario)

    assert mark.pids() == []


def test_stop_twice(hosting, mark):
    """A second stop without grace ends what would have had long grace."""

    async def scenario(host: ProcessHost) -> ProcessResult:
        deaf = "trap '' TERM; echo ready; while :; do sleep 1; done"
        process = await hosting.ready(host, mark.spec("bash", "-c", deaf, grace=50.0))
        process.stop()
        process.stop(0.0)
        result = await process.wait()
        process.stop()
        return result

    result = hosting(scenario)

    assert (result.status, result.exit_code) == ("killed", -signal.SIGKILL)
    assert mark.pids() == []


def test_grace(hosting, mark):
    """A command that obeys TERM may tidy up within its grace; its own exit code is reported."""
    tidy = "trap 'echo tidy; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    result, _ = hosting.ended(mark, mark.spec("bash", "-c", tidy, grace=20.0))

    assert (result.status, result.exit_code) == ("killed", 7)
    assert result.head.endswith(b"tidy\n")


def test_a_frozen_command(hosting, mark):
    """A stop also reaches a command that stopped itself."""
    frozen = "trap 'exit 3' TERM; echo ready; kill -STOP $$; sleep 60"
    result, _ = hosting.ended(mark, mark.spec("bash", "-c", frozen, grace=20.0))
    assert result.exit_code == 3


def test_timeout(hosting, mark, hostile):
    """At the timeout everything is ended, and the result says that it was the timeout."""
    result = hosting.result(mark.spec(*hostile, timeout=0.2, grace=0.05))

    assert (result.status, result.survivors) == ("timed_out", ())
    assert mark.pids() == []


def test_timeout_of_a_deaf_command(hosting, mark):
    """The timeout asks first, and kills after the grace."""
    script = "trap 'echo asked' TERM; while :; do sleep 0.01; done"
    result = hosting.result(mark.spec("bash", "-c", script, timeout=0.1, grace=0.1))

    assert (result.status, result.exit_code) == ("timed_out", -signal.SIGKILL)
    assert b"asked" in result.head
    assert mark.pids() == []


def test_leftovers(hosting, mark):
    """A background job that holds the output open neither delays the result nor outlives it."""
    result = hosting.result(mark.spec("sh", "-c", "sleep 60 & echo done; exit 4"))

    assert (result.status, result.exit_code, result.head) == ("exited", 4, b"done\n")
    assert len(result.killed) == 1
    assert mark.pids() == []


LOOK = """
import os, subprocess, sys, threading, time
from steersman.ports.process import tree
opened = 0
def hook(event, arguments):
    global opened
    opened += event == "open" and str(arguments[0]).startswith("/proc")
sys.addaudithook(hook)
children = []
starting = threading.Thread(target=lambda: children.append(subprocess.Popen(["sleep", "60"])))
starting.start(); starting.join()
children.append(subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE))
inner = int(children[1].stdout.readline())
while len(os.listdir("/proc/self/task")) > 1:  # a thread that has ended is there a moment longer
    time.sleep(0.001)
opened = 0
found = tree.descendants(os.getpid())
assert set(found) == {*(child.pid for child in children), inner}, found
print(opened)
for child in children:
    child.kill(); child.wait()
os.kill(inner, 9)
"""


@pytest.mark.skipif(
    not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists(),
    reason="the system does not name the children of a process",
)
def test_a_look_costs_what_is_below():
    """Children of any thread and theirs are found, and no file of another process is opened."""

    def looked() -> int:
        ran = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return int(ran.stdout)

    alone = looked()
    others = [subprocess.Popen(["sleep", "60"]) for _ in range(50)]
    try:
        assert looked() == alone
    finally:
        for other in others:
            other.kill()
            other.wait()
