"""How sessions leave a program: suspended or finalized, let go, or all given up at once.

A program gives its sessions up when it was cut off from the store of its home, and another one may take
them over. Then the tools end first, and nothing is written, told or asked any more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..journal.store import Lease
from ..machines import protocol as m
from ..machines.errors import StoreError, UnknownSession
from .offline import OfflineSession

if TYPE_CHECKING:
    from .live_session import LiveSession
    from .runtime import Runtime


def end_session(
    runtime: Runtime, session: str, order: Any, states: tuple[str, ...], timeout: float
) -> None:
    """Have a session suspended or finalized by `order`, unless it is in one of `states`; let it go.

    Raises `StoreError` if that takes longer than `timeout` seconds. Not for the loop's own thread.
    """
    live = runtime.sessions.get(session)
    if live is None or live.ref is None:
        return
    try:
        _end(runtime, live, order, states, timeout)
    except UnknownSession:
        if runtime.sessions.get(session) is live:
            raise  # else another thread has left it meanwhile


def _end(
    runtime: Runtime, live: LiveSession, order: Any, states: tuple[str, ...], timeout: float
) -> None:
    session = live.id
    if live.kind is OfflineSession:
        runtime.inspect(session, is_last=True)
        runtime.publish_all(session)
        runtime.run(let_go(runtime, live))
        return
    is_over = runtime.inspect(session).get("state", "idle") in states
    if not is_over:
        runtime.ask(session, order, timeout)
        is_over = live.termination.wait(timeout)
    runtime.inspect(session, is_last=True)  # earlier senders have their answers
    runtime.writer.flush()
    runtime.run(let_go(runtime, live))
    if not is_over:
        raise StoreError(
            f"session `{session}` did not end within {timeout:g} seconds",
            "nothing acknowledged is lost; the next start treats it as after a crash",
        )


async def let_go(runtime: Runtime, live: LiveSession) -> None:
    """Release a session and all its descendants, on the loop. Idempotent.

    No thread waits for the loop meanwhile: many that end at once would need all there are.
    """
    for member in reversed(runtime.family(live.id)):
        if runtime.sessions.pop(member.id, None) is not None:
            await member.executor.aclose()
            await asyncio.to_thread(_part_with, runtime, member)
            _retire(runtime, member)


def _part_with(runtime: Runtime, live: LiveSession) -> None:
    runtime.writer.flush()  # the pass that answered last is over now: all it decided is here
    runtime.commits.disown(live.id)
    runtime.store.release(live.lease)


def _retire(runtime: Runtime, live: LiveSession) -> None:
    """Let the actors of a session that is not owned any more go; a child's go with its parent's."""
    if not live.parent and live.ref is not None:
        runtime.root.tell(m.Retire(name=live.id, urn=live.ref.actor_urn))


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
        _retire(runtime, live)
    leases = [*(live.lease for live in given), *runtime.commits.claimed.values()]
    runtime.commits.claimed.clear()
    return leases


def own_again(runtime: Runtime) -> None:
    """Let a runtime write again, in sessions that it claims from now on."""
    runtime.loop.call_soon_threadsafe(runtime.commits.unfence)
