"""The small process that supervises one command and ends only when nothing of it is left.

It is forked by the spawner. It is a subreaper, so every descendant of the command stays below it,
and when `wait()` says that there are no children, the tree is proven empty. Only then it reports.

    running ──stop, timeout, the command exits──> asking ──grace over──> killing ──no child──> done
       └──────────────the runtime is gone (end of file on the control socket)──────┘

asking:  everything below gets TERM (and CONT, since a stopped process does not receive TERM);
killing: everything below is frozen and killed, again and again.

Processes that the command leaves when it exits are ended in the same way, with a short grace period.
Only the standard library is imported here.
"""

from __future__ import annotations

import _socket
import os
import select
import signal
import time

from . import command, tree
from .wire import Frames, frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_LEFTOVER_GRACE = 0.05  # seconds for processes that still run when the command itself has exited
_ASK_AGAIN = 0.02  # seconds between scans for new processes that have not been asked yet
_KILL_AGAIN = 0.002
_GIVE_UP = 5.0  # seconds of killing after which survivors are reported (killing continues)
_LOOK_UP = 3600.0  # seconds, the longest wait of a poll
_MOST_PIDS = 1000  # in a report


def wake_on_child() -> int:
    """Make a descriptor readable whenever a child ends; the spawner's handler of SIGCHLD is there."""
    wake_in, wake_out = os.pipe()
    os.set_blocking(wake_in, False)
    os.set_blocking(wake_out, False)
    signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
    return wake_in


class ProcessSupervisor:
    """Runs one command to its end; `control` is the socket to the runtime."""

    def __init__(self, control: _socket.socket) -> None:
        self._control = control
        self._frames = Frames()
        self._main = 0
        self._status: int | None = None  # exit code of the command itself, once it is known
        self._cause = ""
        self._kill_at: float | None = None  # none while it simply runs
        self._touched: set[int] = set()
        self._is_reported = False

    def run(self, output: int, stdin: int, errors: int) -> None:
        """Start the command of the runtime's request, and return when no process of it is left.

        Descriptors: `stdin` 0 is /dev/null; `errors` may be the same as `output`.
        """
        os.setsid()
        tree.become_subreaper()
        wake = wake_on_child()
        request = self._request()
        if request is None:
            self._tell("failed", "it was given up before it started")
            return
        _, argv, cwd, environment, timeout, grace = request
        try:
            self._main = command.start(argv, cwd, environment, stdin, output, errors)
        except OSError as error:
            self._tell("failed", error.strerror)
            return
        for stream in {output, stdin, errors} - {0}:
            os.close(stream)
        self._tell("started", self._main)
        self._watch(wake, grace, None if timeout is None else time.monotonic() + timeout)

    def _request(self) -> tuple[Any, ...] | None:
        messages: list[tuple[Any, ...]] = []
        while not messages:
            data = self._control.recv(65_536)
            if not data:
                return None
            messages = self._frames.feed(data)
        for _, grace in messages[1:]:
            self._begin("killed", grace)
        return messages[0]

    def _watch(self, wake: int, grace: float, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        is_empty = False
        while not is_empty:
            ready = [fd for fd, _ in poll.poll(self._patience(deadline))]
            if wake in ready:
                os.read(wake, 4096)
            if self._control.fileno() in ready and not self._listen():
                poll.unregister(self._control)
            is_empty = self._collect()
            now = time.monotonic()
            if not is_empty and deadline is not None and now >= deadline:
                self._begin("timed_out", grace)
                deadline = None
            if not is_empty:
                self._press(now, grace)
        self._report(())

    def _patience(self, deadline: float | None) -> float | None:
        """Return how long to wait for events, in milliseconds."""
        now = time.monotonic()
        if self._kill_at is None:
            return None if deadline is None else min(max(0.0, deadline - now), _LOOK_UP) * 1000
        if now >= self._kill_at:
            return (1.0 if self._is_reported else _KILL_AGAIN) * 1000
        return min(self._kill_at - now, _ASK_AGAIN) * 1000

    def _listen(self) -> bool:
        """Process messages of the runtime; False when the runtime has ended."""
        try:
            data = self._control.recv(65_536)
        except ConnectionError:
            data = b""
        if not data:
            self._begin("killed", 0.0)
            return False
        for _, grace in self._frames.feed(data):
            self._begin("killed", grace)
        return True

    def _collect(self) -> bool:
        """Reap ended processes; True when no child is left."""
        ended, is_empty = tree.reap()
        if self._main in ended:
            self._status = os.waitstatus_to_exitcode(ended[self._main])
        return is_empty

    def _begin(self, cause: str, grace: float) -> None:
        """Begin to end everything; a later call can only shorten the grace period."""
        kill_at = time.monotonic() + grace
        self._cause = self._cause or cause
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if grace > 0:
            tree.send_group(self._main, signal.SIGTERM)
        if grace > 0 and self._main and self._status is None:
            self._ask(self._main)  # before the slower look at all others

    def _press(self, now: float, grace: float) -> None:
        """Do the next step to end the process tree, if it has to end."""
        if self._kill_at is None and self._status is not None:
            self._begin("exited", min(grace, _LEFTOVER_GRACE))
        if self._kill_at is None:
            return
        if now < self._kill_at:
            for pid, state in tree.descendants(os.getpid()).items():
                if pid not in self._touched and state != "Z":
                    self._ask(pid)
            return
        found = tree.end_pass(os.getpid())
        alive = {pid for pid, state in found.items() if state != "Z"}
        self._touched |= alive
        if now > self._kill_at + _GIVE_UP:
            self._report(tuple(alive))

    def _ask(self, pid: int) -> None:
        self._touched.add(pid)
        tree.send(pid, signal.SIGTERM)
        tree.send(pid, signal.SIGCONT)

    def _report(self, survivors: tuple[int, ...]) -> None:
        if self._is_reported:
            return
        self._is_reported = True
        tree.send_group(self._main, signal.SIGKILL)
        killed = tuple(sorted(self._touched - set(survivors)))[:_MOST_PIDS]
        self._tell("done", self._cause or "exited", self._status, killed, survivors[:_MOST_PIDS])

    def _tell(self, *message: object) -> None:
        try:
            self._control.sendall(frame(*message))
        except (BrokenPipeError, ConnectionResetError):
            return  # the runtime is gone
