"""The embedded model: a real one that needs no key and no network, served by a child process.

The child (`server.py`) runs llama.cpp's own server on a random port of loopback, with a
random key. It starts at the first answer, and ends with this process however that ends, because its
standard input ends then. It is started in a session of its own, so Ctrl-C reaches only us.
"""

import asyncio
import importlib.util
import json
import os
import secrets
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ....machines.errors import ConfigError, ModelError
from ..chat import ChatModel
from ..dialect import JsonDialect
from ..model import AnswerListener, ModelAnswer, ModelRequest
from ..provider import ModelConfig, ReachResult
from .weights import catalogue, entry_named, fetched, usual_here
from .window import fit

_SERVER = Path(__file__).with_name("server.py")
_LOAD_LIMIT = 120.0  # seconds
_MAX_TOKENS = 1200
_TEMPERATURE = 0.0


class EmbeddedModel:
    """A model from a GGUF file; `weights` finds it, none if it has not been fetched yet.

    `model` is its name, `name` that of its configuration. `window` counts tokens.
    """

    def __init__(
        self,
        weights: Callable[[], Path | None],
        *,
        model: str,
        name: str = "",
        window: int = 8192,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name = f"{name} ({model}, embedded)" if name else f"{model} (embedded)"
        self._window = window
        self._temperature = _TEMPERATURE if temperature is None else temperature
        self._max_tokens = max_tokens or _MAX_TOKENS
        self._child = _Child(self.name, model, weights, window, os.cpu_count() or 1)
        self._dialect = JsonDialect(self._child)

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Start the child if need be, and answer. Raises `ModelError`."""
        most = request.max_tokens or self._max_tokens
        request = replace(
            request,
            temperature=self._temperature if request.temperature is None else request.temperature,
            max_tokens=min(self._max_tokens, most),
        )
        return await self._dialect.answer(request, listener)

    async def window(self) -> int:
        """Return the window in tokens."""
        return self._window

    async def aclose(self) -> None:
        """End the child process. Idempotent."""
        await self._child.aclose()


def _checked(model: str, weights: Path | None) -> Path:
    """Return the weights of a model. Raises `ModelError` if they, or the engine, are not here."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelError(
            "the embedded model needs the package `xllamacpp`, which is not installed",
            "run `pip install 'steersman[local]'`",
        )
    if weights is None or not weights.is_file():
        place = f" (no file `{weights}`)" if weights else ""
        raise ModelError(
            f"the weights of the embedded model `{model}` are not here{place}",
            f"run `steersman models fetch {model}`",
        )
    return weights


class _Child:
    """The serving process, started again if it has died, and the client that talks to it."""

    def __init__(
        self,
        name: str,
        model: str,
        weights: Callable[[], Path | None],
        window: int,
        threads: int,
    ) -> None:
        self.name = name
        self._model = model
        self._weights = weights
        self._window = window
        self._threads = threads
        self._process: asyncio.subprocess.Process | None = None
        self._client: ChatModel | None = None
        self._starting: asyncio.Task[ChatModel] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._last_lines: deque[str] = deque(maxlen=5)

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        client = await self._ready(listener.on_notice)
        return await client.answer(fit(request, self._window), listener)

    async def window(self) -> int:
        return self._window

    async def aclose(self) -> None:
        if self._starting:
            self._starting.cancel()
            with suppress(asyncio.CancelledError, ModelError):
                await self._starting
        await self._end()

    async def _ready(self, on_notice: Callable[[str], None]) -> ChatModel:
        """Return the client; the start of the child continues if the waiting task is cancelled."""
        if self._client and self._process and self._process.returncode is None:
            return self._client
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
        on_notice("loading the embedded model…")
        return await asyncio.shield(self._starting)

    async def _start(self) -> ChatModel:
        await self._end()
        weights = _checked(self._model, self._weights())  # perhaps fetched since
        key = secrets.token_urlsafe(24)
        pipe = asyncio.subprocess.PIPE
        # `-P`: the folder of the file, which has modules of ours, must not be searched for modules.
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            str(_SERVER),
            str(os.getpid()),  # by which `leftovers` finds it when this process has died
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._reading = asyncio.create_task(self._read_log(process.stderr))
        settings = {
            "weights": str(weights),
            "window": self._window,
            "threads": self._threads,
            "key": key,
        }
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        try:
            async with asyncio.timeout(_LOAD_LIMIT):
                address = (await process.stdout.readline()).decode().strip()
        except TimeoutError:
            address = ""
        if not address:
            raise await self._failed(weights)
        self._client = ChatModel(f"{address}/v1", self._model, key=key)
        return self._client

    async def _failed(self, weights: Path) -> ModelError:
        await self._end()
        log = " / ".join(self._last_lines) or "it said nothing"
        return ModelError(
            f"the embedded model could not be loaded from `{weights}`: {log}",
            f"remove that file, then run `steersman models fetch {self._model}`",
        )

    async def _read_log(self, log: asyncio.StreamReader) -> None:
        """Keep the last lines for an error message; an unread pipe would stop the child."""
        while line := await log.readline():
            self._last_lines.append(line.decode("utf-8", "replace").strip()[:200])

    async def _end(self) -> None:
        client, self._client = self._client, None
        process, self._process = self._process, None
        if client:
            await client.aclose()
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


class EmbeddedProvider:
    """Makes models of the catalogue, and of GGUF files; see `Provider`."""

    def offers(self) -> tuple[str, ...]:
        """Return the names of the catalogue's models."""
        return tuple(entry.name for entry in catalogue())

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> EmbeddedModel:
        """Make a model of a name in the catalogue, or of the path of a GGUF file."""
        name = _name(config, cache)
        entry = entry_named(name)
        if entry is None and not name.endswith(".gguf"):
            raise ConfigError(
                f"model `{config.name}`: `{name}` is neither in the catalogue nor a GGUF file",
                f"known are: {', '.join(entry.name for entry in catalogue())}",
            )
        return EmbeddedModel(
            lambda: _weights(name, cache),
            model=entry.name if entry else Path(name).stem,
            name=config.name if config.name != name else "",
            window=config.context_window or (entry.window if entry else 8192),
            temperature=config.temperature,
            max_tokens=config.max_tokens,
        )

    def check(self, config: ModelConfig, cache: Path) -> None:
        """Raise `ModelError` if the weights or the engine are not here."""
        name = _name(config, cache)
        _checked(name, _weights(name, cache))

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Return whether the engine is installed."""
        if importlib.util.find_spec("xllamacpp") is None:
            return ReachResult("warn", hint="pip install 'steersman[local]'")
        return ReachResult("ok")


def _name(config: ModelConfig, cache: Path) -> str:
    """Return what a configuration names, or the usual model of this machine."""
    return config.model or usual_here(cache).entry.name


def _weights(name: str, cache: Path) -> Path | None:
    """Return the file of a name in the catalogue, none if it was not fetched, or of a path."""
    entry = entry_named(name)
    return fetched(entry, cache) if entry else Path(name).expanduser()


PROVIDER = EmbeddedProvider()
