"""What a remote step's item costs on a Ray cluster, beside plain tasks of Ray and a run here.

Run it as `python benchmarks/remote.py [ITEMS [WORKERS …]]`, after `.ci/ray`. The same command is run that
often by tasks of Ray, none of which is ever repeated, and by a step of ours, on the same workers of one
processor each; and by that step on this machine. They take turns, in some rounds. First it is an empty
command; then one that copies a file, which is sent with the item, and whose copy is brought back. What is
measured begins when the first item is done, so that no start of a program or a worker is in it.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from table import head, row, spread

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.ray_cluster import RayCluster, python

ITEMS = 1_000
WORKERS = (1, 2, 4)
ROUNDS = 3
LIMIT = 2.0  # ms that an item may take longer than a plain task
TRUE, CP = (shutil.which(name) or f"/bin/{name}" for name in ("true", "cp"))
FILE = """
[workflow]
name = "remote"
parallel = 1000
[[step]]
id = "work"
for_each = "range({items})"
parallel = {parallel}
run = {run}
remote = {remote}
"""
TASKS = """
import os, subprocess, sys, tempfile, time
import ray
ray.init(sys.argv[1], log_to_driver=False)
@ray.remote(num_cpus=1, max_retries=0)
def work(number, sent):
    if sent is None:
        return subprocess.run([{true!r}], check=True).returncode
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in"), os.path.join(folder, "out")
        with open(source, "wb") as file:
            file.write(sent)
        subprocess.run([{cp!r}, source, target], check=True)
        with open(target, "rb") as file:
            return file.read()
def sent(number):
    if {is_empty}:
        return None
    with open(f"in/{{number}}", "rb") as file:
        return file.read()
def all_of(numbers):
    results = [work.remote(number, sent(number)) for number in numbers]
    for number, result in zip(numbers, ray.get(results)):
        if not {is_empty}:
            with open(f"copies/{{number}}", "wb") as file:
                file.write(result)
all_of(range({warm}))
began = time.perf_counter()
all_of(range({items}))
print(time.perf_counter() - began)
"""


class Command(NamedTuple):
    """What each item runs: the step's `run` and `remote`."""

    title: str
    run: str
    remote: str


COMMANDS = (
    Command("empty commands", f"['{TRUE}']", "{ cpus = 1 }"),
    Command(
        "copies of a file",
        f"['{CP}', 'in/{{{{ item }}}}', 'out/{{{{ item }}}}']",
        "{ cpus = 1, inputs = ['in/{{ item }}'], outputs = ['out/{{ item }}'] }",
    ),
)


def tasks(
    folder: Path, environ: dict[str, str], cluster: RayCluster, items: int, is_empty: bool
) -> float:
    """Return seconds an item as plain tasks."""
    program = folder / "tasks.py"
    warm = 4 * len(cluster.raylets)
    text = TASKS.format(true=TRUE, cp=CP, items=items, warm=warm, is_empty=is_empty)
    program.write_text(text)
    # its address is that of the node: see `probe` of the driver
    environ = {**environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    ran = subprocess.run(
        [str(python()), str(program), cluster.address],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ran.stdout.splitlines()[-1]) / items


def steps(folder: Path, environ: dict[str, str], *arguments: str) -> float:
    """Return seconds an item as a step of a run."""
    command = [str(python()), "-m", "steersman", "run", "remote.toml", "--json", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None
        first, count, last = 0.0, 0, 0.0
        for line in run.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["type"] == "step" and event["state"] == "done" and "item" in event:
                last = time.perf_counter()
                first = first or last
                count += 1
    assert run.returncode == 0
    return (last - first) / (count - 1)


def main(items: int, workers: list[int]) -> None:
    """Measure and print."""
    if python() is None:
        print("Ray is not installed: `.ci/ray` does that")
        return
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="sb-") as name:
        for count in workers:
            folder = Path(name, str(count))
            folder.mkdir()
            cluster = RayCluster(folder, count)
            try:
                for command in COMMANDS:
                    head(f"a step of {items} {command.title}, {count} workers of Ray")
                    measure(folder / command.title, cluster, items, command)
            finally:
                cluster.close()


def measure(folder: Path, cluster: RayCluster, items: int, command: Command) -> None:
    """Measure on one cluster."""
    home, work = folder / "home", folder / "work"
    environ = {**cluster.environment, "STEERSMAN_HOME": str(home)}
    for made in (home, work / "in", work / "copies"):
        made.mkdir(parents=True)
    (home / "config.toml").write_text("[checkpoints]\nbudget = '1 GiB'\n")
    for number in range(items):
        (work / "in" / str(number)).write_text(f"{number}\n" * 100)
    workers = len(cluster.raylets) - 1
    text = FILE.format(items=items, run=command.run, remote=command.remote, parallel=8 * workers)
    (work / "remote.toml").write_text(text)
    plain, ours, here = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        is_empty = command is COMMANDS[0]
        plain.append(tasks(work, environ, cluster, items, is_empty) * 1e3)
        ours.append(steps(work, environ, "--on", f"ray:{cluster.address}") * 1e3)
        here.append(steps(work, environ) * 1e3)
    spread("plain tasks: time an item", plain)
    spread("steersman on Ray: time an item", ours)
    spread("steersman here: time an item", here)
    over = [mine - theirs for mine, theirs in zip(ours, plain, strict=True)]
    spread("steersman on Ray over plain tasks", over, LIMIT)
    row("steersman on Ray: items a second, most", 1e3 / min(ours), unit="1/s")
    row("plain tasks: items a second, most", 1e3 / min(plain), unit="1/s")
    row("steersman here: items a second, most", 1e3 / min(here), unit="1/s")


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(given[0] if given else ITEMS, given[1:] or list(WORKERS))
