"""Until when a session's commands were certainly at work, as far as the next process can know.

A file's time says it: it is touched while calls run and when one has ended, and by the process that
supervises a command when nothing of that is left, which also ends the commands of a dead program. What
changed up to then was changed while a call ran, and so counts as the agent's like any other such change.
What changed later may be a person's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .change_log import OpenCall
from .restore_plan import PathChange
from .scan import PathState

BEAT = 0.5
"""Seconds between two touches."""


class Heartbeat:
    """One session's, with its `file`; `beat` is quick, and may be called from any thread."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def beat(self) -> None:
        """Say that commands run now."""
        with suppress(OSError):  # without it changes after a crash are unsure, and no more
            self.file.touch(mode=0o600)

    def touches(
        self,
        folder: Path,
        call: OpenCall,
        changes: Iterable[tuple[str, PathState | None, PathState | None]],
    ) -> list[PathChange]:
        """Enter what changed since the last look: by the command that was cut off, or after it."""
        found: list[PathChange] = []
        for change in changes:
            was_command = self.was_at_work(folder, change[0])
            found.append(call.change(*change, is_shared=was_command, is_unsure=not was_command))
        return found

    def was_at_work(self, folder: Path, path: str) -> bool:
        """Whether a path changed last while commands ran."""
        with suppress(OSError):
            until = self.file.stat().st_mtime_ns
            place = folder / path
            while not os.path.lexists(place) and place != folder:
                place = place.parent  # what is gone has changed its folder
            return os.lstat(place).st_ctime_ns <= until
        return False
