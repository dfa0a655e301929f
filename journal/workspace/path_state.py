"""What one path holds, as data, and how it is looked up without ever following a link.

A path is text relative to the session's folder, in the form of `os.fsdecode`: what is no UTF-8 comes
back byte for byte. Nothing (no file, no link, no folder) is `None`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

UNREADABLE = "unreadable"
"""What stands for the content of a path in a folder that may not be entered."""
Kind = Literal["file", "link", "folder", "large", "odd"]
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PathState:
    """A file, a link or a folder.

    `content` is the id of the blob with a file's bytes or a link's target. Of what no copy is kept
    (`large`: past the limit, or unreadable; `odd`: a pipe, a socket, a device) it is a signature by
    which a change shows. `mode` are the permission bits of a file.
    """

    kind: Kind
    content: str = ""
    mode: int = 0

    @property
    def is_kept(self) -> bool:
        """Whether this can be put back."""
        return self.kind in ("file", "link", "folder")


def to_data(state: PathState | None) -> list[Any] | None:
    """Turn a state into JSON data."""
    return None if state is None else [state.kind, state.content, state.mode]


def from_data(data: list[Any] | None) -> PathState | None:
    """Read what `to_data` wrote."""
    return None if data is None else PathState(data[0], data[1], data[2])


@contextmanager
def open_parent(root: Path, path: str) -> Generator[tuple[int, str]]:
    """Walk to the folder of a path, no link followed; yield its descriptor and the last name.

    Raises `OSError`: also where a folder on the way has become a link or a file.
    """
    *folders, name = path.split("/")
    with ExitStack() as stack:
        here = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
        stack.callback(os.close, here)
        for folder in folders:
            here = os.open(folder, _FOLDER, dir_fd=here)
            stack.callback(os.close, here)
        yield here, name


def look_at(root: Path, path: str) -> os.stat_result | None:
    """Return a path's own `lstat`; none where there is nothing, or only something behind a link."""
    try:
        with open_parent(root, path) as (parent, name):
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in _BEHIND_A_LINK:
            return None
        raise


_BEHIND_A_LINK = {40, 62}  # ELOOP, on Linux and on macOS


def missing_parents(folder: Path, path: str) -> list[str]:
    """List the folders that have to be made for a path."""
    parts = path.split("/")[:-1]
    missing: list[str] = []
    for end in range(len(parts)):
        way = "/".join(parts[: end + 1])
        found = look_at(folder, way)
        if found is None:
            missing.append(way)
        elif not stat.S_ISDIR(found.st_mode):
            return []
    return missing


def signature(found: os.stat_result) -> str:
    """Return what changes whenever a file is written or replaced."""
    kind = stat.S_IFMT(found.st_mode)
    times = f"{found.st_mtime_ns}:{found.st_ctime_ns}"
    return f"{kind:o}:{found.st_mode & 0o7777:o}:{found.st_size}:{found.st_ino}:{times}"
