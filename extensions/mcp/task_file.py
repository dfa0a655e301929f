"""What is kept of a call that goes on at the server as a task: its id, until its end is known.

    open ──the call has ended──> ended
      └─the program was killed, the next one asks─> told ──the model calls it again──> open, of that call

So a call that a crash cut off is not lost: its end is asked for, and where there is none yet, the same
call joins the task and begins no second one. The file is beside the outputs of the session.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ...machines.json_shape import parse_json
from ...machines.value import Value
from ...ports.tools.tool import ToolContext
from ...workflows.paths import write_private


class TaskNote(Value):
    """The task of a call; `digest` is that of the tool and its arguments."""

    task: str
    digest: str
    state: Literal["open", "told", "ended"] = "open"


class TaskFile:
    """The note of one call, in the folder with the outputs of its session. All here blocks."""

    def __init__(self, context: ToolContext, tool: str, arguments: dict[str, Any]) -> None:
        said = json.dumps([tool, arguments], sort_keys=True, default=str)
        self._digest = hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest()
        self.context = context
        self._file = context.spill_file.with_suffix(".task")

    def open_task(self) -> str:
        """Return the task of this call that a crash cut off; empty if there is none."""
        note = _read(self._file)
        return note.task if note is not None and note.state == "open" else ""

    def joined_task(self) -> str:
        """Return the task that an earlier program was told of, which is this call's from now on."""
        for file in sorted(self._file.parent.glob("*.task")):
            note = _read(file)
            if note is not None and (note.state, note.digest) == ("told", self._digest):
                self.keep(note.task)
                file.unlink(missing_ok=True)
                return note.task
        return ""

    def keep(self, task: str) -> None:
        """Note the task of this call, durably where the disk has room."""
        self._write(TaskNote(task=task, digest=self._digest))

    def note(self, state: Literal["told", "ended"]) -> None:
        """Note how far it is; nothing where there is no note."""
        note = _read(self._file)
        if note is not None:
            self._write(replace(note, state=state))

    def _write(self, note: TaskNote) -> None:
        with suppress(OSError):
            write_private(self._file, msgspec.json.encode(note))


def _read(file: Path) -> TaskNote | None:
    """Read a note; none where there is none that can be read."""
    try:
        return msgspec.convert(parse_json(file.read_text()), TaskNote)
    except (OSError, ValueError):
        return None
