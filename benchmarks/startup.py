"""How long the command line takes to start, as whole processes, against `python -c pass`.

The baseline is measured in the same run, in turn with the others, so that a busy machine slows all
alike. Run it as `python benchmarks/startup.py`, with the package installed.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from table import head, row

RUNS = 15
COMMANDS = (
    ("--version", ("--version",), 5.0),
    ("--help", ("--help",), 12.0),
    ("sessions list, of an empty home", ("sessions", "list"), None),
    ("inspect --help", ("inspect", "--help"), None),
)


def seconds(command: list[str], home: str) -> float:
    """Run a whole process and return how long it took."""
    environ = {**os.environ, "STEERSMAN_HOME": home}
    began = time.perf_counter()
    subprocess.run(command, env=environ, capture_output=True, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    program = [sys.executable, "-m", "steersman"]
    commands = {"python -c pass": [sys.executable, "-c", "pass"]}
    commands |= {name: [*program, *arguments] for name, arguments, _ in COMMANDS}
    times: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(RUNS):
            for name, command in commands.items():
                times[name].append(seconds(command, home))
    medians = {name: statistics.median(found) for name, found in times.items()}
    baseline = medians.pop("python -c pass")
    head(f"start of the command line, median of {RUNS}")
    row("python -c pass", baseline * 1e3, unit="ms")
    for name, _, limit in COMMANDS:
        row(name, medians[name] * 1e3, unit="ms")
        if limit is not None:
            ratio = medians[name] / baseline
            row(f"{name}, as times of the baseline", ratio, f"<= {limit:g}", ok=ratio <= limit)


if __name__ == "__main__":
    main()
