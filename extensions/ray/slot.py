"""One slot of a worker: an actor of Ray with the resources of a step, which runs its commands one by one.

Each command runs below the same supervisor as on the owner's machine (`ports/process`), in a scratch
folder that holds what was sent and nothing else. If this process ends, whatever the reason, so does
everything that its command started: the supervisor notices. And the process ends when its owner has been
silent for as long as `ray.fence` says, since a network may be cut where no process dies.

What is sent and returned is plain data. Contents of files go by their hash; see `sending.py`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ...ports.process.host import ProcessHost
from ...ports.process.own_python import file_command, search_path
from ...ports.process.process import Process, ProcessResult, ProcessSpec
from ...ports.tools import calling
from ...ports.tools.environment import clean_environment
from .scratch import ScratchFolder

INLINE = 1 << 16
"""Bytes of output files that are returned with the result; more is fetched in pieces."""
PIECE = 8 << 20
"""Bytes of a file that are sent at a time."""
_KEPT = 64 << 20  # bytes of contents in memory
_STORED = 2 << 30  # bytes of contents on disk
_MOST_FILES = 10_000
_TAIL = 0.25  # seconds between two pieces of the output
_STREAMED = 16_384  # bytes of the output that wait to be sent; older ones are left out


class ReceivedContents:
    """Contents of files by their hash: small ones in memory, large ones on disk, the oldest dropped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._small: dict[str, bytes] = {}
        self._large: dict[str, int] = {}
        self._kept = self._stored = 0

    async def receive(self, sent: dict[str, Any], wanted: Iterable[str]) -> list[str]:
        """Take what was sent: bytes, or references to pieces; return the wanted hashes that lack.

        Raises `OSError`, and what Ray raises.
        """
        for digest, data in sent.items():
            if digest in self._small or digest in self._large:
                continue
            if isinstance(data, bytes):
                self._small[digest] = data
                self._kept += len(data)
            else:
                await self._fetch(digest, data)
        return [name for name in wanted if name not in self._small and name not in self._large]

    async def _fetch(self, digest: str, pieces: list[Any]) -> None:
        """Fetch a large content from the object store."""
        size = 0
        with open(self._folder / digest, "wb") as file:
            for piece in pieces:
                data = await piece
                size += len(data)
                await asyncio.to_thread(file.write, data)
        self._large[digest] = size
        self._stored += size

    def is_large(self, digest: str) -> bool:
        """Whether a content is on disk."""
        return digest in self._large

    def put(self, digest: str, target: Path, mode: int) -> None:
        """Write a content to a file that is the command's to change. Raises `OSError`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if digest in self._small:
            target.write_bytes(self._small[digest])
        else:
            shutil.copyfile(self._folder / digest, target)
        target.chmod(mode)

    def thin(self) -> None:
        """Drop the oldest, when a command has what it needs."""
        while self._kept > _KEPT:
            self._kept -= len(self._small.pop(next(iter(self._small))))
        while self._stored > _STORED:
            oldest = next(iter(self._large))
            self._stored -= self._large.pop(oldest)
            (self._folder / oldest).unlink()


class _Command:
    """A command of this slot: its process, once it runs, and its output that waits to be sent.

    `result` is how it ended, until that `is_given` to the driver. It `is_recalled` if another slot is
    given it, since it has not begun here.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        self.folder = folder
        self.has_begun = self.is_given = self.is_recalled = False
        self.result: dict[str, Any] | None = None
        self.process: Process | None = None
        self.is_stopped = False
        self.has_ended = False
        self.printed = bytearray()
        self.has_more = asyncio.Event()

    def take_output(self, data: bytes) -> None:
        """Keep output until it is sent."""
        self.printed += data
        if len(self.printed) > _STREAMED:
            del self.printed[: len(self.printed) - _STREAMED]
        self.has_more.set()


class Slot:
    """The actor, on one asyncio loop. `version` is the owner's, `allow` names variables.

    It ends itself after `fence` seconds without a sign of life of the owner.
    """

    def __init__(self, version: str, allow: list[str], fence: float) -> None:
        self._version, self._fence = version, fence
        self._environment = clean_environment(os.environ, allow)
        self._scratch = ScratchFolder("slot")
        objects = self._scratch.path / "objects"
        objects.mkdir(mode=0o700)
        self._contents = ReceivedContents(objects)
        self._host = ProcessHost()
        self._commands: dict[int, _Command] = {}
        self._empty: list[Path] = []
        self._batch: list[_Command] = []
        self._last_sign = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    async def hello(self) -> dict[str, Any]:
        """Begin; return where it is. Raises `RuntimeError` where another version is installed."""
        from ... import __version__

        if __version__ != self._version:
            raise RuntimeError(
                f"steersman {__version__} is installed on the worker, and {self._version} here"
            )
        await self._host.start()
        self._watch = asyncio.create_task(self._watch_owner())
        return {"pid": os.getpid(), "host": os.uname().nodename}

    async def beat(self) -> None:
        """Take a sign of life of the owner."""
        self._last_sign = time.monotonic()

    async def leave(self) -> None:
        """End this process, and leave nothing."""
        await self._host.aclose()
        self._scratch.remove()
        os._exit(0)

    async def _watch_owner(self) -> None:
        while (left := self._last_sign + self._fence - time.monotonic()) > 0:
            await asyncio.sleep(left)
        self._scratch.remove()
        os._exit(1)  # the supervisors end what runs

    # A command ------------------------------------------------------------------------------------

    async def run(self, orders: list[tuple[int, dict[str, Any], dict[str, Any]]]) -> list[Any]:
        """Run commands one after the other and return how each ended.

        With each goes what was sent for it: contents by their hash, bytes or references to pieces. A
        fault before a command begins is its result, too; `lacking` are hashes that were not sent.
        """
        self._last_sign = time.monotonic()
        self._batch = [self._command(number) for number, _, _ in orders]
        for command, (_, order, sent) in zip(self._batch, orders, strict=True):
            if not command.is_recalled:
                command.result = await self._run(command, order, sent)
        batch, self._batch = self._batch, []
        return [{"is_given": True} if command.is_given else command.result for command in batch]

    async def split(self) -> tuple[dict[int, Any], list[int]]:
        """Return the results that are there, by number, and which commands have not begun and do not."""
        ended: dict[int, Any] = {}
        recalled: list[int] = []
        for command in self._batch:
            if command.result is not None and not command.is_given:
                command.is_given = True
                ended[command.number] = command.result
            elif not command.has_begun:
                command.is_given = command.is_recalled = True
                recalled.append(command.number)
                await self.forget(command.number)
        return ended, recalled

    def _command(self, number: int) -> _Command:
        folder = self._empty.pop() if self._empty else self._scratch.path / f"c{number}"
        command = self._commands[number] = _Command(number, folder)
        return command

    async def _run(
        self, command: _Command, order: dict[str, Any], sent: dict[str, Any]
    ) -> dict[str, Any]:
        began, number = time.monotonic(), command.number
        command.has_begun = True
        try:
            wanted = dict.fromkeys(digest for _, _, digest in order["inputs"])
            lacking = await self._contents.receive(sent, wanted)
            if lacking:
                return {"lacking": lacking}
            if command.is_stopped:
                return {"status": "killed", "reason": "stopped before it started"}
            await self._lay_out(command.folder, order)
            spec = self._spec(command.folder, order)
            command.process = await self._host.spawn(spec, command.take_output)
            if command.is_stopped:
                command.process.stop()
            result = await command.process.wait()
        except OSError as error:
            return {"status": "failed", "reason": f"on the worker: {error}"}
        finally:
            command.has_ended = True
            command.has_more.set()
            if command.process is None:
                await self.forget(number)
        ended = await self._ended(number, command, result, order["outputs"])
        return {**ended, "took": time.monotonic() - began}

    async def stop(self, number: int, grace: float | None) -> None:
        """Begin to stop a command."""
        command = self._commands.get(number)
        if command is not None:
            command.is_stopped = True
            if command.process is not None:
                command.process.stop(grace)

    async def tail(self, number: int) -> bytes | None:
        """Wait for output and return its newest piece; none when the command has ended."""
        command = self._commands.get(number)
        if command is None or command.has_ended:
            return None
        await command.has_more.wait()
        await asyncio.sleep(_TAIL)
        command.has_more.clear()
        piece = bytes(command.printed)
        command.printed.clear()
        return piece

    async def piece(self, number: int, path: str, offset: int) -> bytes:
        """Return a piece of an output file. Raises `OSError`."""
        self._last_sign = time.monotonic()
        return await asyncio.to_thread(_read, self._commands[number].folder / path, offset)

    async def forget(self, number: int) -> None:
        """Remove the folder of a command, soon; an empty one is kept, since removing takes long."""
        command = self._commands.pop(number, None)
        if command is None or not command.folder.exists():
            return
        if os.listdir(command.folder):
            remove = partial(shutil.rmtree, command.folder, ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)
        else:
            self._empty.append(command.folder)

    async def _lay_out(self, folder: Path, order: dict[str, Any]) -> None:
        """Make the command's folder, with what was sent."""
        folder.mkdir(mode=0o700, exist_ok=True)
        for path, mode, digest in order["inputs"]:
            if self._contents.is_large(digest):
                await asyncio.to_thread(self._contents.put, digest, folder / path, mode)
            else:
                self._contents.put(digest, folder / path, mode)
        self._contents.thin()
        for path in {order["cwd"], *map(os.path.dirname, order["outputs"])} - {""}:
            (folder / path).mkdir(parents=True, exist_ok=True)

    def _spec(self, folder: Path, order: dict[str, Any]) -> ProcessSpec:
        argv, data = tuple(order["argv"]), order["stdin"]
        environment = dict(self._environment)
        if order["call"] is not None:
            call = {**order["call"], "folder": str(folder / order["call"]["folder"])}
            argv, data = file_command(calling.__file__), calling.call_input(call)
            environment |= search_path(os.environ)
        return ProcessSpec(
            argv=argv,
            cwd=folder / order["cwd"],
            environment={**environment, **order["env"]},
            stdin=data,
            timeout=order["timeout"],
            grace=order["grace"],
            keep=order["keep"],
            keep_errors=order["keep_errors"],
        )

    async def _ended(
        self, number: int, command: _Command, result: ProcessResult, outputs: list[str]
    ) -> dict[str, Any]:
        files: list[tuple[str, int, int]] = []
        missing: list[str] = []
        if result.status == "exited":
            for name in outputs:
                found = list(_files(command.folder, name))
                files += found
                if not found and not (command.folder / name).is_dir():
                    missing.append(name)
        is_inline = sum(size for _, _, size in files) <= INLINE and len(files) <= _MOST_FILES
        data = [_read(command.folder / path, 0) for path, _, _ in files] if is_inline else []
        if is_inline:
            await self.forget(number)
        return {**asdict(result), "missing": missing, "files": files, "data": data}


def _files(folder: Path, name: str) -> Iterator[tuple[str, int, int]]:
    """List the regular files of a declared output: path, mode and size. Links are none."""
    path = folder / name
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            yield name, found.st_mode & 0o777, found.st_size
        elif stat.S_ISDIR(found.st_mode):
            for inner in sorted(os.listdir(path)):
                yield from _files(folder, os.path.normpath(os.path.join(name, inner)))


def _read(path: Path, offset: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.pread(fd, PIECE, offset)
    finally:
        os.close(fd)
