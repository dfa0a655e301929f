"""The first index of a session: copied from one that is there, so that nothing is hashed again.

The person's own index holds what git knows of each file, and the objects that it names lie in the
person's repository: they are borrowed until a file changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from .repository import Repository
from .shadow_git import ShadowGit

__all__ = ["Entry", "copy_index", "entries", "is_whole", "take_from"]

Entry = tuple[str, str, str, str]
"""Tag, mode, name of the blob, path."""


def take_from(git: ShadowGit, repository: Repository) -> list[Entry]:
    """Copy the person's index, and return its entries. Raises `OSError`, `GitFault`."""
    copy_index(repository.index, git.index)
    for shared in repository.folder.glob("sharedindex.*"):
        copy_index(shared, git.folder / shared.name)
    return entries(git)


def entries(git: ShadowGit) -> list[Entry]:
    """Return the entries of an index; the tag of a conflict is `M`."""
    return list(_read(git.run("ls-files", "-z", "-s", "-v")))


def copy_index(source: Path, target: Path) -> None:
    """Copy an index with its time: by that git knows which entries may be out of date."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    found = source.stat()
    os.chmod(target, 0o600)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def is_whole(index: Path) -> bool:
    """Whether an index is as git left it; a power cut may tear one. It ends with its own hash."""
    data = index.read_bytes()
    return (
        data[:4] == b"DIRC"
        and hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:]
    )


def _read(out: bytes) -> Iterator[Entry]:
    for row in out.split(b"\0"):
        if row:
            about, _, path = row.partition(b"\t")
            tag, mode, name, stage = about.decode().split()
            yield "M" if stage != "0" else tag, mode, name, os.fsdecode(path)
