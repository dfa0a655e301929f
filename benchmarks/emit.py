"""How long an agent waits for one of our hooks, as a whole process, against `python -c pass`.

The baseline is measured in the same run, in turn with the others, so that a busy machine slows all
alike. `emit` is what an agent's configuration calls: the program's script, with a payload on standard
input and an event that is synced to disk. Run it as `python benchmarks/emit.py`, with the package
installed; the limit in milliseconds holds for a quiet machine.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import head, row

RUNS = 25
LIMIT_MS = 60.0
LIMIT_TIMES = 6.0
PAYLOAD = json.dumps({"session_id": "s-1", "cwd": "/tmp", "text": "x" * 2000}).encode()


def seconds(command: list[str], home: str) -> float:
    """Run a whole process and return how long it took."""
    environ = {**os.environ, "STEERSMAN_HOME": home}
    began = time.perf_counter()
    subprocess.run(command, env=environ, input=PAYLOAD, capture_output=True, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    script = Path(sys.executable).with_name("steersman")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "steersman"]
    emit = [*program, "hooks", "emit"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "hooks emit, an event that is synced": [*emit, "hermes", "session-end"],
        "hooks emit, an event that is not": [*emit, "hermes", "prompt-submit"],
        "hooks emit, of a session nobody knows": [*emit, "claude", "session-end"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as home:
        seconds([*emit, "hermes", "session-start"], home)
        for _ in range(RUNS):
            for name, command in commands.items():
                times[name].append(seconds(command, home))
    medians = {name: statistics.median(found) for name, found in times.items()}
    baseline = medians.pop("python -c pass")
    head(f"a hook of another agent, median of {RUNS}")
    row("load of this machine, a core (limits hold below 0.5)", load, unit="processes")
    row("python -c pass", baseline * 1e3, unit="ms")
    for name, median in medians.items():
        row(name, median * 1e3, f"<= {LIMIT_MS:g}", ok=median * 1e3 <= LIMIT_MS, unit="ms")
        ratio = median / baseline
        row("  as times of the baseline", ratio, f"<= {LIMIT_TIMES:g}", ok=ratio <= LIMIT_TIMES)


if __name__ == "__main__":
    main()
