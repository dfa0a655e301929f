"""What a workflow's run costs for each item of a `for_each`, beside tools that do the like.

Run it as `python benchmarks/workflow.py [ITEMS]`, with the package installed. The same empty command is
run that often by a bare loop, by a run of ours, and by doit and luigi where they are installed; each in a
process of its own, whose processor time with that of all it started is taken. Overhead is what is left
when the bare loop's is taken away.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from table import head, row

ITEMS = 1_000
SMALL = "steersman, 100 items"
TRUE = shutil.which("true") or "/bin/true"
FILE = """
[workflow]
name = "empty"
[[step]]
id = "work"
for_each = "range({items})"
parallel = 2
idempotent = true
run = ["{true}"]
"""
LOOP = "import subprocess\nfor _ in range({items}): subprocess.run(['{true}'], check=True)"
DOIT = """
def task_work():
    for number in range({items}):
        yield {{"name": str(number), "actions": [["{true}"]]}}
"""
LUIGI = """
import luigi, subprocess
class Work(luigi.Task):
    number = luigi.IntParameter()
    is_done = False
    def run(self):
        subprocess.run(["{true}"], check=True)
        self.is_done = True
    def complete(self):
        return self.is_done
luigi.build([Work(number=n) for n in range({items})], local_scheduler=True, log_level="ERROR")
"""


def measured(command: list[str], folder: Path, environ: dict[str, str]) -> tuple[float, float, int]:
    """Run a command; return seconds, seconds of processor time, and its largest memory in KiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, after.ru_maxrss


def steersman(*arguments: str) -> list[str]:
    """Return our command."""
    return [sys.executable, "-m", "steersman", *arguments]


def others(folder: Path, items: int) -> dict[str, list[str]]:
    """Return the commands of the tools that are installed, by name."""
    found: dict[str, list[str]] = {}
    for name, text in (("doit", DOIT), ("luigi", LUIGI)):
        if not has(name):
            print(f"{name} is not installed here: `pip install {name}` to compare with it")
            continue
        path = folder / f"{name}_work.py"
        path.write_text(text.format(items=items, true=TRUE))
        run = ["-m", "doit", "-f", str(path), "-v", "0"] if name == "doit" else [str(path)]
        found[name] = [sys.executable, *run]
    return found


def has(name: str) -> bool:
    """Whether a package can be imported."""
    return (
        subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True).returncode
        == 0
    )


def stored(folder: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Return what is stored of the newest session."""
    command = steersman("inspect", "last", "--format", "json")
    ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=True)
    data: dict[str, Any] = json.loads(ran.stdout)
    return data


def main(items: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder, environ = Path(name), {**os.environ, "STEERSMAN_HOME": f"{name}/home"}
        (folder / "loop.py").write_text(LOOP.format(items=items, true=TRUE))
        for number in (100, items):
            (folder / f"w{number}.toml").write_text(FILE.format(items=number, true=TRUE))
        commands = {
            "bare loop": [sys.executable, str(folder / "loop.py")],
            SMALL: steersman("run", "w100.toml"),
            f"steersman, {items} items": steersman("run", f"w{items}.toml"),
            **others(folder, items),
        }
        head(f"a workflow of {items} empty commands")
        bare = 0.0
        for tool, command in commands.items():
            count = 100 if tool == SMALL else items
            seconds, used, memory = measured(command, folder, environ)
            each = used / count * 1000
            bare = bare or each
            row(f"{tool}: CPU over the bare loop, an item", each - bare, unit="ms")
            row(f"{tool}: time an item", seconds / count * 1000, unit="ms")
            row(f"{tool}: largest memory of a process", memory / 1024, unit="MiB")
        began = time.perf_counter()
        stored(folder, environ)
        row("looking at the run from its journal", time.perf_counter() - began, unit="s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ITEMS)
