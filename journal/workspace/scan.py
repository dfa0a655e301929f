"""What git sees to be different from its index, in one look: two processes side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .shadow_git import ShadowGit

MOST_FILES = 100_000
MOST_BYTES = 4 << 30
SOME = 500
"""Folders that one command line names at most."""


class TooMuch(Exception):
    """The folder is past a limit; the text says which."""


@dataclass(slots=True)
class Scan:
    """What differs, by its path in the work tree.

    `dirty` maps it to its index entry (mode, blob), none if it has none; `deleted` are those that are
    no file any more. `folders` hold no file that the index knows, `nested` are repositories, and
    `closed` are folders that may not be read.
    """

    dirty: dict[str, tuple[str, str] | None] = field(
        default_factory=dict[str, tuple[str, str] | None]
    )
    deleted: set[str] = field(default_factory=set[str])
    folders: list[str] = field(default_factory=list[str])
    nested: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])

    def check_limits(self, top: Path, largest: int) -> None:
        """Raise `TooMuch` if what is new is more than anybody wants copied."""
        fresh = [path for path, entry in self.dirty.items() if entry is None]
        if len(fresh) > MOST_FILES:
            raise TooMuch(f"more than {MOST_FILES:,} files")
        size = 0
        for path in fresh:
            try:
                one = os.lstat(top / path).st_size
            except OSError:
                continue
            size += one if one <= largest else 0
            if size > MOST_BYTES:
                raise TooMuch(f"more than {MOST_BYTES >> 30} GiB")


def scan(git: ShadowGit, prefix: str) -> Scan:
    """Compare the work tree below `prefix` with the index. Raises `GitFault`, `TooMuch`."""
    scope = ["--", prefix] if prefix else []
    way = ("-z", "--raw", "--no-renames", "--ignore-submodules=all")
    comparing = git.start("diff-files", *way, *scope)
    listing = git.start("ls-files", "-z", "-o", "--directory", "--exclude-standard", *scope)
    found = Scan()
    _read_raw(git.finish(comparing), found)
    listed = _names(git.finish(listing))
    found.dirty |= dict.fromkeys(one for one in listed if not one.endswith("/"))
    folders = [one[:-1] for one in listed if one.endswith("/")]
    folders += [one for one in sorted(found.deleted) if is_folder(git.top / one)]
    inside: list[str] = []
    for folder in folders:
        if folder and f"{folder}/" != prefix:
            _walk(git.top, folder, found, inside)
        else:
            inside.append(folder)
    _expand(git, inside, found)
    found.folders.sort()
    return found


def is_folder(path: Path) -> bool:
    """Whether a path is a folder itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def parents(path: str) -> Iterator[str]:
    """Give the folders that a path lies in, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _walk(top: Path, folder: str, found: Scan, inside: list[str]) -> None:
    """Note the folders below one in which git knows no file; repositories are left alone."""
    has_files = False

    def note(error: OSError) -> None:
        found.closed.append(os.path.relpath(os.fsdecode(error.filename), top))

    for here, names, files in os.walk(top / folder, onerror=note):
        name = os.path.relpath(here, top)
        if ".git" in names or ".git" in files:
            found.nested.append(name)
            names.clear()
            continue
        found.folders.append(name)
        if len(found.folders) > MOST_FILES:
            raise TooMuch(f"more than {MOST_FILES:,} folders")
        has_files = has_files or bool(files)
        has_files = has_files or any(os.path.islink(os.path.join(here, one)) for one in names)
    if has_files:
        inside.append(folder)


def _expand(git: ShadowGit, inside: list[str], found: Scan) -> None:
    """List the files in these folders that are not ignored."""
    for start in range(0, len(inside), SOME):
        some = [f"{one}/" if one else "." for one in inside[start : start + SOME]]
        out = git.run("ls-files", "-z", "-o", "--exclude-standard", "--", *some)
        found.dirty |= dict.fromkeys(one for one in _names(out) if not one.endswith("/"))


def _names(out: bytes) -> list[str]:
    return [os.fsdecode(one) for one in out.split(b"\0") if one]


def _read_raw(out: bytes, found: Scan) -> None:
    """Read `diff-files --raw -z`: pairs of a description and a path."""
    rows = out.split(b"\0")
    for about, path in zip(rows[::2], rows[1::2], strict=False):
        mode, _, name, _, status = about.decode().lstrip(":").split()
        text = os.fsdecode(path)
        if status == "U":
            continue
        found.dirty[text] = None if status == "A" else (mode, name)
        if status == "D":
            found.deleted.add(text)
