"""The runtime's side of the spawner and of its supervisors: start them, talk to them, learn of losses."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .own_python import bare_command
from .wire import TOKEN, Frames, deadline_token

if TYPE_CHECKING:
    from .running import RunningProcess

_PROGRAM = Path(__file__).with_name("__main__.py")
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # some interpreters need them to start
_LEAVE_SECONDS = 10.0
_CHUNK = 65_536


class SupervisorLoss(NamedTuple):
    """The processes that the spawner killed, and those that it could not, when a supervisor died."""

    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


class SpawnerLink:
    """One run of the spawner. Belongs to the asyncio loop on which it is made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._losses: dict[int, asyncio.Future[SupervisorLoss]] = {}
        self._sending = asyncio.Lock()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            self._process = _execute(theirs.fileno())
        self._exit: asyncio.Future[int] | None = None
        self.is_alive = True
        self._loop.add_reader(self._socket, self._listen)

    @property
    def pid(self) -> int:
        """Process id of the spawner."""
        return self._process.pid

    async def send(self, token: int, control: int) -> None:
        """Ask for a supervisor that gets a copy of `control`. Raises `OSError`."""
        async with self._sending:
            self._losses[token] = self._loop.create_future()
            while True:
                try:
                    socket.send_fds(self._socket, [TOKEN.pack(token)], [control])
                    return
                except BlockingIOError:
                    ready = self._loop.create_future()
                    self._loop.add_writer(self._socket, ready.set_result, None)
                    try:
                        await ready
                    finally:
                        self._loop.remove_writer(self._socket)

    def set_deadline(self, deadline: float | None) -> None:
        """Have every command killed at that second of `deadline_clock`; none: at no time.

        One that cannot be sent is not: then the one before it holds.
        """
        with suppress(OSError):
            self._socket.send(TOKEN.pack(deadline_token(deadline)))

    async def loss(self, token: int) -> SupervisorLoss:
        """Wait until the orphans of a dead supervisor are dead."""
        return await self._losses[token]

    def forget(self, token: int) -> None:
        """Forget a supervisor that is not needed any more."""
        self._losses.pop(token, None)

    def retire(self) -> None:
        """Disconnect from a spawner that has ended or shall end; it reports no losses from now on."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._exit = self._loop.run_in_executor(None, self._process.wait)
        for token in self._losses:
            self._settle(token, SupervisorLoss())

    async def aclose(self) -> None:
        """Let the spawner end all running commands, and wait for its exit. Idempotent."""
        self.retire()
        assert self._exit is not None
        try:
            await asyncio.wait_for(asyncio.shield(self._exit), _LEAVE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._exit

    def _listen(self) -> None:
        if (data := _received(self._socket)) is None:
            return
        if not data:
            self.retire()
            return
        for _, token, killed, survivors in self._frames.feed(data):
            self._settle(token, SupervisorLoss(killed, survivors))

    def _settle(self, token: int, loss: SupervisorLoss) -> None:
        future = self._losses.get(token)
        if future is not None and not future.done():
            future.set_result(loss)


class SupervisorLink:
    """One supervisor: it runs a command for one client at a time. Belongs to the asyncio loop.

    Made by `SupervisorLink.request`. Its client may give it the next command when `hear` has reported
    the end of the one before, and nothing of that survived.
    """

    def __init__(self, spawner: SpawnerLink, token: int, control: socket.socket) -> None:
        """Use `request` instead."""
        self._loop = asyncio.get_running_loop()
        self._spawner, self._token, self._control = spawner, token, control
        self._frames = Frames()
        self._client: RunningProcess | None = None
        self._is_open = True
        self._is_listening = True
        control.setblocking(False)
        self._loop.add_reader(control, self._listen)

    @classmethod
    async def request(cls, spawner: SpawnerLink, token: int) -> SupervisorLink:
        """Have the spawner fork a supervisor. Raises `OSError`."""
        control, theirs = socket.socketpair()
        with theirs, ExitStack() as undo:
            undo.callback(control.close)
            undo.callback(spawner.forget, token)
            await spawner.send(token, theirs.fileno())
            undo.pop_all()
        return cls(spawner, token, control)

    @property
    def is_free(self) -> bool:
        """Whether it can be given a command, and what becomes of it would be watched by the spawner."""
        return self._client is None and self._is_listening and self._spawner.is_alive

    async def run(self, client: RunningProcess, request: bytes, fds: Sequence[int]) -> None:
        """Give it a command, with copies of `fds`; from now on the client gets its messages.

        Raises `OSError`. If the supervisor has just ended, the client learns it.
        """
        self._client = client
        try:
            sent = socket.send_fds(self._control, [request], list(fds))
            if sent < len(request):
                await self._loop.sock_sendall(self._control, request[sent:])
        except ConnectionError:
            return  # the end of file shows it

    def send(self, message: bytes) -> bool:
        """Send a short message; False if the supervisor does not take it."""
        try:
            return self._control.send(message) == len(message)
        except BlockingIOError:
            return False
        except OSError:
            return True  # the supervisor is gone, which the end of file shows

    def hang_up(self) -> None:
        """Close our half of the socket: the supervisor kills everything at once, reports, and ends."""
        self._is_open = False
        try:
            self._control.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the supervisor is gone, which the end of file shows

    async def loss(self) -> SupervisorLoss:
        """Wait until the orphans of a supervisor that was lost are dead."""
        return await self._spawner.loss(self._token)

    def release(self) -> None:
        """Note that nothing of the command is left."""
        self._client = None
        if not self._is_open:
            self.close()

    def close(self) -> None:
        """Close the socket; the supervisor ends, and whatever it has. Idempotent."""
        self._stop_listening()
        self._control.close()
        self._spawner.forget(self._token)

    def _listen(self) -> None:
        if (data := _received(self._control)) is None:
            return
        for message in self._frames.feed(data):
            if self._client is not None:
                self._client.hear(message)
        if not data:
            self._stop_listening()
            if self._client is not None:
                self._client.lose()
            else:
                self.close()

    def _stop_listening(self) -> None:
        if self._is_listening:
            self._is_listening = False
            self._loop.remove_reader(self._control)


def _received(connection: socket.socket) -> bytes | None:
    """Return what came in, empty at the end; none when there is nothing now."""
    try:
        return connection.recv(_CHUNK)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _execute(link: int) -> subprocess.Popen[bytes]:
    """Execute the spawner in a new session, which the terminal's signals do not reach."""
    return subprocess.Popen(
        bare_command(_PROGRAM, str(link), str(os.getpid())),
        pass_fds=(link,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ},
        start_new_session=True,
    )
