"""How long it takes to spawn a command, and to stop one, with the proof that nothing is left.

Run it as `python benchmarks/process.py`, with the package installed.
"""

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from table import head, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.hostile import HOSTILE

from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import ProcessSpec

RUNS = 20
HOSTILE_RUNS = 9
GRACE = 0.1
OBEDIENT = "echo ready; exec sleep 60"
GRANDCHILD = "trap '' TERM; (trap '' TERM; setsid sh -c 'echo ready; sleep 60') & wait"


def command(*argv: str) -> ProcessSpec:
    """Make a command with the environment of this program."""
    return ProcessSpec(argv=argv, cwd=Path("/"), environment=dict(os.environ), grace=GRACE)


async def spawn_cost(host: ProcessHost) -> tuple[float, float]:
    """Seconds until `true` runs, and until its result is there."""
    began = time.perf_counter()
    process = await host.spawn(command("true"))
    started = time.perf_counter()
    await process.wait()
    return started - began, time.perf_counter() - began


async def stop_latency(host: ProcessHost, *argv: str) -> float:
    """Seconds from the stop of a command that has said something to the proof that it is gone."""
    is_ready = asyncio.Event()
    process = await host.spawn(command(*argv), lambda piece: is_ready.set())
    await is_ready.wait()
    began = time.perf_counter()
    process.stop()
    result = await process.wait()
    assert (result.status, result.survivors) == ("killed", ())
    return time.perf_counter() - began


def show(name: str, seconds: list[float], limit: float | None = None) -> None:
    """Print the median in milliseconds; `limit` is in milliseconds, too."""
    value = statistics.median(seconds) * 1e3
    if limit is None:
        row(name, value, unit="ms")
    else:
        row(name, value, f"<= {limit:g} ms", ok=value <= limit)


async def main() -> None:
    """Measure and print."""
    host = ProcessHost()
    began = time.perf_counter()
    await (await host.spawn(command("true"))).wait()
    first = time.perf_counter() - began
    spawns = [await spawn_cost(host) for _ in range(RUNS)]
    obedient = [await stop_latency(host, "sh", "-c", OBEDIENT) for _ in range(RUNS)]
    deaf = [await stop_latency(host, "sh", "-c", GRANDCHILD) - GRACE for _ in range(RUNS)]
    hostile = {
        name: [await stop_latency(host, *argv) for _ in range(HOSTILE_RUNS)]
        for name, argv in HOSTILE.items()
    }
    await host.aclose()
    head(f"processes, median of {RUNS}")
    show("first command, with the spawner's start", [first])
    show("spawn, until the command runs", [spawn for spawn, _ in spawns])
    show("spawn, until the result of `true`", [whole for _, whole in spawns])
    show("stop of a command that obeys", obedient, 20)
    show("stop of a deaf setsid grandchild, beyond grace", deaf, 50)
    head(f"hostile programs, from stop to proof, median of {HOSTILE_RUNS}")
    for name, times in hostile.items():
        show(name, times, GRACE * 1e3 + 50)


if __name__ == "__main__":
    asyncio.run(main())
