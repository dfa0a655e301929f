"""The base of all models behind an HTTP address; each wire format derives its model from it."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from ...machines.context import CHARACTERS, tokens_of
from ...machines.conversation import ChatMessage, Usage
from .dialect import JsonDialect, ReadingModel
from .endpoint import SILENCE, Endpoint, is_loopback, parse_base_url
from .error_text import ServerErrorText
from .loose_json import table, tables
from .model import AnswerListener, Model, ModelAnswer, ModelRequest
from .provider import ModelConfig, Provider, ReachResult, takes_pictures
from .reply import ANSWER_LIMIT, AnswerBuilder
from .retry import RetryPolicy, ServerFault, with_retries
from .silence import SilenceWatch
from .stream import json_objects
from .wire import WireFormat, WireValue, beginning, body, encode


class ServedModel(ABC):
    """A model called `model` by the server at `base_url`, and `name` by people.

    `key` empty sends none; `key_env` is only named in hints. `temperature` and `max_tokens` apply to
    requests that do not set them. `thinking` is a level, `off` or empty.
    """

    format: ClassVar[WireFormat]
    """The format of its messages."""
    path: ClassVar[str]
    """What is behind the address of the API in that of its answers."""
    base: ClassVar[str] = "ends in `/v1`"
    """How a `base_url` usually ends, as a part of a sentence."""

    limit: ClassVar[int | None] = None
    """The tokens of an answer where neither the request nor the configuration sets a limit."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        name: str = "",
        key: str = "",
        key_env: str = "",
        temperature: float | None = None,
        max_tokens: int | None = None,
        thinking: str = "",
        takes_pictures: bool = False,
        retry: RetryPolicy | None = None,
        silence: float = SILENCE,
    ) -> None:
        address, self._host = parse_base_url(base_url, name or model)
        self._address = self._api(address)
        self.name = f"{name} ({model} at {self._host})" if name else f"{model} at {self._host}"
        self._model = model
        self._temperature = temperature
        self._max_tokens = max_tokens or self.limit
        self._thinking = "" if thinking == "off" else thinking
        self._format = replace(self.format, takes_pictures=takes_pictures)
        self._retry = retry or RetryPolicy()
        self._fixed: tuple[ModelRequest, bytes] | None = None
        self._diagnostic = ServerErrorText(
            url=f"{self._address}{self.path}", model=model, key=key, key_env=key_env, base=self.base
        )
        self._silence = silence
        self._endpoint = Endpoint(self._diagnostic, self._headers(key), silence)

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Stream the answer to `listener` and return the whole. Raises `ModelError`."""
        conversation = await encode(self._format, request.messages, request.memory)
        content = body(self._beginning(request), conversation)

        async def attempt() -> ModelAnswer:
            reply = AnswerBuilder(listener=listener)
            await self._receive(content, reply)
            return reply.answer(request.call_prefix)

        answer = await with_retries(attempt, self._retry, listener.on_notice)
        if answer.usage.tokens:
            return answer
        # Estimated, so that limits also hold for servers that report nothing.
        fixed = (len(request.system) + len(str(request.tools))) // CHARACTERS
        said = ChatMessage(role="assistant", text=answer.text, tool_calls=answer.tool_calls)
        usage = Usage(input=fixed + conversation.tokens, output=tokens_of([said]))
        return replace(answer, usage=usage, is_estimated=True)

    async def _receive(self, content: Sequence[bytes], reply: AnswerBuilder) -> None:
        diagnostic = self._diagnostic
        try:
            async with (
                aclosing(SilenceWatch(reply.listener.on_notice, self._silence)) as watch,
                self._endpoint.post(content) as pieces,
                aclosing(json_objects(pieces, diagnostic)) as objects,
            ):
                async for value in objects:
                    watch.heard()
                    self._take_in(value, reply)
                    if reply.is_too_large:
                        break
        except ServerFault as fault:
            if not reply.is_begun:
                raise
            raise diagnostic.cut(reply.came, fault) from fault
        if reply.is_too_large:
            raise diagnostic.too_much("an answer", ANSWER_LIMIT)
        if not reply.stop_reason and reply.is_begun:
            raise diagnostic.cut(reply.came)
        if not reply.stop_reason:
            raise diagnostic.nonsense(reply.odd) if reply.odd else diagnostic.broken()
        if reply.stop_reason in ("refusal", "content_filter"):
            raise diagnostic.refused(reply.came)
        if reply.is_empty:
            raise diagnostic.empty(reply.stop_reason)

    def _beginning(self, request: ModelRequest) -> bytes:
        """Encode what comes before the conversation: of two calls in a row it is mostly the same.

        The settings that the request leaves open are added; of two limits the smaller counts.
        """
        limits = [limit for limit in (request.max_tokens, self._max_tokens) if limit is not None]
        is_open = request.temperature is None
        settled = replace(
            request,
            messages=(),
            call_prefix="",
            memory=None,
            temperature=self._temperature if is_open else request.temperature,
            max_tokens=min(limits, default=None),
        )
        if self._fixed is None or self._fixed[0] != settled:
            self._fixed = settled, beginning(self._fields(settled), self._first(settled))
        return self._fixed[1]

    async def offered(self) -> list[str]:
        """Name the models that the server lists; none where it lists none, or does not answer."""
        listing = table(await self._endpoint.get(f"{self._address}/models"))
        return [str(entry["id"]) for entry in tables(listing.get("data")) if entry.get("id")]

    @abstractmethod
    async def window(self) -> int:
        """Return the size of the context window in tokens, 0 if unknown."""

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._endpoint.aclose()

    def _api(self, address: str) -> str:
        """Return the address of the API, before `path`, for a `base_url`."""
        return address

    @abstractmethod
    def _headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request, with the key."""

    @abstractmethod
    def _take_in(self, value: dict[str, Any], reply: AnswerBuilder) -> None:
        """Add one JSON object of the body to the reply."""

    @abstractmethod
    def _fields(self, request: ModelRequest) -> WireValue:
        """Return a request in the server's format, without its messages."""

    def _first(self, request: ModelRequest) -> list[WireValue]:
        """Return what comes before the conversation in the list of messages."""
        return []


class ServedProvider(Provider):
    """A provider whose models are behind HTTP addresses; see `Provider`.

    `base_url` is the address if the configuration has none.
    """

    def __init__(self, kind: type[ServedModel], base_url: str = "") -> None:
        self._kind = kind
        self._base_url = base_url

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
        """Make a model, which writes its tool calls as JSON if it is configured to."""
        model = self._made(config, environ)
        return JsonDialect(model) if config.tool_dialect == "json" else ReadingModel(model)

    async def offered(self, config: ModelConfig, environ: Mapping[str, str]) -> list[str]:
        """Name the models that the server of a model lists. Raises `ConfigError`."""
        async with aclosing(self._made(config, environ)) as model:
            return await model.offered()

    def _made(self, config: ModelConfig, environ: Mapping[str, str]) -> ServedModel:
        return self._kind(
            config.base_url or self._base_url,
            config.model,
            name=config.name,
            key=environ.get(config.api_key_env, ""),
            key_env=config.api_key_env,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            thinking=config.thinking or "",
            takes_pictures=takes_pictures(config),
            silence=config.timeout or SILENCE,
        )

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Open a connection to the server and close it; no request is sent, so it costs nothing."""
        url = urlsplit(config.base_url or self._base_url)
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        if not host:
            return ReachResult("bad", hint=f"`base_url` is no address: `{config.base_url}`")
        try:
            socket.create_connection((host, port), seconds).close()
        except OSError as error:
            text = f"{host}:{port} does not answer ({error.strerror or error})"
            is_here = is_loopback(url.geturl())
            hint = "start the server" if is_here else "check the network, and HTTPS_PROXY"
            return ReachResult("bad", text, f"{hint}, or correct `base_url`")
        if config.api_key_env and not environ.get(config.api_key_env):
            return ReachResult("warn", hint=f"{config.api_key_env} is not set: no key is sent")
        return ReachResult("ok", "it answers")
