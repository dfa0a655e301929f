"""`--watch`: shows a session again whenever something happened in it, and costs nothing meanwhile.

The process that has the session open sends each event through its socket; without one, the store
is read twice a second. Streamed text is drawn at most a few times a second.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager

from ...gateway.redaction import Redactor
from ...gateway.remote import Remote
from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow
from ...machines.errors import SteersmanError
from ...workflows.paths import Paths
from ..output import document, show
from .view import dump_now, printed

PAUSE = 0.25
"""Seconds between two pictures."""
LOOK = 0.5
"""Seconds between two looks at the store, where no program has the session open."""


def watch(environ: Mapping[str, str], store: SqliteStore, row: SessionRow, form: str) -> int:
    """Show a session until Ctrl-C; on a terminal in place, elsewhere one picture after the other."""
    redactor = Redactor(environ)
    with _canvas() as draw:
        for _ in pulses(environ, store, row.session):
            data = redactor.data(dump_now(environ, store, store.row(row.session)))
            is_line = form == "json" and not sys.stdout.isatty()
            draw(document(data, None) if is_line else printed(data, form, environ))
    return 0


def pulses(environ: Mapping[str, str], store: SqliteStore, session: str) -> Generator[None]:
    """Yield at once, and then whenever something may have changed; for ever."""
    yield
    while True:
        seen = store.row(session)
        owner = store.owner(session)
        if owner is None:
            time.sleep(LOOK)
            if store.row(session) != seen or store.owner(session) is not None:
                yield
            continue
        try:
            remote = Remote.connect(Paths.of(environ).state, session, owner)
        except SteersmanError:
            time.sleep(LOOK)
            continue
        with closing(remote):
            yield from _of_events(remote)
        yield


def _of_events(remote: Remote) -> Generator[None]:
    """Yield after events, but not more often than can be drawn; ends when the owner does."""
    try:
        events = remote.events()
    except SteersmanError:
        time.sleep(LOOK)
        return
    came, is_over = threading.Event(), threading.Event()

    def listen() -> None:
        try:
            for _ in events:
                came.set()
        except (SteersmanError, OSError, ValueError):
            pass  # it went, or we did
        finally:
            is_over.set()
            came.set()

    threading.Thread(target=listen, daemon=True).start()
    yield  # what happened before we listened
    while not is_over.is_set():
        came.wait()
        came.clear()
        yield
        time.sleep(PAUSE)


@contextmanager
def _canvas() -> Generator[Callable[[str], None]]:
    """Give a way to draw a picture over the last one; what was on the screen comes back after."""
    if not sys.stdout.isatty():
        yield show
        return
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l")  # what is too long is cut, not broken
    try:
        yield _over
    finally:
        sys.stdout.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def _over(text: str) -> None:
    """Draw in one write, each line over the old one: nothing is wiped first, so nothing flickers."""
    height = shutil.get_terminal_size().lines
    lines = text.split("\n")
    if len(lines) > height:
        lines = [*lines[: height - 1], f"… {len(lines) - height + 1} more lines"]
    body = "\x1b[K\r\n".join(lines)
    sys.stdout.write(f"\x1b[?2026h\x1b[H{body}\x1b[K\x1b[J\x1b[?2026l")
    sys.stdout.flush()
