"""One model server as a client sees it: its address, its key, and its connections.

HTTP is spoken by httpx2, whose import and TLS set-up take 0.2 s: both happen at the first call, in
a thread, so that the loop never stands still. Cancelling the task that reads closes the connection.
"""

import asyncio
import ipaddress
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...machines.errors import ConfigError
from ...machines.value import Value
from .error_text import ServerErrorText
from .retry import parse_retry_after

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


_REST = 0.05  # seconds to wait for the end of a body whose last event has come
_AT_ONCE = 256 * 1024  # bytes of a body that is sent in one piece
_KEPT = 90.0  # seconds a connection is kept: tools and people take longer than the usual 5
_ASIDE = 5.0  # seconds for a request about the server itself
ERROR_BODY = 64 * 1024
"""Bytes of an error page that are read."""
_ASIDE_BODY = 8 << 20  # bytes of an answer about the server itself


class Patience(Value):
    """Seconds after which a call fails because the server does not accept, or sends nothing."""

    connect: float = 10.0
    silence: float = 300.0


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
    host = _host(base_url.strip())
    if not host:
        raise ConfigError(
            f"model `{name}`: `base_url` is no address: `{base_url}`",
            "give one like `http://127.0.0.1:8080/v1`",
        )
    return base_url.strip().rstrip("/"), host


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    return parts.netloc.rpartition("@")[2] if is_good else ""


class Endpoint:
    """Posts JSON to one URL, and yields the pieces of the answer; used on one asyncio loop."""

    def __init__(
        self, diagnostic: ServerErrorText, headers: Mapping[str, str], patience: Patience
    ) -> None:
        self.diagnostic = diagnostic
        self._headers = dict(headers)
        self._patience = patience
        self._client: AsyncClient | None = None

    @asynccontextmanager
    async def post(self, body: Sequence[bytes]) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Send the pieces of a JSON text, and yield those of a successful answer.

        Raises `ServerFault`.
        """
        client = await self._open()
        import httpx2

        size = sum(map(len, body))
        content = b"".join(body) if size <= _AT_ONCE else _each(body)
        length = {"content-length": str(size)}
        try:
            async with client.stream(
                "POST", self.diagnostic.url, content=content, headers=length
            ) as response:
                if response.status_code != 200:
                    raise self.diagnostic.status(
                        response.status_code,
                        await _start_of(response, ERROR_BODY),
                        parse_retry_after(response.headers.get("retry-after")),
                    )
                pieces = response.aiter_bytes()
                yield pieces
                with suppress(TimeoutError, httpx2.HTTPError):
                    async with asyncio.timeout(_REST):  # read to the end, and it can be reused
                        async for _ in pieces:
                            continue
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.diagnostic.transport(error) from error

    async def get(self, url: str) -> Any:
        """Return the JSON at an address of the same server; none on any failure."""
        client = await self._open()
        import httpx2

        try:
            async with client.stream("GET", url, timeout=_ASIDE) as response:
                body = await _start_of(response, _ASIDE_BODY)
                return json.loads(body) if response.status_code == 200 else None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
            return None

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _open(self) -> "AsyncClient":
        if self._client is None:
            client = await asyncio.to_thread(self._make_client)
            if self._client is None:  # another call may have been faster
                self._client = client
        return self._client

    def _make_client(self) -> "AsyncClient":
        import httpx2

        url = self.diagnostic.url
        return httpx2.AsyncClient(
            headers={"content-type": "application/json", **self._headers},
            timeout=httpx2.Timeout(
                self._patience.silence, connect=self._patience.connect, pool=None
            ),
            # On loopback a new connection costs nothing, and one that is kept may just be closing.
            limits=httpx2.Limits(
                max_connections=None,
                max_keepalive_connections=0 if is_loopback(url) else 4,
                keepalive_expiry=_KEPT,
            ),
            http2=False,
            verify=url.startswith("https:"),  # no certificates are loaded for plain HTTP
            trust_env=not is_loopback(url),  # a proxy cannot reach our loopback
        )


async def _each(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Give the pieces of a body one by one, so that the loop has its turn between them."""
    for piece in pieces:
        yield piece


async def _start_of(response: "Response", limit: int) -> str:
    """Read the first bytes of a body."""
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= limit:
            break
    return body[:limit].decode("utf-8", "replace")
