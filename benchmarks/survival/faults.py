"""Faults of the disk and of the clock, switched from outside while an agent runs.

faults.c is compiled once and put in front of the C library of the agent. It fails what the agent writes
below its home and into hidden folders of its project, and nothing that a tool writes into the project.
A program that is statically linked, or that calls the kernel itself, is not reached: then it notes no
call, and the case cannot be tried. File times stay those of the kernel, as on a disk of another machine.
"""

import errno
import hashlib
import mmap
import struct
import subprocess
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

    def met(self, pid: int) -> int:
        """Return how many calls of a process met a fault."""
        with suppress(FileNotFoundError):
            return [line.split()[0] for line in self._log.read_text().splitlines()].count(str(pid))
        return 0


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
