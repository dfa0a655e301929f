"""Locks of live owners: one `flock` per session, which the kernel drops however its owner dies.

Never a pid file: a pid is reused, a crash leaves the file. What stands in the lock file is for
display only. Lock files are never removed, for a removed one could be locked by two. A probe
takes the lock shared for a moment, an owner takes it exclusive until it ends; `take` can therefore
tell a probe from an owner and does not mistake the one for the other. `flock` is local: not for
network file systems.
"""

import fcntl
import json
import os
import time
from contextlib import ExitStack

from msgspec.structs import asdict

from ..machines.errors import StoreBusy
from ..machines.value import Value
from .folder import PrivateFolder

_PAUSE = 0.001  # seconds between two looks at a lock that only a probe holds
_LOCK_TIMEOUT = 2.0  # seconds; a probe holds the lock for microseconds


class Owner(Value):
    """The process that wrote its name into a lock file: for people, never for a decision."""

    pid: int
    node: str
    started: float
    host: str = ""

    @property
    def process(self) -> str:
        """Name the process in a sentence, with its host where that is another one."""
        return f"process {self.pid}" + ("" if self.is_here else f" on {self.host}")

    @property
    def is_here(self) -> bool:
        """Whether the process is one of this host, so that its pid means something here."""
        return self.host in ("", host_name())


def host_name() -> str:
    """Return the name of this host."""
    return os.uname().nodename


def is_running(pid: int) -> bool:
    """Whether a process of this host has not ended; one that a signal has stopped has not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):
            return False
    except ProcessLookupError:
        return False
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def this_process(node: str, started: float) -> Owner:
    """Return this process as an owner; `started` in seconds since 1970."""
    return Owner(pid=os.getpid(), node=node, started=started, host=host_name())


class Lock:
    """One lock file in a private folder; held by at most one `Lock` object of all processes."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self._folder = folder
        self._name = f"{name}.lock"
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Lock it, or False at once if a live process holds it. Raises `OSError`."""
        descriptor = self._folder.open_file(self._name, create=True)
        with ExitStack() as undo:
            undo.callback(os.close, descriptor)
            is_taken = _take(descriptor)
            if is_taken:
                self._descriptor = descriptor
                undo.pop_all()
        return is_taken

    def take_within(self, seconds: float) -> None:
        """Lock it, waiting for the holder; raises `StoreBusy` after that many seconds."""
        deadline = time.monotonic() + seconds
        while not self.take():
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"`{self._folder.path / self._name}` was held by another process"
                    f" for {seconds:g} s",
                    "Try again; if it stays, look for a stopped steersman process.",
                )
            time.sleep(5 * _PAUSE)

    def sign(self, owner: Owner) -> None:
        """Write its owner, for display; the lock must be held."""
        assert self._descriptor is not None
        text = json.dumps(asdict(owner)).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def is_held(self) -> bool:
        """Whether a live process holds it, this object included. Changes nothing."""
        try:
            descriptor = self._folder.open_file(self._name, create=False)
        except FileNotFoundError:
            return False
        try:
            return not _lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def owner(self) -> Owner | None:
        """Read its owner, if a live process holds it and has signed."""
        if not self.is_held():
            return None
        descriptor = self._folder.open_file(self._name, create=False)
        try:
            return Owner(**json.loads(os.pread(descriptor, 4096, 0)))
        except (TypeError, ValueError):
            return None  # not signed yet, or by an unknown version
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Let go; the file stays. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _take(descriptor: int) -> bool:
    """Lock exclusively; False if another holds it so, and not merely a probe."""
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while not _lock(descriptor, fcntl.LOCK_EX):
        if not _lock(descriptor, fcntl.LOCK_SH) or time.monotonic() > deadline:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PAUSE)
    return True


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
