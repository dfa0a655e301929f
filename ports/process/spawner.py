"""The single-threaded process that forks a supervisor for each command.

It is executed afresh (`python -I -S`), so it holds no thread, lock or memory of the runtime, forks
in about a millisecond, and can be started again when it dies. Signals of the terminal pass it by.

It is a subreaper too: when a supervisor is killed, the orphans come here and are killed, and the
runtime is informed. When the runtime is gone, also by kill -9, every supervisor notices it; the
spawner waits for them, kills what is stuck, and exits.
Only the standard library is imported here.
"""

from __future__ import annotations

import _socket
import array
import gc
import os
import select
import signal
import sys
import time

from . import tree
from .supervisor import ProcessSupervisor, wake_on_child
from .wire import TOKEN, frame

_LOOK_AGAIN = 0.002  # seconds, while orphans are being killed
_PATIENCE = 1.0  # seconds for supervisors to end when the runtime is gone
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
        self._link = link
        self._runtime = runtime
        self._supervisors: dict[int, int] = {}  # token by pid
        self._losses: list[_Loss] = []
        self._wake = wake_on_child()

    def run(self) -> None:
        """Serve until the runtime has ended and no supervisor is left."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self._link, select.POLLIN)
        watch = self._watch_runtime()
        if watch is not None:
            poll.register(watch, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll(_LOOK_AGAIN * 1000 if self._losses else None)]
            if watch in ready or (self._link.fileno() in ready and not self._serve()):
                break
            self._collect()
        self._link.close()
        self._leave()

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
        """Process one request; False when the runtime has ended."""
        fds = array.array("i")
        flags = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
        try:
            data, ancillary, _, _ = self._link.recvmsg(
                TOKEN.size, _socket.CMSG_SPACE(4 * fds.itemsize), flags
            )
        except ConnectionError:
            return False
        for _, _, content in ancillary:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        if not data:
            return False
        for fd in fds:
            os.set_inheritable(fd, False)
        (token,) = TOKEN.unpack(data)
        try:
            self._fork(token, list(fds))
        except OSError:
            self._losses.append(_Loss(token))
        for fd in fds:
            os.close(fd)
        return True

    def _fork(self, token: int, fds: list[int]) -> None:
        pid = os.fork()
        if pid:
            self._supervisors[pid] = token
            return
        code = 1
        try:
            os.close(self._link.detach())
            os.close(self._wake)
            control = _socket.socket(fileno=fds[0])
            stdin, errors = (*fds[2:], *(0, fds[1])[len(fds[2:]) :])
            ProcessSupervisor(control).run(fds[1], stdin, errors)
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
        found = tree.end_pass(os.getpid(), frozenset(self._supervisors))
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

    def _leave(self) -> None:
        """Wait until all supervisors have ended; kill the stuck ones."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        began = time.monotonic()
        while True:
            ended, is_empty = tree.reap()
            for pid in ended:
                self._supervisors.pop(pid, None)
            if is_empty:
                return
            late = time.monotonic() - began
            tree.end_pass(os.getpid(), frozenset(self._supervisors if late < _PATIENCE else ()))
            poll.poll(20 if late < _GIVE_UP else 1000)
            self._drain_wake()


def main(arguments: list[str]) -> None:
    """Serve the runtime: arguments are the descriptor of the socket to it, and its pid."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(
        signal.SIGCHLD, lambda number, frame: None
    )  # else nothing is woken; forks have it
    tree.become_subreaper()
    gc.disable()  # each fork would pay for the pages that a collection touches
    gc.freeze()
    Spawner(_socket.socket(fileno=int(arguments[0])), int(arguments[1])).run()
