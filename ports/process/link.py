"""The runtime's side of the spawner: start it, send it commands, receive losses of supervisors."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .wire import TOKEN, Frames

_PROGRAM = Path(__file__).with_name("__main__.py")
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # some interpreters need them to start
_LEAVE_SECONDS = 10.0


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

    async def send(self, token: int, fds: Sequence[int]) -> None:
        """Ask for a supervisor that gets copies of `fds`. Raises `OSError`."""
        async with self._sending:
            self._losses[token] = self._loop.create_future()
            while True:
                try:
                    socket.send_fds(self._socket, [TOKEN.pack(token)], list(fds))
                    return
                except BlockingIOError:
                    await self._writable()

    async def loss(self, token: int) -> SupervisorLoss:
        """Wait until the orphans of a dead supervisor are dead."""
        return await self._losses[token]

    def forget(self, token: int) -> None:
        """Forget a command that has ended."""
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

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._socket, ready.set_result, None)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._socket)

    def _listen(self) -> None:
        try:
            data = self._socket.recv(65_536)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.retire()
            return
        for _, token, killed, survivors in self._frames.feed(data):
            self._settle(token, SupervisorLoss(killed, survivors))

    def _settle(self, token: int, loss: SupervisorLoss) -> None:
        future = self._losses.get(token)
        if future is not None and not future.done():
            future.set_result(loss)


def _execute(link: int) -> subprocess.Popen[bytes]:
    """Execute the spawner in a new session, which the terminal's signals do not reach."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_PROGRAM), str(link), str(os.getpid())],
        pass_fds=(link,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ},
        start_new_session=True,
    )
