"""What checking a workflow costs, beside what reading its file costs with the standard library alone.

Run it as `python benchmarks/workflow_check.py`, with the package installed. A file of 1,000 steps with
conditions, templates, two needs each and a program to look for; the same with a fault in every step; the
whole command, with the start of the interpreter; and one item's arguments filled in.
"""

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from table import head, row

from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.flow.template import render_words
from steersman.workflows.paths import Paths

STEPS = 1_000
ROUNDS = 5
LIMIT = 500.0  # ms, for the whole command


def text(fault: str = "") -> str:
    """Write a workflow of many steps; each needs the two before it."""
    blocks = ['[workflow]\nname = "large"\n[workflow.vars]\nmode = "full"\n']
    for number in range(STEPS):
        needs = ", ".join(f'"s{one}"' for one in range(max(0, number - 2), number))
        before = f"{{{{ steps.s{number - 1}.output }}}}" if number else ""
        blocks.append(
            f'[[step]]\nid = "s{number}"\nneeds = [{needs}]\nwhen = "vars.mode{fault} == \'{number}\'"\n'
            f'run = ["echo", "{{{{ vars.mode }}}} {number}", "{before}"]\n'
            "timeout = 3.0\nretry = { max = 2 }\n"
        )
    return "".join(blocks)


def best(work: Callable[[], object]) -> float:
    """Do it some times and return the shortest time, in milliseconds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1000)
    return min(times)


def main() -> int:
    """Measure, print a table, and fail if the promise of 0.5 s is broken."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        around = Surroundings(
            paths=Paths.of({"STEERSMAN_HOME": name}), folder=folder, environ=dict(os.environ)
        )
        sound, faulty = folder / "sound.toml", folder / "faulty.toml"
        sound.write_text(text())
        faulty.write_text(text(fault="l"))
        assert not check_file(sound, around).errors
        assert len(check_file(faulty, around).errors) == STEPS
        read = best(lambda: tomllib.loads(sound.read_text()))
        checked = best(lambda: check_file(sound, around))
        told = best(lambda: check_file(faulty, around))
        command = [sys.executable, "-m", "steersman", "workflow", "check", str(sound)]
        environ = {**os.environ, "STEERSMAN_HOME": name}
        whole = best(lambda: subprocess.run(command, env=environ, check=True, capture_output=True))
        bare = best(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    values = {"item": "src/a.ts", "vars": {"to": "zod"}}
    words = ("rewrite", "--to={{ vars.to }}", "{{ item }}")
    filled = best(lambda: [render_words(words, values) for _ in range(1_000)])
    head(f"Workflows: a file of {STEPS:,} steps, best of {ROUNDS}")
    row("read it (tomllib alone)", read, unit="ms")
    row("check it", checked, unit="ms")
    row(f"find {STEPS:,} faults in it", told, unit="ms")
    row("python -c '', which starts and ends", bare, unit="ms")
    row("steersman workflow check, as a command", whole, "500 ms", ok=whole <= LIMIT)
    row("fill in the arguments of 1,000 items", filled, unit="ms")
    return 0 if whole <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
