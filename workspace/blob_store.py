"""Blobs: the bytes of files, under the name of their content, in git's own format of loose objects.

Written here directly (a process for each small file would cost more than the file), so that git finds
them, and read here, too; what only lies in a pack, or in the repository that is borrowed from, is
asked of git. See "Git Internals - Git Objects" for the format.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from .scan import UNREADABLE, Kind, PathState, look_at, open_parent, signature
from .syncing import sync

LARGEST = 16 << 20
"""Bytes of a file beyond which no copy of it is kept because a command might change it."""
EVERYTHING = 1 << 62
ATTEMPTS = 3
LEVEL = 0
"""No compression: it costs more time than the rest of a look."""

Fetch = Callable[[list[str]], dict[str, bytes]]


class LostBlob(LookupError):
    """A copy that should be there is not."""


class BlobStore:
    """The blobs in one `objects` folder; `fetch` asks git for those that are not loose here."""

    def __init__(self, objects: Path, fetch: Fetch | None = None) -> None:
        self._objects = objects
        self._synced: set[str] = set()
        self.fetch = fetch

    def has(self, name: str) -> bool:
        """Whether this folder itself holds the blob, and holds it whole."""
        return self._whole(name) is not None

    def get(self, name: str) -> bytes:
        """Return a blob's bytes. Raises `LostBlob`."""
        whole = self._whole(name)
        if whole is not None:
            return whole[whole.index(b"\0") + 1 :]
        found = self.fetch([name]) if self.fetch else {}
        if name not in found:
            raise LostBlob(f"the copy {name} is gone")
        return found[name]

    def _whole(self, name: str) -> bytes | None:
        """Return what lies under a name; what a power cut has torn is thrown away."""
        try:
            whole = zlib.decompress(self._file(name).read_bytes())
        except FileNotFoundError:
            return None
        except zlib.error:
            whole = b""
        if _name_of(whole) == name:
            return whole
        self._file(name).unlink(missing_ok=True)
        return None

    def sync(self, states: Iterable[PathState | None]) -> None:
        """Make sure that the copies of these outlive a power cut. Raises `OSError`."""
        names = {
            state.content
            for state in states
            if state is not None and state.kind in ("file", "link")
        }
        names -= self._synced
        files = [self._file(name) for name in names]
        if files:
            sync([*files, *{file.parent for file in files}, self._objects])
            self._synced |= names

    def own(self, names: Iterable[str]) -> None:
        """Copy blobs that are only borrowed: their owner may throw them away at any time."""
        missing = [name for name in dict.fromkeys(names) if not self.has(name)]
        if missing and self.fetch is not None:
            for data in self.fetch(missing).values():
                self.put(data)

    def put(self, data: bytes) -> str:
        """Keep bytes; return their name. Raises `OSError`."""
        whole = _wrapped(data)
        name = _name_of(whole)
        if not self.has(name):
            self._write(name, zlib.compress(whole, LEVEL))
        else:
            with suppress(OSError):
                os.utime(self._file(name))  # as good as new: `prune` leaves it alone
        return name

    def capture(self, root: Path, path: str, limit: int, *, keeps: bool = True) -> PathState | None:
        """Say what a path holds and, if it `keeps`, keep a copy of at most `limit` bytes.

        Raises `OSError` when the copy cannot be written.
        """
        for _ in range(ATTEMPTS):
            try:
                found = look_at(root, path)
            except PermissionError:
                return PathState(kind="odd", content=UNREADABLE)
            if found is None:
                return None
            if stat.S_ISDIR(found.st_mode):
                return PathState(kind="folder")
            if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
                return PathState(kind="odd", content=signature(found))
            if found.st_size > limit:
                return PathState(kind="large", content=signature(found))
            data = self._read(root, path, found)
            if data is None:
                return PathState(kind="unread", content=signature(found))
            after = look_at(root, path)
            if after is not None and signature(after) == signature(found):
                break  # it was not written while we read
        else:
            return PathState(kind="odd", content="it keeps changing")
        kind: Kind = "link" if stat.S_ISLNK(found.st_mode) else "file"
        mode = 0 if kind == "link" else stat.S_IMODE(found.st_mode)
        name = self.put(data) if keeps else _name_of(_wrapped(data))
        return PathState(kind=kind, content=name, mode=mode)

    def _read(self, root: Path, path: str, found: os.stat_result) -> bytes | None:
        """Return a file's bytes or a link's target; none if it may not be read."""
        try:
            with open_parent(root, path) as (parent, name):
                if stat.S_ISLNK(found.st_mode):
                    return os.fsencode(os.readlink(name, dir_fd=parent))
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, dir_fd=parent), "rb") as file:
                    return file.read()
        except PermissionError:
            return None
        except OSError:
            return b""  # gone or replaced meanwhile: the second look shows it

    def _file(self, name: str) -> Path:
        return self._objects / name[:2] / name[2:]

    def _write(self, name: str, packed: bytes) -> None:
        file = self._file(name)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        draft = file.parent / f"tmp_{secrets.token_hex(8)}"
        try:
            with open(draft, "xb") as out:
                out.write(packed)
            os.chmod(draft, 0o400)
            os.rename(draft, file)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def _wrapped(data: bytes) -> bytes:
    return b"blob %d\0" % len(data) + data


def _name_of(whole: bytes) -> str:
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()
