"""How long a test waits before it fails: so long that no machine is too busy, but not for ever.

Every bound in a test is written as the seconds that a quiet machine never needs, and passed through
`seconds`, which multiplies it by a fixed factor. The factor does not follow the load of the machine,
because nobody knows at the beginning of a wait how busy the machine will be before its end. A large
factor costs nothing where a test passes: a wait ends as soon as its condition holds. The time after which
pytest-timeout ends a whole test is multiplied by the same factor: it stays longer than the waits inside.

`pytest --slower 1`, or `STEERSMAN_TEST_SLOWER=1` in the environment, sets another factor: a small one to
see a test that hangs fail soon, a larger one for an emulated processor.

`seconds` is for bounds only. A time that a test lets pass is a plain number.
"""

import os

VARIABLE = "STEERSMAN_TEST_SLOWER"
FACTOR = 10.0
"""What bounds are multiplied by unless the environment says otherwise."""

given = os.environ.get(VARIABLE, "")


def slowness() -> float:
    """Return the factor for all bounds."""
    return float(given or FACTOR)


def seconds(quiet: float) -> float:
    """Return the bound of a wait that on a quiet machine ends within `quiet` seconds."""
    return quiet * slowness()
