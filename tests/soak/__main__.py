"""Runs the suites at full size, or a part of it: `python tests/soak [SUITE]... [OPTIONS]`.

Each suite prints one line: the cases, what was wrong, the seconds, the promise; and below it each fault.
With `--keep` the figures go into docs/figures.json, of which docs/promises.md shows them.
"""

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import SystemRandom
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.suites import SUITES, Order, Suite

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures.json"
SHOWN = 5
"""Faults that are printed of each suite."""


def run(suite: Suite, order: Order, minutes: float) -> dict[str, Any]:
    """Play cases until there are as many as ordered, or the time is over; return the figures."""
    began, count, wrong, figures = time.monotonic(), 0, list[str](), dict[str, float]()
    if minutes:
        order = replace(order, until=began + 60 * minutes)
    pieces = suite.play(order)
    try:
        with closing(pieces):
            for piece in pieces:
                count += piece.count
                wrong += piece.wrong
                for fault in piece.wrong:  # hours may pass before the end
                    print(f"found: {fault}", file=sys.stderr, flush=True)
                figures |= piece.figures
                if not suite.is_summed and (order.is_over() or count >= order.count):
                    break
    except Exception as error:  # a suite that breaks is a finding like any other
        wrong.append(f"{type(error).__name__}: {error}"[:2_000])
    return {
        "count": count,
        "cases": suite.cases,
        "wrong": wrong,
        "seconds": round(time.monotonic() - began, 1),
        "figures": figures,
    }


def line(name: str, found: dict[str, Any]) -> str:
    """Return the figures of a suite on one line."""
    cases = f"{found['count']:,} {found['cases']}"
    return f"{name:10}{cases:28}{len(found['wrong']):5} wrong{found['seconds']:9.1f} s  "


def keep(file: Path, name: str, found: dict[str, Any], command: str) -> None:
    """Write the figures of a suite into a file, beside those of the others, in their order."""
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    kept[name] = found | {"wrong": len(found["wrong"])}
    kept[name] |= {"command": command, "date": date.today().isoformat()}
    ordered = {suite: kept[suite] for suite in SUITES if suite in kept}
    file.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run the suites that are named, or all; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser("make soak", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--part", type=float, default=1.0, help="of the full size (1.0)")
    parser.add_argument("--minutes", type=float, default=0.0, help="end each suite after so many")
    parser.add_argument("--seed", type=int, help="the first seed (any)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--keep", action="store_true", help="keep the figures for the docs")
    asked = parser.parse_args(arguments)
    for number in (signal.SIGHUP, signal.SIGTERM):  # not ignored by what is started under `nohup`
        signal.signal(number, lambda *_: sys.exit(1))  # so that what a suite has started is ended
    if unknown := set(asked.suites) - SUITES.keys():
        parser.error(
            f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}"
        )
    seed = SystemRandom().randrange(1 << 31) if asked.seed is None else asked.seed
    command = f'make soak ARGS="{shlex.join(arguments)}"' if arguments else "make soak"
    print(f"{command}, from seed {seed}", flush=True)
    failed = 0
    for name in asked.suites or SUITES:
        count = max(1, round(SUITES[name].target * asked.part))
        with tempfile.TemporaryDirectory(prefix="steersman-soak-") as folder:
            found = run(
                SUITES[name], Order(count, seed, asked.processes, Path(folder)), asked.minutes
            )
        print(line(name, found) + SUITES[name].promise, flush=True)
        for what, figure in found["figures"].items():
            print(f"{'':10}{what}: {figure:g}")
        for wrong in found["wrong"][:SHOWN]:
            print(f"{'':10}{wrong}", flush=True)
        failed += bool(found["wrong"])
        if asked.keep:
            keep(FIGURES, name, found, command)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
