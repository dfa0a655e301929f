"""Remote steps on a Ray cluster of several raylets: story 18, and what is lost when something is killed.

One cluster serves all, since it takes long to start; so this is one test, in parts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.driver import finish
from support.ray_cluster import RayCluster, python, running_cluster
from support.remote_bench import Bench, ended, is_alive, parent, slot_of
from support.remote_items import ManyItems
from support.until import until

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(python() is None, reason="Ray is not installed: `.ci/ray` does"),
    pytest.mark.timeout(600),
]

WORKERS = 2
ITEMS = 300
DRIVER = " -m steersman.extensions.ray.driver "


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """A cluster."""
    with running_cluster(WORKERS) as cluster:
        yield cluster


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
    many_items_are_done_once(benches("many"), cluster)
    idempotent_work_is_repeated(benches("again"))
    a_stop_leaves_no_process(benches("stop"))
    what_nothing_has_is_refused(benches("needs"))
    the_owner_is_killed(benches("owner"))
    the_connection_is_silent(benches("silent"))
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


def many_items_are_done_once(bench: Bench, cluster: RayCluster) -> None:
    """The owner is killed, then a worker: what is unknown is named, and a person decides about it.

    `make soak ARGS=remote` does the same with ten thousand items.
    """
    story = ManyItems(bench, cluster, ITEMS, seed=1)
    assert story.play() == []
    assert story.figures["unknown, when the owner was killed"] > 0


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


def the_connection_is_silent(bench: Bench) -> None:
    """A worker that hears nothing ends its commands at its fence, while Ray takes the owner for alive."""
    (bench.place.home / "config.toml").write_text("[ray]\nfence = 5.0\n")
    bench.write("held1")
    run = bench.start()
    until(lambda: len(bench.pids()) >= 2)
    (driver,) = (pid for pid, line in bench.place.processes().items() if DRIVER in line)
    os.kill(driver, signal.SIGSTOP)  # its connections stay
    bench.until_gone()
    os.kill(driver, signal.SIGCONT)
    assert ended(run)["reason"] == "outcome unknown: held1"


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
