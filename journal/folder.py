"""A folder that only its owner can enter, opened once and then reached through its descriptor.

Everything the journal writes lies in such a folder: folders 0700, files 0600, whatever the
umask. A name inside is never followed when it is a symbolic link, and a folder of another user
is refused for writing. Names are single path components, checked by `identifier.py` or fixed in
the code.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Self

from ..machines.errors import StoreError
from ..workflows.durability import make_folder, make_folders

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DESCRIPTORS = Path("/proc/self/fd")


class PrivateFolder:
    """An open descriptor of a private folder; close it when done."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path, *, create: bool) -> Self:
        """Open the folder; with `create`, make what is missing and shut others out.

        Raises `FileNotFoundError` where there is none, `OSError`, and `StoreError` for a symbolic
        link or a folder of another user.
        """
        path = Path(path.parent.resolve(), path.name)
        if create:
            make_folders(path, 0o700)
        folder = cls(path, _open_folder(path, str(path), None))
        if create:
            folder._shut_others_out()
        return folder

    def subfolder(self, name: str, *, create: bool) -> Self:
        """Open a folder in this one, under the same rules."""
        if create:
            make_folder(name, 0o700, self._descriptor)
        path = self.path / name
        folder = type(self)(path, _open_folder(path, name, self._descriptor))
        if create:
            folder._shut_others_out()
        return folder

    def open_file(self, name: str, *, create: bool) -> int:
        """Open a regular file for locking and return its descriptor, closed on exec.

        With `create` it is opened for writing and made when missing; without, only for reading.
        """
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        self.check_file(name)
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, 0o600, dir_fd=self._descriptor)
        except OSError as fault:
            fault.filename = str(self.path / name)  # whole, for the message
            raise

    def check_file(self, name: str) -> int | None:
        """Refuse anything but a regular file, shut others out, return its size in bytes or none.

        Never opens the file: closing a second descriptor of a database cancels SQLite's locks.
        """
        try:
            found = os.lstat(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(
                f"`{self.path / name}` is not a regular file, and is not followed",
                "Move it away, then try again.",
            )
        if found.st_mode & 0o077 and found.st_uid == os.geteuid():
            os.chmod(name, 0o600, dir_fd=self._descriptor)
        return found.st_size

    def is_socket(self, name: str) -> bool:
        """Whether a socket, and not a link to one, has this name."""
        with contextlib.suppress(FileNotFoundError):
            return stat.S_ISSOCK(os.lstat(name, dir_fd=self._descriptor).st_mode)
        return False

    def remove(self, name: str) -> None:
        """Remove a name, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def narrow(self, name: str) -> None:
        """Set a file or socket that was just made to 0600."""
        os.chmod(name, 0o600, dir_fd=self._descriptor)

    def address(self, name: str) -> str:
        """Give a path for a Unix socket that stays under the kernel's 108 bytes.

        A long path is reached through this folder's descriptor, where the system offers that.
        """
        short = _DESCRIPTORS / str(self._descriptor)
        return str(short / name) if short.exists() else str(self.path / name)

    def sync(self) -> None:
        """Have the names in this folder on disk; raises `OSError`, which SQLite would swallow."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _shut_others_out(self) -> None:
        found = os.fstat(self._descriptor)
        if found.st_uid != os.geteuid():
            self.close()
            raise StoreError(
                f"`{self.path}` belongs to user id {found.st_uid}, not to {os.geteuid()}",
                "Run as that user, or set STEERSMAN_HOME to a folder that you own.",
            )
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.fchmod(self._descriptor, 0o700)


def _open_folder(path: Path, name: str, parent: int | None) -> int:
    """Open `name`, relative to the descriptor `parent` if given; `path` is for the error."""
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except OSError as fault:
        if fault.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    raise StoreError(
        f"`{path}` is a symbolic link or no folder, and is not followed",
        "Move it away, or set STEERSMAN_HOME to the folder itself.",
    )
