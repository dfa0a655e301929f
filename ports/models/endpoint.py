"""One model server as a client sees it: its address, its key, and its connections.

What speaks HTTP is imported at the first call, in a thread, so that the loop never stands still.
Cancelling the task that reads closes the connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...machines.errors import ConfigError
from ...machines.json_shape import parse_json
from .error_text import ServerErrorText
from .retry import parse_retry_after
from .route import Address, ResponseHead, proxy_of, target_of, trusted_certificates

if TYPE_CHECKING:
    from .connection import ModelConnection

_REST = 0.05  # seconds to wait for the end of a body whose last event has come
_AT_ONCE = 256 * 1024  # bytes of a body that is sent in one piece
_KEPT = 90.0  # seconds a connection is kept: tools and people take longer than the usual 5
_MOST_KEPT = 4  # connections
_ASIDE = 5.0  # seconds for a request about the server itself
SILENCE = 300.0
"""Seconds after which a call fails because the server sends nothing, unless another time is given."""
ERROR_BODY = 64 * 1024
"""Bytes of an error page that are read."""
_ASIDE_BODY = 8 << 20  # bytes of an answer about the server itself


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_base_url(base_url: str, name: str) -> tuple[str, str]:
    """Return the address without a trailing slash, and its host and port.

    Raises `ConfigError` with the model's name if no request can be sent to the address.
    """
    url = base_url.strip()
    try:
        parts = urlsplit(url)
        Address.of(url)  # its name may be impossible
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url.rstrip("/"), parts.netloc.rpartition("@")[2]
    except ValueError:
        pass
    raise ConfigError(
        f"model `{name}`: `base_url` is no address: `{base_url}`",
        "give one like `http://127.0.0.1:8080/v1`",
    )


class Endpoint:
    """Posts JSON to one URL, and yields the pieces of the answer; used on one asyncio loop."""

    def __init__(
        self, diagnostic: ServerErrorText, headers: Mapping[str, str], silence: float = SILENCE
    ) -> None:
        self.diagnostic = diagnostic
        self._silence = silence
        self._address = Address.of(diagnostic.url)
        # A proxy cannot reach our loopback.
        self._proxy = None if is_loopback(diagnostic.url) else proxy_of(self._address)
        self._kept: list[tuple[float, ModelConnection]] = []
        self._open: set[ModelConnection] = set()
        self._connect: Callable[[], Awaitable[ModelConnection]] | None = None
        self._headers = {
            "host": self._address.header,
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "steersman",
            **({"authorization": self._address.login} if self._address.login else {}),
            **headers,
        }
        self._is_relayed = self._proxy is not None and not self._address.is_encrypted
        if self._is_relayed and self._proxy is not None and self._proxy.login:
            self._headers["proxy-authorization"] = self._proxy.login

    @asynccontextmanager
    async def post(self, body: Sequence[bytes]) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Send the pieces of a JSON text, and yield those of a successful answer.

        Raises `ServerFault`.
        """
        size = sum(map(len, body))
        headers = {"content-type": "application/json", "content-length": str(size)}
        pieces = (b"".join(body),) if size <= _AT_ONCE else body
        try:
            async with self._asked("POST", self.diagnostic.url, headers, pieces) as (answer, came):
                if answer.status != 200:
                    raise self.diagnostic.status(
                        answer.status,
                        await _start_of(came, ERROR_BODY),
                        parse_retry_after(answer.headers.get("retry-after")),
                    )
                yield came
                with suppress(TimeoutError):
                    async with asyncio.timeout(_REST):  # read to the end, and it can be reused
                        async for _ in came:
                            continue
        except OSError as error:
            raise self.diagnostic.transport(error) from error

    async def get(self, url: str) -> Any:
        """Return the JSON at an address of the same server; none on any failure."""
        try:
            async with asyncio.timeout(_ASIDE), self._asked("GET", url) as (answer, came):
                body = await _start_of(came, _ASIDE_BODY)
                return parse_json(body) if answer.status == 200 else None
        except (OSError, ValueError, RecursionError):
            return None

    async def aclose(self) -> None:
        """Close the connections, and wait until they are. Idempotent."""
        self._kept.clear()
        while self._open:
            connection = self._open.pop()
            connection.close()
            await connection.lost.wait()

    @asynccontextmanager
    async def _asked(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: Sequence[bytes] = (),
    ) -> AsyncGenerator[tuple[ResponseHead, AsyncIterator[bytes]], None]:
        """Send a request, and yield the header of the answer, and its body; then keep or close.

        A kept connection may be closed by its server at the moment in which it is used: if nothing of an
        answer came, the request is sent once more on a new one. Raises `OSError`.
        """
        target = target_of(url)
        if self._is_relayed:
            target = f"http://{self._address.header}{target}"
        asked = method, target, {**self._headers, **(headers or {})}, body
        kept: ModelConnection | None = None
        # The newest first; those that are useless now are closed.
        while self._kept and kept is None:
            since, kept = self._kept.pop()
            if not kept.is_idle or time.monotonic() - since >= _KEPT:
                kept.close()
                kept = None
        connection = kept or await self._opened()
        with ExitStack() as undoing:
            undoing.callback(lambda: connection.close())  # whichever it is then
            try:
                answer = await connection.request(*asked)
            except ConnectionError:
                if connection is not kept or connection.is_answered:
                    raise
                connection.close()
                connection = await self._opened()
                answer = await connection.request(*asked)
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise ConnectionError("the answer is compressed, which was not asked for")
            yield answer, connection.body()
            undoing.pop_all()
        if connection.is_idle and len(self._kept) < _MOST_KEPT:
            self._kept.append((time.monotonic(), connection))
        else:
            connection.close()

    async def _opened(self) -> ModelConnection:
        if self._connect is None:
            self._connect = await asyncio.to_thread(self._prepared)
        connection = await self._connect()
        self._open = {connection, *(each for each in self._open if not each.lost.is_set())}
        return connection

    def _prepared(self) -> Callable[[], Awaitable[ModelConnection]]:
        """Return what opens a connection; takes a while."""
        from .connection import ModelConnection

        speakers = (self._address, self._proxy)
        is_encrypted = any(to is not None and to.is_encrypted for to in speakers)
        trusted = trusted_certificates() if is_encrypted else None
        return partial(ModelConnection.open, *speakers, trusted, self._silence)


async def _start_of(pieces: AsyncIterator[bytes], limit: int) -> str:
    """Read the first bytes of a body."""
    body = b""
    async for piece in pieces:
        body += piece
        if len(body) >= limit:
            break
    return body[:limit].decode("utf-8", "replace")
