"""How long a test waits before it fails, on a quiet machine and on a busy one.

Every bound in a test is written as the seconds that a quiet machine never needs, and passed through
`seconds`, which multiplies it by how much slower this machine is. `pytest --slower 5`, or
`STEERSMAN_TEST_SLOWER=5` in the environment, sets the factor. Without either it is estimated from
the load average at each wait: with as many other processes ready to run as there are cores, each
gets half the time, and every bound is twice as long.
"""

import os

VARIABLE = "STEERSMAN_TEST_SLOWER"
MOST = 20.0
"""The largest factor that is estimated: a test that hangs has to end at some time."""

given = os.environ.get(VARIABLE, "")
_priority = 1.25 ** max(0, os.nice(0))  # what one step of `nice` is worth to the kernel


def slowness() -> float:
    """Return the factor for all bounds: the one that was set, or an estimate from the load."""
    if given:
        return float(given)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(1.0 + load * _priority, MOST)


def seconds(quiet: float) -> float:
    """Return the bound of a wait that on a quiet machine ends within `quiet` seconds."""
    return quiet * slowness()
