"""Programs that are hard to end, and the mark by which a test finds every process of its own."""

import os
import shlex
import sys
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from support.patience import seconds

__all__ = ["HOSTILE", "Mark"]

_READY = "import sys, time, os, signal; print('ready', flush=True); "
_DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sleep = 'import time; print("ready", flush=True); time.sleep(60)'
        os.execve(sys.executable, [sys.executable, '-c', sleep, sys.argv[1]], {})
    os._exit(0)
import time; time.sleep(60)
"""
_IGNORANT = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + _READY
_THREADS = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(60,)) for _ in range(4)]
[thread.start() for thread in threads]
print('ready', flush=True)
"""
_HOPPER = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    for hop in range(20_000):
        if os.fork():
            os._exit(0)
        os.setsid()
        if hop == 3:
            print('ready', flush=True)
        time.sleep(0.003)
time.sleep(60)
"""
_PYTHON = (sys.executable, "-I", "-S", "-c")

HOSTILE: dict[str, tuple[str, ...]] = {
    "shell with a background job": ("sh", "-c", "sleep 60 & echo ready; sleep 60"),
    "double-forking daemon": (*_PYTHON, _DAEMON),
    "ignores TERM": (*_PYTHON, _IGNORANT + "time.sleep(60)"),
    "threads": (*_PYTHON, _THREADS),
    "forks again every 3 ms": (*_PYTHON, _HOPPER),
}

_QUIET = 10  # looks that find nothing


@dataclass
class Mark:
    """A word that is in the environment and the arguments of one test's processes only."""

    word: str = field(default_factory=lambda: f"mark-{uuid.uuid4().hex}")

    def command(self, programs: Iterable[str], ready: str) -> str:
        """Write a shell command that runs some of them; each says `ready` to a named pipe."""
        lines = [
            f"{shlex.join([*HOSTILE[program], self.word])} > {ready} &" for program in programs
        ]
        return "\n".join([f"export MARK={self.word}", *lines, "wait"])

    def pids(self) -> list[int]:
        """Look through /proc for living processes that carry it."""
        names = [name for name in os.listdir("/proc") if name.isdigit()]
        return [int(name) for name in names if self._is_on(name)]

    def _is_on(self, name: str) -> bool:
        try:
            return any(
                self.word.encode() in Path(f"/proc/{name}/{file}").read_bytes()
                for file in ("environ", "cmdline")
            )
        except OSError:
            return False

    def until_gone(self, timeout: float) -> list[int]:
        """Look until none is left or the time is over (longer on a busy machine); give what is left.

        One look misses a process that forks during it: so it is over when several in a row find none.
        """
        pause, quiet, found = threading.Event(), 0, list[int]()
        for _ in range(int(seconds(timeout) / 0.02)):
            found = self.pids()
            quiet = 0 if found else quiet + 1
            if quiet == _QUIET:
                break
            pause.wait(0.02)
        return found
