"""Faults of the disk and of the clock, switched from outside while an agent runs.

faults.c is compiled once and put in front of the C library of the agent. It fails what the agent writes
below its home and into hidden folders of its project, and nothing that a tool writes into the project.
A program that is statically linked, or that calls the kernel itself, is not reached: the library notes
no call, or a conversation grows although none can. Then the case cannot be tried. File times are those
of the kernel; `shift_times` corrects them for who comes after a jump of the clock.
"""

import errno
import hashlib
import mmap
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from contender import PEERS, Missing

__all__ = ["ERRORS", "Faults"]

ERRORS = {"full": errno.ENOSPC, "failing": errno.EIO}
"""What calls on the disk fail with."""
_SOURCE = Path(__file__).with_name("faults.c")


class Faults:
    """The switch of one trial, in the folder `place`; `environ` is for the agent."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._sizes: dict[Path, int] = {}
        self._log = place / "faults" / "log"
        self._log.parent.mkdir()
        with (place / "faults" / "control").open("w+b") as file:
            file.write(bytes(8))
            file.flush()
            self._control = mmap.mmap(file.fileno(), 8)
        self.environ = {
            "LD_PRELOAD": str(_library()),
            "SURVIVAL_FAULTS": str(self._log.parent),
            "SURVIVAL_BELOW": f"{place / 'home'}/:{place / 'project'}/.",
        }

    def switch(self, error: int = 0, shift: int = 0) -> None:
        """Let calls on the disk fail with `error`, and the clock be wrong by `shift` seconds."""
        self._control[:] = struct.pack("ii", error, shift)

    def fail(self, error: int) -> None:
        """Let calls on the disk fail with `error`, and remember how large all files are."""
        self.switch(error)
        self._sizes = {path: path.stat().st_size for path in self._files()}

    def grown(self) -> list[str]:
        """Return the files of conversations that grew although none could.

        All grow by the part that fills a disk, and a cache says nothing of the agent's memory.
        """
        parts = {line.split(" ", 2)[2] for line in self._lines() if line.split()[1] == "part"}
        return [
            str(path.relative_to(self._place))
            for path in self._files()
            if path.stat().st_size > self._sizes.get(path, 0)
            and str(path) not in parts
            and b"TASK[" in path.read_bytes()
        ]

    def shift_times(self, since: float, seconds: int) -> None:
        """Give the files that were written since then the time that they would have got."""
        for path in self._files():
            if (there := path.stat()).st_mtime > since:
                os.utime(path, (there.st_atime + seconds, there.st_mtime + seconds))

    def _files(self) -> Iterator[Path]:
        """Yield the files of the agent's memory."""
        for folder in (self._place / "home", *(self._place / "project").glob(".*")):
            yield from (
                path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
            )

    def _lines(self) -> list[str]:
        with suppress(FileNotFoundError):
            return self._log.read_text(errors="replace").splitlines()
        return []

    def met(self, pid: int) -> int:
        """Return how many calls of a process met a fault."""
        return [line.split()[0] for line in self._lines()].count(str(pid))


def _library() -> Path:
    """Compile the library, if that was not done yet. Raises `Missing`."""
    name = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    path = PEERS / "survival-faults" / f"{name}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        words = ["cc", "-O2", "-shared", "-fPIC", "-o", f"{path}.new", str(_SOURCE), "-ldl"]
        try:
            subprocess.run(words, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing(f"the library of faults cannot be compiled: {error}") from None
        Path(f"{path}.new").replace(path)
    return path
