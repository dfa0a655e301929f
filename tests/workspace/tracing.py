"""Work in a fork of ours that strace meddles with: killed at a system call, or on a full disk."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable

__all__ = ["CALLS", "NEEDS_ROOM", "STRACE", "inject", "run_traced"]

STRACE = shutil.which("strace")
NEEDS_ROOM = ("write", "fsync", "?mkdir", "mkdirat", "?symlink", "symlinkat")
CALLS = (
    *NEEDS_ROOM,
    *("?rename", "?renameat", "renameat2", "?unlink", "unlinkat", "?rmdir", "fchmod"),
)
"""The system calls that change something, or make it last; those with a `?` are not everywhere."""
ANYBODY = 0x59616D61, -1
"""What a process says (`PR_SET_PTRACER`) so that one that is not above it may trace it."""


def run_traced(work: Callable[[], int], *options: str, log: str = os.devnull) -> int:
    """Do something in a fork that strace looks at; return what it returns, or its signal, negative."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(*ANYBODY)
        os.read(reader, 1)
        os._exit(work())
    with subprocess.Popen(
        [STRACE or "", "-f", "-o", log, *options, "-p", str(child)],
        stderr=subprocess.PIPE,
        text=True,
    ) as tracer:
        said = tracer.stderr.readline() if tracer.stderr else ""
        os.write(writer, b"x")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for end in (reader, writer):
        os.close(end)
    assert "attached" in said, said
    return status


def inject(call: str, what: str) -> tuple[str, ...]:
    """Return what strace must be told to do `what` at a system call."""
    return "-e", f"trace={call}", "-e", f"inject={call}:{what}"
