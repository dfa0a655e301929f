"""What git's index does not hold: permission bits, bare folders, what is too large to copy.

Kept beside the index of a session, as JSON, and brought up to date with it.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .syncing import sync

PLAIN, PROGRAM = 0o644, 0o755


@dataclass(slots=True)
class SideRecord:
    """`modes` are the permission bits of files that differ from `plain` (of programs: `program`).

    `folders` are those in which no file is known, `nested` those that are repositories of their own,
    `loose` maps what is not copied to its signature. All paths are relative to the work tree.
    """

    plain: int = PLAIN
    program: int = PROGRAM
    modes: dict[str, int] = field(default_factory=dict[str, int])
    folders: list[str] = field(default_factory=list[str])
    nested: list[str] = field(default_factory=list[str])
    loose: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def mode(self, path: str, is_program: bool) -> int:
        """Return the permission bits of a file."""
        return self.modes.get(path, self.program if is_program else self.plain)

    def note_mode(self, path: str, mode: int) -> None:
        """Remember a file's permission bits, if they are not what goes without saying."""
        if mode == (self.program if mode & 0o100 else self.plain):
            self.modes.pop(path, None)
        else:
            self.modes[path] = mode

    def note_all(self, modes: dict[str, int]) -> None:
        """Begin anew with all files: what most of them have goes without saying."""
        for name, bit in (("plain", 0), ("program", 0o100)):
            found = [mode for mode in modes.values() if mode & 0o100 == bit]
            if found:
                setattr(self, name, max(set(found), key=found.count))
        self.modes = {}
        for path, mode in modes.items():
            self.note_mode(path, mode)


def load_side(file: Path) -> SideRecord:
    """Read a side record; an empty one if there is none."""
    with suppress(FileNotFoundError):
        data: dict[str, Any] = json.loads(file.read_text("utf-8"))
        data["loose"] = {path: (one[0], one[1]) for path, one in data["loose"].items()}
        return SideRecord(**data)
    return SideRecord()


def save_side(file: Path, side: SideRecord) -> None:
    """Write a side record, at once or not at all. Raises `OSError`."""
    save_json(file, asdict(side))


def save_json(file: Path, data: Any, *, is_durable: bool = False) -> None:
    """Replace a file by JSON; `is_durable`: it outlives a power loss from here on."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "x", encoding="utf-8") as out:
            json.dump(data, out)
            out.flush()
            if is_durable:
                os.fsync(out.fileno())
        os.replace(draft, file)
        if is_durable:
            sync([file.parent])
    except OSError:
        draft.unlink(missing_ok=True)
        raise
