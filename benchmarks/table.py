"""How benchmarks print: a line for each measure, with its limit and whether it was kept.

With a folder in `STEERSMAN_FIGURES` the measures are kept there, too, as `NAME.json`, for
docs/performance.md; a benchmark that draws only a part of its tables leaves the others as they were.
"""

import atexit
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["head", "machine", "row", "spread"]

_measured: dict[str, list[dict[str, str]]] = {}


def machine() -> str:
    """Name the machine: processors, their model, system."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{os.cpu_count()} x {model or platform.machine()}, {platform.system()} {platform.release()}"


def head(title: str) -> None:
    """Print what the lines below are about."""
    _measured[title] = []
    print(f"{title:<52}{'value':>12}  {'limit':<14}")


def row(name: str, value: float, limit: str = "", unit: str = "", ok: bool | None = None) -> None:
    """Print one measure: `limit` in words, `ok` none where there is no limit to keep."""
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    verdict = {None: "", True: "ok", False: "MISSED"}[ok]
    print(f"  {name:<50}{number:>12}  {limit or unit:<14}{verdict}", flush=True)
    line = {"name": name.strip(), "value": number, "limit": limit or unit, "verdict": verdict}
    title = next(reversed(_measured), "")
    _measured.setdefault(title, []).append(line)


def spread(
    name: str, values: Sequence[float], limit: float | None = None, unit: str = "ms"
) -> float:
    """Print least and median, both in `unit`; the limit is for the median, which is returned."""
    median = statistics.median(values)
    row(f"{name}, least", min(values), unit=unit)
    if limit is None:
        row(f"{name}, median", median, unit=unit)
    else:
        row(f"{name}, median", median, f"<= {limit:g} {unit}", ok=median <= limit)
    return median


def _keep() -> None:
    """Keep what was measured, with the machine, the day and the load."""
    folder = os.environ.get("STEERSMAN_FIGURES", "")
    if not (folder and _measured):
        return
    path = Path(folder) / f"{Path(sys.argv[0]).stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = json.loads(path.read_text())["tables"] if path.exists() else {}
    day, load = time.strftime("%Y-%m-%d", time.gmtime()), f"{os.getloadavg()[0]:.1f}"
    taken = {"date": day, "load": load, "machine": machine()}
    for title, lines in _measured.items():
        tables[title] = {**taken, "lines": lines}
    path.write_text(json.dumps({"tables": tables}, indent=1) + "\n")


atexit.register(_keep)
