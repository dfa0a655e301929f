"""Folders that last as long as a process: the next one of its kind removes what a killed one left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_LOCK = ".lock"
_LONGEST = 16  # characters of a usual folder; the name of a socket has a hundred at most


class ScratchFolder:
    """A private folder that is locked while its process lives. Raises `OSError`.

    Its path is short, since sockets are made in it.
    """

    def __init__(self, kind: str) -> None:
        usual = tempfile.gettempdir()
        above = Path(usual if len(usual) <= _LONGEST else "/tmp", f"steersman-{os.getuid()}")
        above.mkdir(mode=0o700, exist_ok=True)
        if above.is_symlink() or above.stat().st_uid != os.getuid():
            raise OSError(f"`{above}` belongs to another user")
        _sweep(above, kind)
        self.path, self._lock = above, -1
        while not (self.path / _LOCK).exists():  # another process may sweep it before it is locked
            self.remove()
            self.path = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=above))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it. Idempotent."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _sweep(above: Path, kind: str) -> None:
    """Remove folders whose process has ended."""
    for folder in above.glob(f"{kind}-*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it is just being made, or removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
