"""The small process that supervises one command at a time, and reports only when nothing of it is left.

It is forked by the spawner. It is a subreaper, so every descendant of its command stays below it, and
when `wait()` says that there are no children, the tree is proven empty. Only then it reports, and can be
given the next command: what is below it is always of one command.

    running ──stop, timeout, the command exits──> asking ──grace over──> killing ──no child──> done
       └──────────────the runtime is gone (end of file on the control socket)──────┘

asking:  everything below gets TERM (and CONT, since a stopped process does not receive TERM);
killing: everything below is frozen and killed, again and again.

Processes that the command leaves when it exits are ended in the same way, with a short grace period.
Most commands end as soon as their first process does. So that one is asked or killed first, and only if
something is left a moment later the others are looked for.
Only the standard library is imported here.
"""

from __future__ import annotations

import _socket
import os
import select
import signal
import time

from . import tree
from .wire import Frames, frame, receive_fds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_LEFTOVER_GRACE = 0.05  # seconds for processes that still run when the command itself has exited
_ASK_AGAIN = 0.02  # seconds between scans for new processes that have not been asked yet
_KILL_AGAIN = 0.002
_ALONE = 0.003  # seconds for the first process to end, before others are looked for
_GIVE_UP = 5.0  # seconds of killing after which survivors are reported (killing continues)
_LOOK_UP = 3600.0  # seconds, the longest wait of a poll
_MOST_PIDS = 1000  # in a report
_SANDBOX = "bwrap"
_CHUNK = 65_536
_OOM_SCORE = 500  # when memory runs out, the kernel takes the tool and not the runtime
_OOM_FILE = "/proc/self/oom_score_adj"
_RESET = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def wake_on_child() -> int:
    """Make a descriptor readable whenever a child ends; the spawner's handler of SIGCHLD is there."""
    wake_in, wake_out = os.pipe()
    os.set_blocking(wake_in, False)
    os.set_blocking(wake_out, False)
    signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
    return wake_in


class Control:
    """The socket to the runtime."""

    def __init__(self, connection: _socket.socket) -> None:
        self._connection = connection
        self._frames = Frames()
        self._messages: list[tuple[Any, ...]] = []
        self._fds: list[int] = []

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._connection.fileno()

    def request(self) -> tuple[tuple[Any, ...], list[int]] | None:
        """Wait for the next command; return it with its descriptors, or none when the runtime is gone."""
        while True:
            while self._messages:
                message = self._messages.pop(0)
                if message[0] == "run":
                    fds, self._fds = self._fds, []
                    return message, fds
            if not self._receive():
                return None

    def stops(self) -> list[float] | None:
        """Receive what is there: the graces of stops, or none when the runtime is gone."""
        return self.early_stops() if self._receive() else None

    def early_stops(self) -> list[float]:
        """Return the graces of the stops that came already, with the command."""
        messages, self._messages = self._messages, []
        return [grace for _, grace in messages]

    def tell(self, *message: object) -> None:
        """Send a message."""
        try:
            self._connection.sendall(frame(*message))
        except (BrokenPipeError, ConnectionResetError):
            return  # the runtime is gone

    def _receive(self) -> bool:
        try:
            data, fds = receive_fds(self._connection, _CHUNK)
        except ConnectionError:
            return False
        self._fds += fds
        self._messages += self._frames.feed(data)
        return bool(data)


class ProcessSupervisor:
    """Runs one command after the other."""

    def __init__(self, control: _socket.socket) -> None:
        self._control = Control(control)

    def serve(self) -> None:
        """Run the commands of the runtime; return when it is gone and nothing is left."""
        os.setsid()
        tree.become_subreaper()
        wake, score = wake_on_child(), _OomScore()
        while (asked := self._control.request()) is not None:
            request, fds = asked
            _, letters, argv, cwd, environment, timeout, grace = request
            files: dict[str, int] = dict(zip(letters, fds, strict=True))
            streams = files.get("i", 0), files["o"], files.get("e", files["o"])
            try:
                main = _start(argv, cwd, environment, streams, score)
                alive = os.dup(files["a"]) if "a" in files else None
            except OSError as error:
                self._control.tell("failed", error.strerror)
                continue
            finally:
                for fd in fds:
                    os.close(fd)
                os.chdir("/")  # no folder is held when nothing runs
            self._control.tell("started", main)
            deadline = None if timeout is None else time.monotonic() + timeout
            _Supervision(main, argv[0], self._control, grace).watch(wake, deadline)
            if alive is not None:
                os.utime(alive)
                os.close(alive)
        self._control.tell("failed", "it was given up before it started")


class _Supervision:
    """The supervision of one command, from its start to the proof that nothing of it is left.

    The processes of a sandbox around it are ended with it, and not reported.
    """

    def __init__(self, main: int, program: bytes, control: Control, grace: float) -> None:
        self._main = main
        self._is_boxed = program.rpartition(b"/")[2] == _SANDBOX.encode()
        self._control, self._grace = control, grace
        self._status: int | None = None  # exit code of the command itself, once it is known
        self._cause = ""
        self._kill_at: float | None = None  # none while it simply runs
        self._look_at = 0.0  # when others than the first process are looked for
        self._touched: set[int] = set()
        self._is_killing = False
        self._is_reported = False

    def watch(self, wake: int, deadline: float | None) -> None:
        """Return when no process is left, and that is reported; `deadline` is the time limit."""
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        for grace in self._control.early_stops():
            self._begin("killed", grace)
        is_empty = False
        while not is_empty:
            ready = [fd for fd, _ in poll.poll(self._patience(deadline))]
            if wake in ready:
                os.read(wake, 4096)
            if self._control.fileno() in ready:
                if (stops := self._control.stops()) is None:  # the runtime has ended
                    poll.unregister(self._control)
                for grace in [0.0] if stops is None else stops:
                    self._begin("killed", grace)
            ended, is_empty = tree.reap()
            if self._main in ended:
                self._status = os.waitstatus_to_exitcode(ended[self._main])
                self._look_at = 0.0
            now = time.monotonic()
            if not is_empty and deadline is not None and now >= deadline:
                self._begin("timed_out", self._grace)
                deadline = None
            if not is_empty:
                self._press(now)
        self._report(())

    def _patience(self, deadline: float | None) -> float | None:
        """Return how long to wait for events, in milliseconds."""
        now = time.monotonic()
        if self._kill_at is None:
            return None if deadline is None else min(max(0.0, deadline - now), _LOOK_UP) * 1000
        if now < self._look_at:
            return max(0.0, self._look_at - now) * 1000
        if now >= self._kill_at:
            return (1.0 if self._is_reported else _KILL_AGAIN) * 1000
        return min(self._kill_at - now, _ASK_AGAIN) * 1000

    def _begin(self, cause: str, grace: float) -> None:
        """Begin to end everything; a later call can only shorten the grace period."""
        now = time.monotonic()
        self._cause = self._cause or cause
        self._kill_at = now + grace if self._kill_at is None else min(self._kill_at, now + grace)
        if grace > 0:
            tree.send_group(self._main, signal.SIGTERM)
        if grace > 0 and self._status is None:
            self._ask(self._main)  # before the slower look at all others
            self._look_at = now + _ALONE

    def _press(self, now: float) -> None:
        """Do the next step to end the process tree, if it has to end."""
        if self._kill_at is None and self._status is not None:
            self._begin("exited", min(self._grace, _LEFTOVER_GRACE))
        if self._kill_at is None or now < self._look_at:
            return
        if now < self._kill_at:
            for pid, state in tree.descendants(os.getpid()).items():
                if pid not in self._touched and state != "Z":
                    self._ask(pid)
        elif self._status is None and not self._is_killing:
            self._is_killing = True
            self._touch(self._main)
            tree.send(self._main, signal.SIGKILL)
            self._look_at = now + _ALONE
        else:
            found = tree.end_pass(lambda: tree.descendants(os.getpid()))
            alive = [pid for pid, state in found.items() if state != "Z"]
            for pid in alive:
                self._touch(pid)
            if now > self._kill_at + _GIVE_UP:
                self._report(tuple(alive))

    def _touch(self, pid: int) -> None:
        """Note a process that is ended before it ended by itself."""
        if not self._is_boxed or tree.name_of(pid) != _SANDBOX:
            self._touched.add(pid)

    def _ask(self, pid: int) -> None:
        self._touch(pid)
        tree.send(pid, signal.SIGTERM)
        tree.send(pid, signal.SIGCONT)

    def _report(self, survivors: tuple[int, ...]) -> None:
        if self._is_reported:
            return
        self._is_reported = True
        tree.send_group(self._main, signal.SIGKILL)
        killed = tuple(sorted(self._touched - set(survivors)))[:_MOST_PIDS]
        self._control.tell(
            "done", self._cause or "exited", self._status, killed, survivors[:_MOST_PIDS]
        )


# The command -------------------------------------------------------------------------------------


def _start(
    argv: tuple[bytes, ...],
    cwd: bytes,
    environment: dict[bytes, bytes],
    streams: tuple[int, int, int],
    score: _OomScore,
) -> int:
    """Start a command in a session of its own and return its pid. Raises `OSError`.

    This process is there for that command alone: so the folder that is entered and the score for the
    kernel's choice are set here, and inherited. `streams` are the file descriptors of its stdin, output
    and standard error; no other one reaches it, since all above these close when it is executed.
    """
    try:
        os.chdir(cwd)
    except OSError as error:
        text = os.fsdecode(cwd)
        raise OSError(error.errno, f"cannot enter folder `{text}`: {error.strerror}") from error
    score.set(_OOM_SCORE)
    try:
        return _spawn(argv, environment, streams)
    except ValueError as error:
        raise OSError(0, "it contains a NUL character") from error
    finally:
        score.set(score.own)


class _OomScore:
    """This process's own score, which children inherit; nothing is done where it cannot be set."""

    def __init__(self) -> None:
        self._file, self.own = -1, _OOM_SCORE
        try:
            self._file = os.open(_OOM_FILE, os.O_RDWR)
            self.own = int(os.pread(self._file, 16, 0))
        except OSError:
            return  # not Linux, or not allowed

    def set(self, score: int) -> None:
        """Set it, unless it is as high as that of a command already."""
        try:
            if self.own < _OOM_SCORE:
                os.pwrite(self._file, str(score).encode(), 0)
        except OSError:
            return  # a container forbids it, and the command matters more


def _spawn(
    argv: tuple[bytes, ...], environment: dict[bytes, bytes], streams: tuple[int, int, int]
) -> int:
    """Execute the first file of that name on the command's own PATH.

    `posix_spawn` copies no memory, says itself what went wrong, and costs a third of a fork of this
    interpreter.
    """
    name = os.fsdecode(argv[0])
    is_path = os.path.dirname(argv[0])
    search = environment.get(b"PATH", os.fsencode(os.defpath))
    folders = [b""] if is_path else search.split(os.fsencode(os.pathsep))
    actions = [(os.POSIX_SPAWN_DUP2, stream, place) for place, stream in enumerate(streams)]
    refusal: OSError | None = None
    for folder in folders:
        try:
            return os.posix_spawn(
                os.path.join(folder, argv[0]),
                argv,
                environment,
                file_actions=actions,
                setsigdef=_RESET,
                setsid=True,
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = refusal or error
    if refusal is None:
        if any(os.path.isfile(os.path.join(folder, argv[0])) for folder in folders):
            raise FileNotFoundError(0, f"cannot run `{name}`: its interpreter is missing")
        place = "" if is_path else " on PATH"
        raise FileNotFoundError(0, f"`{name}` not found{place}")
    raise OSError(refusal.errno, f"cannot run `{name}`: {refusal.strerror}") from refusal
