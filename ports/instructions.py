"""AGENTS.md: instructions of people for agents that work in a folder (https://agents.md).

The files are read when a session begins, and become part of its system prompt, which is journalled and
does not change after that. The user's own `AGENTS.md`, beside `config.toml`, comes first, then those from
the root of the git repository down to the folder, so that the nearest comes last. They are only text that
cannot set, start or allow anything, and is therefore also read in a folder that is not trusted, with a
notice. A link that leads out of the repository is not followed: a downloaded folder must not disclose
other files.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..machines.errors import ToolError
from ..machines.value import Value
from ..workflows.foreign_file import decoded
from .tools.file_tools import refuse_binary
from .tools.place import Place, open_file
from .tools.text import shown

NAME = "AGENTS.md"
MOST = 32 * 1024
"""Bytes of all files together."""
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

    The nearest file takes its share of `limit` bytes first; one that several names lead to is read once.
    Never raises: a file that cannot be read becomes a note.
    """
    above = (folder, *folder.parents)
    root = next((place for place in above if (place / ".git").exists()), folder)
    places = [place for place in above if place.is_relative_to(root)]
    blocks: list[str] = []
    files: list[str] = []
    notes: list[str] = []
    seen: set[tuple[int, int]] = set()
    for place in [*places, own]:
        file = place / NAME
        if not os.path.lexists(file):
            continue
        name = f"your own {NAME}" if place == own else shown(os.path.relpath(file, folder))
        try:
            found = file.stat()
            if (identity := (found.st_dev, found.st_ino)) in seen:
                continue
            seen.add(identity)
            text, is_cut = read_within(file, own if place is own else root, limit)
        except ToolError as error:
            notes.append(f"{name} is not read: {error.message}.")
            continue
        except OSError as error:
            notes.append(f"{name} is not read: {error.strerror}.")
            continue
        if is_cut and not text:
            notes.append(f"{name} is not read: there is no room left for it.")
            continue
        limit -= len(text.encode())
        blocks.append(f"\n\n## {name}\n\n{text}")
        files.append(f"{name} ({len(text):,} characters{', cut' if is_cut else ''})")
    text = HEAD + "".join(reversed(blocks)) if blocks else ""
    return Instructions(text=text, files=tuple(reversed(files)), notes=tuple(notes))


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
