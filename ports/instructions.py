"""AGENTS.md: instructions of people for agents that work in a folder (https://agents.md).

The files are read when a session begins, and become part of its system prompt, which is journalled and
does not change after that. The user's own `AGENTS.md`, beside `config.toml`, comes first, then those from
the root of the git repository down to the folder, so that the nearest comes last. They are only text that
cannot set, start or allow anything, and is therefore also read in a folder that is not trusted, with a
notice. A link that leads out of the repository is not followed: a downloaded folder must not disclose
other files. `@path` in one of them imports another text of the repository, which follows it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..machines.errors import ToolError
from ..machines.value import Value
from ..workflows.foreign_file import decoded
from .attachment import AFTER, names_in
from .tools.file_tools import refuse_binary
from .tools.place import Place, open_file
from .tools.text import shown

NAME = "AGENTS.md"
MOST = 32 * 1024
"""Bytes of all files together."""
IMPORTED = (".md", ".mdx", ".rst", ".txt")
"""The ends of the names of files that one of these may import: texts, since no rule is asked."""
DEEPEST = 5
"""How many files may import one after the other."""
FEW = 4 * 1024
"""The same for a small model, whose window would have no room for anything else."""
HEAD = (
    "\n\n# Instructions of the person and the project\n\n"
    "People wrote these for agents who work here. Where two differ, the later one holds; what the "
    "person says in this conversation goes before all of them."
)
CHANGED = (
    f"{NAME} has changed since this session began: the session keeps the old version, "
    "/new starts one with the new version."
)


class Instructions(Value):
    """A text for the system prompt; `files` are its sources, `notes` name the files that are missing."""

    text: str = ""
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def told(self) -> str:
        """Return the notice for the user; empty if nothing was read."""
        lines = [f"Instructions from {', '.join(self.files)}."] if self.files else []
        return "\n".join((*lines, *self.notes))


def instructions_of(system: str) -> str:
    """Return the part of a system prompt that came from AGENTS.md, empty if there is none."""
    _, head, rest = system.partition(HEAD)
    return head + rest


def read_instructions(folder: Path, own: Path, limit: int = MOST) -> Instructions:
    """Read the files for a session in `folder`; `own` is the folder of the user's own file.

    The nearest file takes its share of `limit` bytes first, with those that it imports; one that several
    names lead to is read once. Never raises: a file that cannot be read becomes a note.
    """
    above = (folder, *folder.parents)
    root = next((place for place in above if (place / ".git").exists()), folder)
    reading = _Reading(folder, limit)
    found: list[list[_Block]] = []
    for place in [*(place for place in above if place.is_relative_to(root)), own]:
        file = place / NAME
        if os.path.lexists(file):
            name = f"your own {NAME}" if place == own else ""
            found.append(reading.blocks(file, own if place is own else root, name))
    blocks = [block for blocks in reversed(found) for block in blocks]
    text = HEAD + "".join(block.text for block in blocks) if blocks else ""
    told = tuple(block.told for block in blocks)
    return Instructions(text=text, files=told, notes=tuple(reading.notes))


class _Block(NamedTuple):
    """What a file says, and how the notice names it."""

    text: str
    told: str


class _Reading:
    """Reads files and what they import, each once, until the `limit` of bytes is used up."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._seen = set[tuple[int, int]]()
        self.notes: list[str] = []

    def blocks(self, file: Path, root: Path, name: str = "", depth: int = 0) -> list[_Block]:
        """Read a file below `root`, then those that it names as `@path`."""
        name = name or shown(os.path.relpath(file, self._folder))
        try:
            found = file.stat()
            if (identity := (found.st_dev, found.st_ino)) in self._seen:
                return []
            self._seen.add(identity)
            text, is_cut = read_within(file, root, self._limit)
        except ToolError as error:
            self.notes.append(f"{name} is not read: {error.message}.")
            return []
        except OSError as error:
            self.notes.append(f"{name} is not read: {error.strerror}.")
            return []
        if is_cut and not text:
            self.notes.append(f"{name} is not read: there is no room left for it.")
            return []
        self._limit -= len(text.encode())
        told = f"{name} ({len(text):,} characters{', cut' if is_cut else ''})"
        blocks = [_Block(f"\n\n## {name}\n\n{text}", told)]
        for named, _ in names_in(text) if depth < DEEPEST else ():
            imported = file.parent / named.rstrip(AFTER)
            if imported.suffix in IMPORTED and os.path.lexists(imported):
                blocks += self.blocks(imported, root, depth=depth + 1)
        return blocks


def has_changed(before: str, folder: Path, own: Path) -> bool:
    """Whether a session that begins now would have other instructions than `before`."""
    return all(before != read_instructions(folder, own, limit).text for limit in (MOST, FEW))


def read_within(file: Path, root: Path, limit: int) -> tuple[str, bool]:
    """Return a file's text, at most `limit` bytes of it in whole lines, and whether it was cut.

    Raises `ToolError` for a link that leads out of `root`, and for what is no text; `OSError`.
    """
    path = Path(os.path.realpath(file))
    if not path.is_relative_to(os.path.realpath(root)):
        raise ToolError("it is a link that leads out of the folder")
    place = Place(path, file.name, is_outside=False)
    with open_file(place) as opened:
        refuse_binary(opened, place)
        data = opened.read(limit + 1)
    is_cut = len(data) > limit
    kept = data[: data.rfind(b"\n", 0, limit) + 1] if is_cut else data
    return decoded(kept, "replace").strip(), is_cut
