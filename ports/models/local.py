"""The embedded model: a real one that needs no key and no network, served by a child process.

The child (`local_server.py`) runs llama.cpp's own server on a random port of loopback, with a
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...machines.conversation import ChatMessage
from ...machines.errors import ModelError
from .chat import ChatModel
from .dialect import JsonDialect
from .model import ModelAnswer, ModelRequest, unheard
from .policy import SmallToolPolicy
from .reply import retell

# Fit a conversation into a small context window: the instructions and the newest messages stay


_CHARACTERS = 3  # for a token, on the safe side: English has four, code three
_LEFT_OUT = "\n[… {} characters left out …]\n"


def fit(request: ModelRequest, window: int) -> ModelRequest:
    """Return the request with as many of the newest messages as `window` tokens hold.

    The first message kept is a user message; one that is too long alone keeps its head and its
    tail.
    """
    answer = request.max_tokens or window // 4
    room = max(600, (window - answer) * _CHARACTERS - len(request.system))
    kept: list[ChatMessage] = []
    for message in reversed(request.messages):
        if kept and len(message.text) > room:
            break
        kept.append(_shortened(message, room))
        room -= len(kept[-1].text) + 4 * _CHARACTERS
    kept.reverse()
    while len(kept) > 1 and kept[0].role != "user":
        del kept[0]
    return replace(request, messages=tuple(kept))


def _shortened(message: ChatMessage, room: int) -> ChatMessage:
    text = message.text
    if len(text) <= room:
        return message
    half = max(1, (room - len(_LEFT_OUT) - 8) // 2)
    left_out = _LEFT_OUT.format(len(text) - 2 * half)
    return replace(message, text=text[:half] + left_out + text[-half:])


_SERVER = Path(__file__).with_name("local_server.py")
_LOAD_LIMIT = 120.0  # seconds
_SYSTEM = "You are a helpful AI assistant. Answer briefly."
# Tried on SmolLM2-135M: greedy with a penalty for long repetitions knows the capital of France and
# copies a file rightly; with temperature 0.2 or a usual repeat penalty it does neither.
_SAMPLING = {"repeat_penalty": 1.0, "dry_multiplier": 0.8, "dry_allowed_length": 12}
_MAX_TOKENS = 300
_TEMPERATURE = 0.0


class LocalModel:
    """A model from a GGUF file; `weights` none if they have not been fetched.

    `is_tiny` gives it a short system prompt and few tools. `window` counts tokens.
    """

    def __init__(
        self,
        weights: Path | None,
        *,
        model: str = "smollm2",
        name: str = "",
        window: int = 4096,
        is_tiny: bool = True,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name = f"{name} ({model}, embedded)" if name else f"{model} (embedded)"
        self._is_tiny = is_tiny
        self._window = window
        self._defaults = (
            _TEMPERATURE if temperature is None else temperature,
            max_tokens or _MAX_TOKENS * (1 if is_tiny else 4),
        )
        # Threads of llama.cpp wait for each other by spinning. On a busy machine with two cores,
        # one thread gave 19 tokens in a second and two gave 2; on a quiet one 45 and 75.
        cores = os.cpu_count() or 1
        threads = max(1, cores // 2) if is_tiny else cores
        self._child = _Child(self.name, model, weights, window, threads)
        self._offer = SmallToolPolicy().offer
        self._dialect = JsonDialect(self._child, self._offer if is_tiny else None)

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Start the child if need be, and answer. Raises `ModelError`."""
        temperature, max_tokens = self._defaults
        request = replace(
            request,
            # Instructions written for large models only confuse a tiny one. Those of a call
            # without tools (a judge, a summary) are its whole purpose, and stay.
            system=_SYSTEM if self._is_tiny and request.tools else request.system,
            temperature=temperature if request.temperature is None else request.temperature,
            max_tokens=min(max_tokens, request.max_tokens or max_tokens),
        )
        if self._is_tiny and not self._offer(request).tools:
            request = _retold(replace(request, tools=()))
        return await self._dialect.answer(request, on_text, on_notice, on_thought)

    async def window(self) -> int:
        """Say how many tokens fit. A tiny one sums nothing up: it sees the newest messages that fit."""
        return 0 if self._is_tiny else self._window

    async def aclose(self) -> None:
        """End the child process. Idempotent."""
        await self._child.aclose()


def _retold(request: ModelRequest) -> ModelRequest:
    """Retell what the tools found, with room to say that and little more."""
    messages = retell(request.messages)
    if messages is request.messages:
        return request
    enough = len(messages[-2].text) // 3 + 40
    return replace(request, messages=messages, max_tokens=min(enough, request.max_tokens or enough))


class _Child:
    """The serving process, started again if it has died, and the client that talks to it."""

    def __init__(
        self, name: str, model: str, weights: Path | None, window: int, threads: int
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
        self._last_words: deque[str] = deque(maxlen=5)

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        client = await self._ready(on_notice)
        return await client.answer(fit(request, self._window), on_text, on_notice, on_thought)

    async def window(self) -> int:
        return self._window

    async def aclose(self) -> None:
        if self._starting:
            self._starting.cancel()
            with suppress(asyncio.CancelledError, ModelError):
                await self._starting
        await self._end()

    async def _ready(self, on_notice: Callable[[str], None]) -> ChatModel:
        """Return the client; starting survives the cancel of the one who waits for it."""
        if self._client and self._process and self._process.returncode is None:
            return self._client
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
        on_notice("loading the embedded model…")
        return await asyncio.shield(self._starting)

    async def _start(self) -> ChatModel:
        await self._end()
        weights = self._checked_weights()
        key = secrets.token_urlsafe(24)
        pipe = asyncio.subprocess.PIPE
        # `-P`: the folder of the file must not be searched for modules, ours are there.
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            str(_SERVER),
            str(os.getpid()),  # whose it is, for who finds it without us
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
        self._client = ChatModel(f"{address}/v1", self._model, key=key, extra=_SAMPLING)
        return self._client

    def _checked_weights(self) -> Path:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelError(
                "the embedded model needs the package `xllamacpp`, which is not installed",
                "run `pip install 'steersman[local]'`",
            )
        if self._weights is None or not self._weights.is_file():
            place = f" (no file `{self._weights}`)" if self._weights else ""
            raise ModelError(
                f"the weights of the embedded model `{self._model}` are not here{place}",
                f"run `steersman models fetch {self._model}`",
            )
        return self._weights

    async def _failed(self, weights: Path) -> ModelError:
        await self._end()
        said = " / ".join(self._last_words) or "it said nothing"
        return ModelError(
            f"the embedded model could not be loaded from `{weights}`: {said}",
            f"remove that file, then run `steersman models fetch {self._model}`",
        )

    async def _read_log(self, log: asyncio.StreamReader) -> None:
        """Keep the last lines for an error message; an unread pipe would stop the child."""
        while line := await log.readline():
            self._last_words.append(line.decode("utf-8", "replace").strip()[:200])

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
