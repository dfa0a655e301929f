"""`--watch`: shows a session again after each change, and uses no CPU time in between.

The process that has the session open sends each event through its socket; without one, the store
is read twice a second. Streamed text is drawn at most a few times a second.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager

from ...gateway.follow import Follower
from ...gateway.reach import SessionReach
from ...gateway.wording.terminal import audited_but_colours
from ...journal.store import Store
from ...machines.errors import SteersmanError
from ...workflows.paths import Paths
from ..output import show

PAUSE = 0.25
"""Seconds between two drawings."""


def watch(store: Store, session: str, dump: Callable[[], str]) -> None:
    """Show a session until Ctrl-C; on a terminal in place, elsewhere one dump after the other."""
    with _canvas() as draw:
        for _ in changes(store, session):
            draw(dump())


def changes(store: Store, session: str) -> Generator[None]:
    """Yield at once, and then after each possible change, but not more often than can be drawn."""
    came = threading.Event()
    follower = Follower(
        SessionReach(Paths.of(os.environ), os.environ, store), session, None, below="all"
    )

    async def follow() -> None:
        async with aclosing(follower.batches()) as batches:
            async for batch in batches:
                if batch.events or batch.is_joined:
                    came.set()

    faults: list[SteersmanError] = []

    def listen() -> None:
        try:
            asyncio.run(follow())
        except SteersmanError as fault:
            faults.append(fault)
            came.set()

    threading.Thread(target=listen, daemon=True).start()
    while not faults:
        yield
        came.wait()
        came.clear()
        time.sleep(PAUSE)
    raise faults[0]


@contextmanager
def _canvas() -> Generator[Callable[[str], None]]:
    """Yield a function that draws over the last drawing; afterwards the screen is restored."""
    if not sys.stdout.isatty():
        yield show
        return
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l")  # long lines are cut, not broken
    try:
        yield _over
    finally:
        sys.stdout.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def _over(text: str) -> None:
    """Draw in one write, each line over the old one: nothing is erased first, so nothing flickers."""
    height = shutil.get_terminal_size().lines
    lines = text.split("\n")
    if len(lines) > height:
        lines = [*lines[: height - 1], f"… {len(lines) - height + 1} more lines"]
    body = "\x1b[K\r\n".join(map(audited_but_colours, lines))
    sys.stdout.write(f"\x1b[?2026h\x1b[H{body}\x1b[K\x1b[J\x1b[?2026l")
    sys.stdout.flush()
