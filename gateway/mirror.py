"""Keeps `<path>/<session>.toml` like the queue it mirrors: soon after each commit, atomically.

A thread of its own writes; of several changes in a row only the newest is written. A mirror that
cannot be written is told once and never harms the session.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..machines.errors import ConfigError
from ..workflows.paths import make_private

__all__ = ["Mirror"]


class Mirror:
    """Writes queue documents into a folder; `on_fault` is told the first fault, in a sentence."""

    def __init__(self, folder: Path, on_fault: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_fault = on_fault
        self._waiting: dict[str, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._is_closing = False
        self._has_failed = False
        self._thread: threading.Thread | None = None

    def put(self, session: str, document: dict[str, Any]) -> None:
        """Have a document written; returns at once."""
        with self._changed:
            self._waiting[session] = document
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(target=self._run, name="queue-mirror", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, then end."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                waiting, self._waiting = self._waiting, {}
            for session, document in waiting.items():
                self._write(session, document)
            if self._is_closing and not self._waiting:
                return

    def _write(self, session: str, document: dict[str, Any]) -> None:
        path = self._folder / f"{session}.toml"
        try:
            if document["items"] or path.is_symlink() or path.exists():
                make_private(self._folder)
                _replace(path, document)
        except (OSError, ConfigError) as error:
            if not self._has_failed:
                self._has_failed = True
                why = error.strerror if isinstance(error, OSError) else error.message
                self._on_fault(f"the queue's copy `{path}` cannot be written: {why}")


def _replace(path: Path, document: dict[str, Any]) -> None:
    """Replace a file in one step; not synced, for it is a copy and must not slow the journal."""
    from .queue_file import write

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(write(document))
    temporary.replace(path)
