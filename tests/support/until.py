"""Waiting for what nobody tells a test: it is looked at again and again, with a pause between."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from support.patience import seconds

PAUSE = 0.01
"""Seconds between two looks, which leave the processor to what is waited for."""


def until(holds: Callable[[], Any], what: Any = "", *, quiet: float = 60.0) -> Any:
    """Ask until the answer is true, and return it; `what` is said, or called and said, if it never is."""
    give_up, pause = time.monotonic() + seconds(quiet), threading.Event()
    while not (found := holds()):
        assert time.monotonic() < give_up, f"in vain: {what() if callable(what) else what}"
        pause.wait(PAUSE)
    return found


async def looked_until(holds: Callable[[], Any], what: Any = "", *, quiet: float = 60.0) -> Any:
    """Do so in a thread; what holds is asked there."""
    return await asyncio.to_thread(until, holds, what, quiet=quiet)
