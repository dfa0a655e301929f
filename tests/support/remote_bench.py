"""A project whose remote steps run on a cluster of this machine, and looks at what they started.

The commands write what they do into a folder that they are given, which the workers share with the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.driver import Place, processes_with
from support.patience import seconds
from support.ray_cluster import RayCluster, python
from support.until import until

__all__ = ["Bench", "ended", "is_alive", "parent", "slot_of", "slots"]

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
        self.place.environ |= {**cluster.environment, "HOME": str(root)}  # its mark
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

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a run on the cluster."""
        what = arguments or ("render.toml",)
        return self.place.start("run", *what, "--on", self.on, "--json", **options)

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
        """Wait until no process of a command is left, nor anything that one has started."""
        until(lambda: not processes_with(f"SHARED={self.shared}"))

    def outputs(self) -> set[str]:
        """Return the names of the files that came back, whose contents are right."""
        out = self.place.folder / "out"
        names = set(os.listdir(out)) if out.exists() else set[str]()
        return {name for name in names if (out / name).read_text() == f"{name}\n" * 10}


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


def slots(cluster: RayCluster) -> list[int]:
    """Return the processes in which the commands of a run are executed, on all nodes."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            is_slot = (folder / "cmdline").read_bytes().startswith(b"ray::Slot")
            if is_slot and parent(pid) in cluster.raylets and is_alive(pid):
                found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def ended(run: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the last event of a run."""
    out, _ = run.communicate(timeout=seconds(120))
    events = [json.loads(line) for line in out.splitlines()]
    found = [event for event in events if event["type"] == "run_ended"]
    assert found, out
    return {**found[-1], "events": events}
