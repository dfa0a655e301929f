"""The process that serves a model, the prompts that are kept for it, and who uses it.

The child (`server.py`) runs llama.cpp's own server on a random port of loopback, with a random key. The
sessions of a program that use the same weights share it, and it gives one answer at a time: two side by
side took longer than one after the other, and each session would read the same instructions. It starts at
the first answer, and ends with the last model that uses it, or with this process however that ends,
because its standard input ends then. It is started in a session of its own, so Ctrl-C reaches only us.
"""

import asyncio
import hashlib
import json
import os
import secrets
from asyncio.subprocess import PIPE
from collections import deque
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ...machines.errors import ModelError
from ...machines.value import Value
from ...ports.models.chat import ChatModel
from ...ports.models.endpoint import Endpoint
from ...ports.models.error_text import ServerErrorText
from ...ports.models.loose_json import count, table
from ...ports.models.model import AnswerListener, ModelAnswer, ModelRequest, dropped
from ...ports.models.reply import AnswerBuilder
from ...ports.models.stream import json_objects
from ...ports.models.wire import WireValue
from ...ports.process.own_python import file_command, search_path
from ...workflows.durability import make_folders

_SERVER = Path(__file__).with_name("server.py")
_LOAD_LIMIT = 120.0  # seconds
_SLOW = 2.0  # seconds of a wait after which people are told what is waited for
_LONG = 1000  # characters of instructions from which on their state is worth a file
_MOST_KEPT = 8  # files, of some 40 MB each
Notice = Callable[[str], None]


class ChildSettings(Value):
    """What a child serves: `window` counts tokens, `prompts` is the folder of what it has read before."""

    model: str
    weights: Path
    window: int
    prompts: Path


class ModelProcess:
    """The serving process, started again if it has died, and the client that talks to it."""

    def __init__(self, settings: ChildSettings) -> None:
        self.settings = settings
        self.users: set[object] = set()
        self._process: asyncio.subprocess.Process | None = None
        self._server: _Server | None = None
        self._starting: asyncio.Task[_Server] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._last_lines: deque[str] = deque(maxlen=5)
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int:
        """The process id; 0 if it does not run."""
        return self._process.pid if self._process else 0

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Answer when those who asked before have their answers. Raises `ModelError`."""
        with announced(listener.on_notice, "loading the embedded model…"):
            server = self._server
            if not (server and self._process and self._process.returncode is None):
                if self._starting is None or self._starting.done():
                    self._starting = asyncio.create_task(self._start())
                # The start goes on if this task is cancelled.
                server = await asyncio.shield(self._starting)
        with announced(listener.on_notice, "waiting: the model answers another session…") as over:
            async with self._turn:
                over()
                return await server.answer(request, listener)

    async def aclose(self) -> None:
        """End the process. Idempotent."""
        if self._starting:
            self._starting.cancel()
            with suppress(asyncio.CancelledError, ModelError):
                await self._starting
        await self._end()

    async def _start(self) -> "_Server":
        await self._end()
        settings = self.settings
        key = secrets.token_urlsafe(24)
        with suppress(OSError):  # without the folder, nothing is kept
            make_folders(settings.prompts, 0o700)
        self._process = process = await asyncio.create_subprocess_exec(
            # By the process id, `leftovers` finds it when this process has died.
            *file_command(_SERVER, str(os.getpid())),
            env={**os.environ, **search_path(os.environ)},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._reading = asyncio.create_task(self._read_log(process.stderr))
        written = {
            "weights": str(settings.weights),
            "window": settings.window,
            "prompts": f"{settings.prompts}/" if settings.prompts.is_dir() else "",
            "key": key,
        }
        process.stdin.write(json.dumps(written).encode() + b"\n")
        try:
            async with asyncio.timeout(_LOAD_LIMIT):
                address = (await process.stdout.readline()).decode().strip()
        except TimeoutError:
            address = ""
        if not address:
            await self._end()
            log = " / ".join(self._last_lines) or "it said nothing"
            raise ModelError(
                f"the embedded model could not be loaded from `{settings.weights}`: {log}",
                f"remove that file, then run `steersman models fetch {settings.model}`",
            )
        self._server = _Server(settings, address, key)
        return self._server

    async def _read_log(self, log: asyncio.StreamReader) -> None:
        """Keep the last lines for an error message; an unread pipe would stop the child."""
        while line := await log.readline():
            self._last_lines.append(line.decode("utf-8", "replace").strip()[:200])

    async def _end(self) -> None:
        server, self._server = self._server, None
        process, self._process = self._process, None
        if server:
            await server.aclose()
        if process:
            assert process.stdin
            process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
        if self._reading:
            await self._reading


_shared: dict[tuple[asyncio.AbstractEventLoop, Path, int], ModelProcess] = {}
"""The children of this program; a child belongs to the loop that started it."""


def claim(settings: ChildSettings, user: object) -> ModelProcess:
    """Return the child that serves these weights; `user` has to `release` it."""
    key = asyncio.get_running_loop(), settings.weights, settings.window
    child = _shared.setdefault(key, ModelProcess(settings))
    child.users.add(user)
    return child


async def release(child: ModelProcess, user: object) -> None:
    """End a child if no one else uses it."""
    child.users.discard(user)
    if not child.users:
        for key in [key for key, shared in _shared.items() if shared is child]:
            del _shared[key]
        await child.aclose()


class _Server(ChatModel):
    """The llama.cpp server of a child; asked by one task at a time.

    It keeps the state of what it has read last. That of long instructions is also kept in a file, by
    which a later process need not read them.
    """

    def __init__(self, settings: ChildSettings, address: str, key: str) -> None:
        super().__init__(f"{address}/v1", settings.model, key=key)
        self._settings = settings
        self._root = address
        self._key = key
        self._known: set[str] = set()  # the names of the states that it has read
        self._progress = _ReadingNotice(dropped)

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Answer; instructions that are new to it are read first. Raises `ModelError`."""
        await self._read_instructions(request, listener.on_notice)
        self._progress = _ReadingNotice(listener.on_notice)
        return await super().answer(request, listener)

    def _fields(self, request: ModelRequest) -> WireValue:
        return super()._fields(request) | {"return_progress": True}

    def _take_in(self, value: dict[str, Any], reply: AnswerBuilder) -> None:
        self._progress.take_in(value)
        super()._take_in(value, reply)

    async def _read_instructions(self, request: ModelRequest, on_notice: Notice) -> None:
        """Get the state of the instructions from its file, or read them and write it."""
        folder = self._settings.prompts
        name = _state_name(self._settings, request)
        if len(request.system) < _LONG or name in self._known or not folder.is_dir():
            return
        # What fails here, for example since a template wants a question, costs only what it would save.
        with suppress(ModelError, OSError):
            if not await self._restored(folder / name):
                said = {"role": "system", "content": request.system}
                body = {
                    "messages": [said],
                    "max_tokens": 0,
                    "stream": True,
                    "return_progress": True,
                }
                progress = _ReadingNotice(on_notice, ", once for these instructions")
                await self._post("/v1/chat/completions", body, progress)
                draft = f"{os.getpid()}.{name}"
                await self._post("/slots/0?action=save", {"filename": draft})
                os.replace(folder / draft, folder / name)
                # All but the newest go, also drafts of processes that are gone.
                files = sorted(
                    folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True
                )
                for file in files[_MOST_KEPT:]:
                    file.unlink(missing_ok=True)
        self._known.add(name)

    async def _restored(self, file: Path) -> bool:
        """Read a state; one that cannot be used is removed."""
        if not file.exists():
            return False
        try:
            if self._known:  # another text has the server put the conversation that it has aside
                await self._post("/completion", {"prompt": ".", "n_predict": 0})
            await self._post("/slots/0?action=restore", {"filename": file.name})
        except ModelError:
            file.unlink(missing_ok=True)
            return False
        os.utime(file)
        return True

    async def _post(
        self, path: str, body: dict[str, Any], progress: "_ReadingNotice | None" = None
    ) -> None:
        """Send a request, and read the answer to its end. Raises `ModelError`."""
        url = f"{self._root}{path}"
        diagnostic = ServerErrorText(url=url, model=self._model, key=self._key)
        endpoint = Endpoint(diagnostic, self._headers(self._key))
        try:
            async with (
                endpoint.post([json.dumps(body).encode()]) as pieces,
                aclosing(json_objects(pieces, diagnostic)) as values,
            ):
                async for value in values:
                    if progress:
                        progress.take_in(value)
        finally:
            await endpoint.aclose()


class _ReadingNotice:
    """Tells once how many tokens are read, if that takes more than some seconds."""

    def __init__(self, on_notice: Notice, why: str = "") -> None:
        self._on_notice = on_notice
        self._why = why
        self._is_told = False

    def take_in(self, value: dict[str, Any]) -> None:
        """Look at a chunk of llama.cpp's stream, which may have a progress."""
        progress = table(value.get("prompt_progress"))
        seconds = count(progress, "time_ms") / 1000
        kept, read = count(progress, "cache"), count(progress, "processed")
        new = count(progress, "total") - kept
        if self._is_told or seconds < _SLOW or read <= kept:
            return
        left = seconds * (new - (read - kept)) / (read - kept)
        if left > _SLOW:
            self._is_told = True
            self._on_notice(f"reading {new:,} tokens, about {left:.0f} s{self._why}…")


@contextmanager
def announced(on_notice: Notice, text: str) -> Generator[Callable[[], None], None, None]:
    """Tell what is waited for if the wait is long; yields what ends the wait before the block does."""
    handle = asyncio.get_running_loop().call_later(_SLOW, on_notice, text)
    try:
        yield handle.cancel
    finally:
        handle.cancel()


def _state_name(settings: ChildSettings, request: ModelRequest) -> str:
    """Return the name of the file for the state of a request's instructions."""
    import importlib.metadata  # takes a while

    weights = settings.weights.stat()
    made_of = (
        *(str(settings.weights), weights.st_size, weights.st_mtime_ns, settings.window),
        *(importlib.metadata.version("xllamacpp"), request.system, repr(request.tools)),
    )
    return hashlib.sha256(repr(made_of).encode("utf-8", "replace")).hexdigest()[:32] + ".state"
