"""Waits with a time limit in which the time that this process did not run does not count.

A process may be stopped (Ctrl-Z, a debugger, a container that is paused) and its machine may sleep, while
what it waits for arrives. A timer that decides by the clock alone would call that silence.
"""

import asyncio
from collections.abc import Collection
from typing import Any

_TICK = 1.0  # seconds that are counted at once


async def wait_awake(futures: Collection[asyncio.Future[Any]], limit: float) -> bool:
    """Wait until one of some futures is done; False if none is after `limit` seconds."""
    loop, left = asyncio.get_running_loop(), limit
    while left > 0:
        began, length = loop.time(), min(_TICK, left)
        done, _ = await asyncio.wait(futures, timeout=length, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return True
        if loop.time() - began < length + _TICK:
            left -= length
    return False
