"""What a workflow's run costs for each item of a `for_each`, beside tools that do the like.

Run it as `python benchmarks/workflow.py [ITEMS]`, with the package installed. The same empty command is
run that often by a bare loop, by a run of ours, and by doit and luigi where they are installed; each in a
process of its own, whose processor time with that of all it started is taken. They take turns, in some
rounds. Overhead is what is left when the bare loop's time of the same round is taken away. What an item
adds is without the start of the program: it is the difference to a run of 100.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from table import head, row, spread

ITEMS = 1_000
ROUNDS = 3
LIMIT = 0.7  # ms of the processor that an item may add to the bare loop
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
        rounds = [
            {tool: measured(command, folder, environ) for tool, command in commands.items()}
            for _ in range(ROUNDS)
        ]
        spread("bare loop: CPU an item", [one["bare loop"][1] / items * 1e3 for one in rounds])
        for tool in list(commands)[1:]:
            count = 100 if tool == SMALL else items
            bare = [one["bare loop"][1] / items for one in rounds]
            over = [one[tool][1] / count - less for one, less in zip(rounds, bare, strict=True)]
            spread(f"{tool}: CPU over the bare loop", [each * 1e3 for each in over])
            row(
                f"{tool}: time an item, least",
                min(one[tool][0] for one in rounds) / count * 1e3,
                unit="ms",
            )
            largest = max(one[tool][2] for one in rounds)
            row(f"{tool}: largest memory of a process", largest / 1024, unit="MiB")
        added = [
            (one[f"steersman, {items} items"][1] - one[SMALL][1]) / (items - 100)
            - one["bare loop"][1] / items
            for one in rounds
        ]
        adds = spread("an item adds to the bare loop", [each * 1e3 for each in added], LIMIT)
        once = statistics.median(one["bare loop"][1] / items for one in rounds) * 1e3
        row("  in bare commands", adds / once, unit="x")
        began = time.perf_counter()
        stored(folder, environ)
        row("looking at the run from its journal", time.perf_counter() - began, unit="s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ITEMS)
