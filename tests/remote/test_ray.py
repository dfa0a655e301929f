"""Remote steps on a Ray cluster of several raylets: story 18, and what is lost when something is killed.

One cluster serves all, since it takes half a minute to start; so this is one test, in parts. The commands
write what they do into a folder that they are given, which the workers share with the test here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.driver import Place, finish
from support.patience import seconds
from support.ray_cluster import RayCluster, python

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(python() is None, reason="Ray is not installed: `.ci/ray` does"),
    pytest.mark.timeout(600),
]

WORKERS = 2
SCRIPT = """\
#!/bin/sh
echo "$1 $$" >> "$SHARED/began"
case $1 in
held*)
    (setsid sleep 1000 & echo "daemon $!" >> "$SHARED/began")
    while [ ! -e "$SHARED/go" ]; do sleep 0.05; done ;;
esac
cat "in/$1" > "out/$1"
echo "$1" >> "$SHARED/effects"
"""
WORKFLOW = """\
[workflow]
name = "render"
parallel = 32
[[step]]
id = "make"
for_each = {items}
parallel = {parallel}
run = ["./work.sh", "{{{{ item }}}}"]
env = {{ SHARED = "{shared}" }}
idempotent = {idempotent}
remote = {{ cpus = {cpus}, inputs = ["work.sh", "in/{{{{ item }}}}"], outputs = ["out/{{{{ item }}}}"] }}
"""


class Bench:
    """A project folder whose remote steps run on the cluster; `shared` is where commands leave traces."""

    def __init__(self, root: Path, cluster: RayCluster) -> None:
        self.place = Place(root)
        found = python()
        assert found is not None
        self.place.command = (str(found), "-m", "steersman")
        self.place.environ |= cluster.environment
        self.place.environ["STEERSMAN_HOME"] = str(self.place.home)
        self.place.home.joinpath("config.toml").write_text("[ray]\npatience = 1.0\n")
        self.shared = root / "shared"
        self.shared.mkdir()
        self.on = f"ray:{cluster.address}"
        folder = self.place.folder
        subprocess.run(["git", "init", "-q", folder], check=True)
        (folder / "in").mkdir()
        (folder / "work.sh").write_text(SCRIPT)
        (folder / "work.sh").chmod(0o755)

    def write(
        self, *items: str, parallel: int = 8, is_idempotent: bool = False, cpus: float = 1
    ) -> None:
        """Write the workflow and the inputs of its items."""
        for item in items:
            (self.place.folder / "in" / item).write_text(f"{item}\n" * 10)
        text = WORKFLOW.format(
            items=json.dumps(items),
            parallel=parallel,
            shared=self.shared,
            idempotent=json.dumps(is_idempotent),
            cpus=cpus,
        )
        (self.place.folder / "render.toml").write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a run on the cluster."""
        return self.place.start("run", *(arguments or ("render.toml",)), "--on", self.on, "--json")

    def traces(self, name: str) -> list[str]:
        """Return the lines that commands have left."""
        file = self.shared / name
        return file.read_text().split("\n")[:-1] if file.exists() else []

    def pids(self) -> list[int]:
        """Return the process ids of all commands that have begun, and of what they left behind."""
        return [int(line.split()[1]) for line in self.traces("began")]

    def pid(self, name: str) -> int:
        """Return the process id of the first command for an item."""
        return next(int(line.split()[1]) for line in self.traces("began") if line.startswith(name))

    def until_gone(self) -> None:
        """Wait until no process of a command is left."""
        until(lambda: not any(map(is_alive, self.pids())))

    def outputs(self) -> set[str]:
        """Return the names of the files that came back, whose contents are right."""
        out = self.place.folder / "out"
        names = set(os.listdir(out)) if out.exists() else set[str]()
        return {name for name in names if (out / name).read_text() == f"{name}\n" * 10}


def until(holds: Callable[[], object], quiet: float = 60) -> None:
    """Wait until something holds."""
    give_up = time.monotonic() + seconds(quiet)
    while not holds():
        assert time.monotonic() < give_up, "it does not come to hold"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def parent(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def slot_of(pid: int) -> int:
    """Return the process of the slot in which a command runs: above its supervisor and spawner."""
    above = pid
    while "ray::" not in Path(f"/proc/{above}/cmdline").read_text():
        above = parent(above)
        assert above > 1
    return above


def ended(run: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the last event of a run."""
    out, _ = run.communicate(timeout=seconds(120))
    events = [json.loads(line) for line in out.splitlines()]
    found = [event for event in events if event["type"] == "run_ended"]
    assert found, out
    return {**found[-1], "events": events}


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """A cluster in a folder whose path is short, since sockets are made in it."""
    folder = Path("/tmp", f"sr-{os.urandom(4).hex()}")
    folder.mkdir(mode=0o700)
    cluster = RayCluster(folder, WORKERS)
    try:
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def benches(tmp_path: Path, cluster: RayCluster) -> Iterator[Callable[[str], Bench]]:
    """Make benches."""
    made: list[Bench] = []

    def make(name: str) -> Bench:
        made.append(Bench(tmp_path / name, cluster))
        return made[-1]

    yield make
    for bench in made:
        bench.place.close()


def test_remote_steps_on_a_cluster(cluster: RayCluster, benches: Callable[[str], Bench]) -> None:
    """Each part says what it shows; the last ones take the cluster to pieces."""
    a_worker_is_killed(benches("story"))
    idempotent_work_is_repeated(benches("again"))
    a_stop_leaves_no_process(benches("stop"))
    what_nothing_has_is_refused(benches("needs"))
    the_owner_is_killed(benches("owner"))
    a_raylet_is_killed(benches("raylet"), cluster)
    the_head_is_killed(benches("head"), cluster)


def a_worker_is_killed(bench: Bench) -> None:
    """Story 18: what is lost is named, and in the end every item is done once and can be taken back."""
    items = [f"i{number}" for number in range(40)] + ["held"]
    bench.write(*items)
    run = bench.start()
    until(lambda: any(line.startswith("held ") for line in bench.traces("began")))
    os.kill(slot_of(bench.pid("held")), signal.SIGKILL)
    last = ended(run)
    assert (run.returncode, last["status"], last["reason"]) == (
        1,
        "failed",
        "outcome unknown: held",
    )
    bench.until_gone()
    assert bench.outputs() == {*items} - {"held"}
    refused = bench.place.run("run", "--resume", "last")
    assert refused.returncode == 1
    assert "outcome unknown: held (make:41)" in refused.stderr
    (bench.shared / "go").touch()
    resumed = bench.start("--resume", "last", "--again", "held")
    assert ended(resumed)["status"] == "succeeded"
    assert sorted(bench.traces("effects")) == sorted(items)
    assert bench.outputs() == {*items}
    assert bench.place.run("sessions", "revert", "last").returncode == 0
    assert not (bench.place.folder / "out").exists()


def idempotent_work_is_repeated(bench: Bench) -> None:
    """An idempotent step repeats an item whose worker died, without a person."""
    bench.write("held", is_idempotent=True)
    run = bench.start()
    until(lambda: len(bench.pids()) >= 2)
    os.kill(slot_of(bench.pid("held")), signal.SIGKILL)
    until(lambda: len(bench.pids()) >= 4)
    (bench.shared / "go").touch()
    last = ended(run)
    assert last["status"] == "succeeded"
    assert [e["state"] for e in last["events"] if e.get("item") == "held"].count("unknown") == 1
    assert bench.traces("effects") == ["held"]


def a_stop_leaves_no_process(bench: Bench) -> None:
    """A stop ends what runs on the workers, daemons too, and the run goes on from there."""
    items = ["held1", "held2", "held3", "i1", "i2"]
    bench.write(*items, parallel=2)
    run = bench.start()
    until(lambda: len(bench.pids()) >= 2 * WORKERS)
    run.send_signal(signal.SIGINT)
    last = ended(run)
    assert last["status"] == "interrupted"
    assert not any(map(is_alive, bench.pids()))
    assert bench.outputs() == set()
    (bench.shared / "go").touch()
    assert ended(bench.start("--resume", "last"))["status"] == "succeeded"
    assert bench.outputs() == {*items}


def what_nothing_has_is_refused(bench: Bench) -> None:
    """A step that no node can ever run fails with what is lacking."""
    bench.write("i1", cpus=64)
    last = ended(bench.start())
    assert last["status"] == "failed"
    assert "no node of the cluster has 64 CPUs; the most is 1 CPUs" in last["reason"]


def the_owner_is_killed(bench: Bench) -> None:
    """When the program that owns the run is killed, its commands end, and their outcome is unknown."""
    bench.write("held1", "i1", parallel=1)
    run = bench.start()
    until(lambda: len(bench.pids()) >= 2)
    run.kill()
    finish(run, "")
    bench.until_gone()
    until(lambda: not bench.place.processes())
    refused = bench.place.run("run", "--resume", "last")
    assert "outcome unknown: held1 (make:1)" in refused.stderr
    (bench.shared / "go").touch()
    assert ended(bench.start("--resume", "last", "--again", "all"))["status"] == "succeeded"
    assert bench.traces("effects") == ["held1", "i1"]


def a_raylet_is_killed(bench: Bench, cluster: RayCluster) -> None:
    """When a node is lost, what ran there is unknown, and none of it goes on."""
    bench.write("held1", "i1", "i2", parallel=2)
    run = bench.start()
    until(lambda: {line.split()[0] for line in bench.traces("began")} >= {"held1", "i2"})
    raylet = parent(slot_of(bench.pid("held1")))
    assert raylet in cluster.raylets
    os.kill(raylet, signal.SIGKILL)
    last = ended(run)
    assert last["reason"] == "outcome unknown: held1"
    bench.until_gone()
    assert bench.outputs() == {"i1", "i2"}


def the_head_is_killed(bench: Bench, cluster: RayCluster) -> None:
    """When the head is lost, the run ends with what is unknown, and no process is left."""
    bench.write("held1", "i1", parallel=1)
    run = bench.start()
    until(lambda: len(bench.pids()) >= 2)
    os.kill(cluster.about["gcs"], signal.SIGKILL)
    last = ended(run)
    assert (run.returncode, last["status"]) == (1, "failed")
    states = [event["state"] for event in last["events"] if event.get("item") == "held1"]
    assert states[-1] == "unknown"
    bench.until_gone()
