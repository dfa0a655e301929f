"""The single-threaded process that forks supervisors.

It is executed afresh (`python -I -S`), so it holds no thread, lock or memory of the runtime, forks
in about a millisecond, and can be started again when it dies. Signals of the terminal pass it by.

It is a subreaper too: when a supervisor is killed, the orphans come here and are killed, and the
runtime is informed. When the runtime is gone, also by kill -9, every supervisor notices it; the
spawner waits for them, kills what is stuck, and exits.

A runtime that may be cut off from those who would take over its sessions sets a deadline, and moves it on
as long as it is not. When the deadline passes, every command is killed and none starts: also where the
runtime itself was stopped by a signal, or hangs.
Only the standard library is imported here.
"""

from __future__ import annotations

import _socket
import gc
import os
import select
import signal
import sys
import time

from . import tree
from .supervisor import ProcessSupervisor, wake_on_child
from .wire import TOKEN, deadline_clock, deadline_of, frame, is_deadline, receive_fds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


_LOOK_AGAIN = 0.002  # seconds, while orphans are being killed
_SUPERVISOR_TIMEOUT = 1.0  # seconds for supervisors to end when the runtime is gone
_LEAVE_AGAIN = 0.02  # the same, when the runtime is gone
_GIVE_UP = 5.0  # seconds of killing orphans after which survivors are reported
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


class _Loss:
    """A supervisor that died before its command did."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.since = time.monotonic()
        self.killed: set[int] = set()


class Spawner:
    """Forks supervisors on request; `link` is the socket to the runtime."""

    def __init__(self, link: _socket.socket, runtime: int) -> None:
        self._link, self._runtime = link, runtime
        self._supervisors: dict[int, int] = {}  # token by pid
        self._losses: list[_Loss] = []
        self._deadline: float | None = None
        self._wake = wake_on_child()
        self._poll = select.poll()

    def run(self) -> None:
        """Serve until the runtime has ended and no supervisor is left."""
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._link, select.POLLIN)
        watch = self._watch_runtime()
        if watch is not None:
            self._poll.register(watch, select.POLLIN)
        while True:
            timeout = _LOOK_AGAIN if self._losses else None
            if timeout is None and self._deadline is not None and self._supervisors:
                timeout = max(_LOOK_AGAIN, self._deadline - deadline_clock())
            ready = self._ready(timeout)
            if self._supervisors and self._is_late():
                self._end_pass(frozenset())  # their ends are losses
            if watch in ready or (self._link.fileno() in ready and not self._serve()):
                break
            if self._losses or self._wake in ready:
                self._collect()
        self._poll.unregister(self._link)
        if watch is not None:
            self._poll.unregister(watch)
        self._link.close()
        self._leave()

    def _ready(self, timeout: float | None) -> set[int]:
        """Wait for events, so many seconds."""
        return {fd for fd, _ in self._poll.poll(None if timeout is None else timeout * 1000)}

    def _is_late(self) -> bool:
        return self._deadline is not None and deadline_clock() >= self._deadline

    def _watch_runtime(self) -> int | None:
        """Return a descriptor that becomes readable at the runtime's end, where the system has pidfds.

        The socket's end of file shows it too, unless a fork of the runtime holds a copy.
        """
        if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
            return None
        try:
            watch = os.pidfd_open(self._runtime)
        except OSError:
            return None
        return watch if os.getppid() == self._runtime else None

    def _serve(self) -> bool:
        """Fork one supervisor, or move the deadline; False when the runtime has ended."""
        try:
            data, fds = receive_fds(self._link, TOKEN.size)
        except ConnectionError:
            return False
        if not data:
            return False
        (token,) = TOKEN.unpack(data)
        if is_deadline(token):
            self._deadline = deadline_of(token)
            return True
        try:
            if self._is_late():
                self._losses.append(_Loss(token))
            elif pid := os.fork():
                self._supervisors[pid] = token
            else:
                self._become_supervisor(fds[0])
        except OSError:
            self._losses.append(_Loss(token))
        os.close(fds[0])
        return True

    def _become_supervisor(self, control: int) -> NoReturn:
        code = 1
        try:
            for fd in (self._link.detach(), self._wake):
                os.close(fd)
            gc.enable()
            ProcessSupervisor(_socket.socket(fileno=control)).serve()
            code = 0
        finally:
            os._exit(code)

    def _collect(self) -> None:
        """Reap ended children, and end the orphans of dead supervisors."""
        self._drain_wake()
        for pid, status in tree.reap()[0].items():
            token = self._supervisors.pop(pid, None)
            if token is not None and status != 0:
                self._losses.append(_Loss(token))
        if self._losses:
            self._end_orphans()

    def _drain_wake(self) -> None:
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            return  # woken by something else

    def _end_orphans(self) -> None:
        """Kill the orphans of dead supervisors; report to the runtime when all of them are dead."""
        found = self._end_pass(frozenset(self._supervisors))
        now = time.monotonic()
        for loss in list(self._losses):
            loss.killed.update(found)
            if found and now < loss.since + _GIVE_UP:
                continue
            self._losses.remove(loss)
            killed = tuple(sorted(loss.killed - found.keys()))
            try:
                self._link.sendall(frame("lost", loss.token, killed, tuple(found)))
            except (BrokenPipeError, ConnectionResetError):
                return  # the runtime is gone, which the next poll shows

    def _end_pass(self, spare: frozenset[int]) -> dict[int, str]:
        """Kill what is below this process, without supervisors that are spared and their commands."""
        return tree.end_pass(lambda: tree.descendants(os.getpid(), spare))

    def _leave(self) -> None:
        """Wait until all supervisors have ended; kill the stuck ones."""
        began = look_at = time.monotonic()
        while True:
            ended, is_empty = tree.reap()
            for pid in ended:
                self._supervisors.pop(pid, None)
            if is_empty:
                return
            now = time.monotonic()
            late = now - began
            if now >= look_at:
                self._end_pass(frozenset(self._supervisors if late < _SUPERVISOR_TIMEOUT else ()))
                look_at = time.monotonic() + (_LEAVE_AGAIN if late < _GIVE_UP else 1.0)
            self._ready(max(0.0, look_at - time.monotonic()))
            self._drain_wake()


def main(arguments: list[str]) -> None:
    """Serve the runtime: arguments are the descriptor of the socket to it, and its pid."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # wakes the spawner; forks have it
    tree.become_subreaper()
    gc.disable()  # each fork would pay for the pages that a collection touches
    gc.freeze()
    Spawner(_socket.socket(fileno=int(arguments[0])), int(arguments[1])).run()
