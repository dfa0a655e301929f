"""The owner's side of Ray: hands commands to the driver, and writes what they made into the folder."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ...machines.errors import ToolError, UsageError
from ...ports.placement import PlacedResult, RemoteCommand
from ...ports.process.own_python import module_command, search_path
from ...ports.process.pipe import LONGEST, PipeProcess
from ...ports.process.process import Process, Processes, ProcessSpec
from ...ports.tools.environment import clean_environment
from ...ports.tools.place import find_place, open_folder
from ...workflows.config import Config
from ...workflows.durability import draft_name
from ...workflows.extras import how_to_install
from .driver import endpoint_of
from .scratch import ScratchFolder

_PROGRAM = "steersman.extensions.ray.driver"
_CONNECT = 90.0  # seconds until a driver has to be connected, or to have started a cluster
_LEAVE = 5.0  # seconds for a driver to end in order
_ATTEMPTS = 2  # a command that was not given to a worker may be given again
_MOST_FILES = 10_000
_CHUNK = 1 << 20
_WAITING = ("/bin/sleep", "2147483647")


class EndedCommand(PlacedResult):
    """How a command ended, with its files: path, mode and size of each, and their contents.

    These are `data`, or for large ones paths of files here, `staged`. `is_begun` is false if the driver
    died before it gave the command to a worker.
    """

    files: tuple[tuple[str, int, int], ...] = ()
    data: tuple[bytes, ...] = ()
    staged: tuple[str, ...] = ()
    is_begun: bool = True


def address_of(place: str) -> str:
    """Return the address in `ray`, `ray://HOST:PORT` or `ray:ADDRESS` as Ray takes it; empty: none.

    Raises `UsageError` for any other text.
    """
    if place == "ray":
        return ""
    kind, _, address = place.partition(":")
    address = place if address.startswith("//") else address
    with suppress(ValueError):
        if kind == "ray":
            endpoint_of(address)
            return address
    raise UsageError(
        f"`--on {place}` names no cluster",
        "give `ray` for a cluster on this machine, `ray:HOST:PORT` for one that this machine belongs "
        "to, or `ray://HOST:PORT` for Ray's client",
    )


class RayPlacement:
    """Runs commands on a cluster; see `Placement`. The driver is started with the first.

    `place` is as `address_of` takes it. Raises `UsageError`.
    """

    def __init__(
        self,
        place: str,
        config: Config,
        environ: Mapping[str, str],
        processes: Processes,
        notice: Callable[[str], None],
    ) -> None:
        address = address_of(place)
        self._processes, self._notice = processes, notice
        self._environment = _environment(environ)
        self._settings = {
            "address": address,
            "patience": config.ray.patience if address else 0.0,
            "fence": config.ray.fence,
            "allow": list(config.tools.environment),
        }
        self._driver: asyncio.Task[RayDriver] | None = None
        self._witnesses: dict[Path, asyncio.Task[Process]] = {}
        self._is_closed = False

    @staticmethod
    def require(place: str) -> None:
        """Raise `UsageError` for a place that is no cluster, and where Ray is not installed."""
        address_of(place)
        if find_spec("ray") is None:
            raise UsageError("Ray is not installed here", how_to_install("ray"))

    async def start(
        self, command: RemoteCommand, on_output: Callable[[bytes], None] | None = None
    ) -> Process:
        """Hand over a command. Raises `ToolError`."""
        inputs = await asyncio.to_thread(_inputs_of, command)
        await self._attest(command.process.alive)
        return _RayProcess(self, command, inputs, on_output)

    async def _attest(self, alive: Path | None) -> None:
        """Have the time of `alive` set when this program is gone, also if it is killed.

        It writes the files of the commands itself, where the supervisor of a command would attest that
        they are the command's. So one supervises a process that only waits. Raises `ToolError`.
        """
        if alive is None or self._is_closed:
            return
        if alive not in self._witnesses:
            spec = ProcessSpec(argv=_WAITING, cwd=alive.parent, alive=alive)
            self._witnesses[alive] = asyncio.create_task(self._processes.spawn(spec))
        await asyncio.shield(self._witnesses[alive])

    async def driver(self) -> RayDriver:
        """Return the driver, started again if it died. Raises `ToolError`.

        All that wait for one start learn the same fault; the next command tries again.
        """
        if self._is_closed:
            raise ToolError("no command can be sent: the program is ending")
        found = self._driver
        if found is None or (
            found.done() and (found.exception() is not None or not found.result().is_alive)
        ):
            driver = RayDriver(self._settings, self._notice)
            start = driver.start(self._processes, self._environment)
            found = self._driver = asyncio.create_task(start)
        return await asyncio.shield(found)

    async def aclose(self) -> None:
        """End the driver, and with it a cluster that it started. Idempotent."""
        self._is_closed = True
        starting, self._driver = self._driver, None
        if starting is not None:
            await asyncio.wait([starting])
            if not starting.exception():
                await starting.result().aclose()
        for witness in self._witnesses.values():
            with suppress(ToolError):
                (process := await witness).stop(0.0)
                await process.wait()


class RayDriver:
    """A driver that runs; `commands` are those that it has, by number."""

    def __init__(self, settings: dict[str, Any], notice: Callable[[str], None]) -> None:
        self._settings, self._notice = settings, notice
        self._folder = ScratchFolder("ray")
        self._pipe = PipeProcess(longest=8 * LONGEST)
        self._commands: dict[int, DriverCommand] = {}
        self._count = 0
        self._listening: asyncio.Task[None] | None = None
        self.staging = self._folder.path / "staged"
        self.staging.mkdir(mode=0o700)

    @property
    def is_alive(self) -> bool:
        """Whether it takes commands."""
        return self._listening is not None and not self._listening.done()

    async def start(self, processes: Processes, environment: dict[str, str]) -> RayDriver:
        """Start it and wait until it is connected. Raises `ToolError` with what Ray says."""
        settings = {**self._settings, "folder": str(self._folder.path)}
        program = module_command(_PROGRAM, json.dumps(settings))
        await self._pipe.start(processes, program, self._folder.path, environment)
        try:
            first = await asyncio.wait_for(self._pipe.receive(), _CONNECT)
        except TimeoutError:
            reason = f"it took longer than {_CONNECT:g} s; is it Ray that listens there?"
            first = {"reason": reason}
        if first is None or first.get("is") != "ready":
            said = (first or {}).get("reason") or _last_line(self._pipe.last_errors)
            await self.aclose()
            address = self._settings["address"]
            place = f"Ray at `{address}`" if address else "Ray"
            raise ToolError(f"{place} cannot be used: {said}")
        self._listening = asyncio.create_task(self._listen())
        return self

    async def run(
        self, order: dict[str, Any], on_output: Callable[[bytes], None] | None
    ) -> DriverCommand:
        """Hand over a command."""
        self._count += 1
        command = self._commands[self._count] = DriverCommand(self._count, on_output)
        try:
            await self._pipe.send({"do": "run", "id": self._count, **order})
        except ConnectionError:
            self._lose(command)
        return command

    async def stop(self, number: int, grace: float | None) -> None:
        """Stop a command."""
        try:
            await self._pipe.send({"do": "stop", "id": number, "grace": grace})
        except ConnectionError:
            return  # its end is reported as lost

    async def aclose(self) -> None:
        """End it, and everything that it started."""
        self._pipe.close_input()
        ended = self._pipe.result
        if ended is not None:
            await asyncio.wait([ended], timeout=_LEAVE)
            await self._pipe.end(0.0)
        if self._listening is not None:
            await self._listening
        else:
            await asyncio.to_thread(self._folder.remove)

    async def _listen(self) -> None:
        while (message := await self._pipe.receive()) is not None:
            match message.get("is"):
                case "given":
                    for number in message["ids"]:
                        self._commands[number].is_given = True
                case "output":
                    command = self._commands[message["id"]]
                    if command.on_output is not None:
                        command.on_output(base64.b64decode(message["data"]))
                case "ended":
                    ended = msgspec.convert(message, EndedCommand)
                    self._commands.pop(message["id"]).end(ended)
                case "notice":
                    self._notice(message["text"])
                case _:
                    continue
        await self._pipe.end(0.0)
        for command in list(self._commands.values()):
            self._lose(command)
        await asyncio.to_thread(self._folder.remove)

    def _lose(self, command: DriverCommand) -> None:
        """Note that there is no news of a command any more: a worker may have it, or have had it."""
        self._commands.pop(command.number, None)
        reason = f"the connection to Ray was lost: {_last_line(self._pipe.last_errors)}"
        status: Literal["unknown", "failed"] = "unknown" if command.is_given else "failed"
        command.end(EndedCommand(status=status, reason=reason, is_begun=command.is_given))


class DriverCommand:
    """A command that the driver has; `ended` is how it ended."""

    def __init__(self, number: int, on_output: Callable[[bytes], None] | None) -> None:
        self.number = number
        self.on_output = on_output
        self.is_given = False
        self.ended: asyncio.Future[EndedCommand] = asyncio.get_running_loop().create_future()

    def end(self, ended: EndedCommand) -> None:
        """Take the end, once."""
        if not self.ended.done():
            self.ended.set_result(ended)


class _RayProcess:
    """A command on its way, on a worker, and back; see `Process`."""

    def __init__(
        self,
        placement: RayPlacement,
        command: RemoteCommand,
        inputs: list[tuple[str, str]],
        on_output: Callable[[bytes], None] | None,
    ) -> None:
        self._placement, self._command, self._on_output = placement, command, on_output
        self._at: tuple[RayDriver, DriverCommand] | None = None
        self._is_stopped = False
        self._stopping = set[asyncio.Task[None]]()
        self._task = asyncio.create_task(self._run(inputs))

    @property
    def pid(self) -> int:
        """No process of this machine."""
        return 0

    async def wait(self) -> PlacedResult:
        """Return when nothing is left of it, or when nothing can be known of it."""
        return await asyncio.shield(self._task)

    def stop(self, grace: float | None = None) -> None:
        """Begin to stop it."""
        self._is_stopped = True
        if self._at is not None:
            driver, command = self._at
            task = asyncio.create_task(driver.stop(command.number, grace))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _run(self, inputs: list[tuple[str, str]]) -> PlacedResult:
        ended = EndedCommand(status="failed", reason="it could not be sent")
        for _ in range(_ATTEMPTS):
            try:
                driver = await self._placement.driver()
            except ToolError as error:
                return EndedCommand(status="failed", reason=error.message)
            if self._is_stopped:
                return EndedCommand(status="killed")
            order = _order(self._command, inputs, self._on_output is not None)
            given = await driver.run({**order, "staging": str(driver.staging)}, self._on_output)
            self._at = driver, given
            ended = await given.ended
            if ended.is_begun:
                break
            ended = replace(ended, status="killed" if self._is_stopped else "failed")
        if not ended.files:
            return ended
        return await asyncio.to_thread(_received, ended, self._command.folder)


def _order(
    command: RemoteCommand, inputs: list[tuple[str, str]], is_followed: bool
) -> dict[str, Any]:
    process = command.process
    return {
        "argv": list(process.argv),
        "call": command.call,
        "env": dict(command.added),
        "stdin": base64.b64encode(process.stdin).decode(),
        "cwd": command.cwd,
        "timeout": process.timeout,
        "grace": process.grace,
        "keep": process.keep,
        "keep_errors": process.keep_errors,
        "needs": [command.cpus, command.gpus, command.memory],
        "inputs": inputs,
        "outputs": list(command.outputs),
        "is_followed": is_followed,
    }


def _last_line(errors: str) -> str:
    """Return what Ray said last, without where and when it did."""
    line = errors.strip().splitlines()[-1:] or ["its driver ended"]
    said = re.sub(r"^\[[^]]*\] (\S+:\d+: )?", "", line[0])
    return said.partition(". ")[0].rstrip(".")[:500]


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the driver's environment: that of a tool, and what is for Ray and the interpreter."""
    own = {name: environ[name] for name in environ if name.startswith("RAY_")}
    clean = {**clean_environment(environ), **search_path(environ)}
    return {**clean, "RAY_USAGE_STATS_ENABLED": "0", **own}


# Files --------------------------------------------------------------------------------------------


def _inputs_of(command: RemoteCommand) -> list[tuple[str, str]]:
    """List the files of the inputs: path in the folder, and where each is. Raises `ToolError`."""
    found: list[tuple[str, str]] = []
    for name in command.inputs:
        place = find_place(name, command.folder)
        if place.is_outside:
            raise ToolError(f"the input `{name}` leads outside the folder, to `{place.path}`")
        if not place.path.exists():
            raise ToolError(f"the input `{name}` is not there")
        for path, source in _files_below(name, str(place.path)):
            found.append((path, source))
            if len(found) > _MOST_FILES:
                raise ToolError(f"the inputs are more than {_MOST_FILES:,} files")
    return found


def _files_below(name: str, source: str) -> Iterator[tuple[str, str]]:
    """List a file, or the regular files below a folder; links in it are left out."""
    if not os.path.isdir(source):
        yield name, source
        return
    for above, _, files in os.walk(source):
        for file in sorted(files):
            path = os.path.join(above, file)
            if not os.path.islink(path) and os.path.isfile(path):
                yield os.path.normpath(os.path.join(name, os.path.relpath(path, source))), path


def _received(ended: EndedCommand, folder: Path) -> EndedCommand:
    """Write what a command made into the folder, and return its result."""
    count = len(ended.files)
    staged, data = ended.staged or (None,) * count, ended.data or (b"",) * count
    try:
        for (path, mode, _), inline, file in zip(ended.files, data, staged, strict=True):
            _write(path, mode, inline, file, folder)
    except (OSError, ToolError) as error:
        reason = f"its outputs cannot be written: {error}"
        return replace(ended, status="failed", exit_code=None, reason=reason)
    return replace(ended, data=())


def _write(path: str, mode: int, data: bytes, staged: str | None, folder: Path) -> None:
    """Put a file into its place in one step. Raises `OSError` and `ToolError`."""
    place = find_place(path, folder)
    if place.is_outside:
        raise ToolError(f"`{path}` leads outside the folder")
    draft = draft_name()
    with open_folder(place.path.parent, create=True) as above:
        try:
            fd = os.open(
                draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=above
            )
            with open(fd, "wb") as file:
                _fill(file, data, staged)
                os.fchmod(fd, mode)
            os.rename(draft, place.path.name, src_dir_fd=above, dst_dir_fd=above)
        except OSError:
            if os.access(draft, os.F_OK, dir_fd=above):
                os.unlink(draft, dir_fd=above)
            raise


def _fill(file: Any, data: bytes, staged: str | None) -> None:
    if staged is None:
        file.write(data)
        return
    with open(staged, "rb") as source:
        while piece := source.read(_CHUNK):
            file.write(piece)
    os.unlink(staged)
