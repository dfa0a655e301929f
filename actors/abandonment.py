"""The end of all sessions of a program that may not own them any more.

Such a program was cut off from the store of its home, and another one may take its sessions over. So
the tools end first; then nothing is written, told or asked any more.
"""

from __future__ import annotations

import asyncio

from ..journal.store import Lease
from .runtime import Runtime, retire


def abandon(runtime: Runtime, reason: str, hint: str) -> list[Lease]:
    """Give up every session of a runtime, and return the leases once every tool is proven dead.

    Nothing more is written until `own_again`. The store is not asked. Not for the loop's own thread.
    """
    return runtime.run(_abandoned(runtime, reason, hint), timeout=None)


async def _abandoned(runtime: Runtime, reason: str, hint: str) -> list[Lease]:
    runtime.commits.fence(reason, hint)
    given = list(runtime.sessions.values())
    runtime.sessions.clear()
    endings = (live.executor.aclose() for live in reversed(given))
    await asyncio.gather(*endings, return_exceptions=True)
    for live in given:
        runtime.commits.disown(live.id)
        retire(runtime, live)
    leases = [*(live.lease for live in given), *runtime.commits.claimed.values()]
    runtime.commits.claimed.clear()
    return leases


def own_again(runtime: Runtime) -> None:
    """Let a runtime write again, in sessions that it claims from now on."""
    runtime.loop.call_soon_threadsafe(runtime.commits.unfence)
