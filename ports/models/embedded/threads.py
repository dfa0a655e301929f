"""How many threads the embedded model computes with.

Threads of llama.cpp wait for each other by spinning, after every layer. If one of them has no core, all
the others spin for a time slice. On two cores, a model of 0.5 billion parameters wrote 14 tokens in a
second with one thread and 1 with two while other work ran; on a quiet machine two were faster than one.
"""

import os
from pathlib import Path

_MOST = 8  # threads; more of them wait for the memory


def threads(cores: float, load: float) -> int:
    """Return the number for this many cores, of which other processes keep `load` busy on average."""
    return max(1, min(_MOST, round(cores - load)))


def threads_here() -> int:
    """Return the number for this machine, as busy as it is now."""
    return threads(_cores(), os.getloadavg()[0])


def _cores() -> float:
    """Return the cores that this process, or the container that this is, may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = float(len(affinity(0)) if affinity else os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        return cores
    return min(cores, int(quota) / int(period)) if quota.isdecimal() else cores
