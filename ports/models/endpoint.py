"""One model server as a client sees it: its address, its key, and its connections.

The certificates for TLS, and the modules that speak HTTP, are loaded at the first call, in a thread, so
that the loop never stands still. Cancelling the task that reads closes the connection.
"""

import asyncio
import ipaddress
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ... import __version__
from ...machines.errors import ConfigError
from ...machines.value import Value
from .error_text import ServerErrorText
from .retry import parse_retry_after

if TYPE_CHECKING:
    from .connection import ConnectionPool


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
        self._pool: ConnectionPool | None = None

    @asynccontextmanager
    async def post(self, body: Sequence[bytes]) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Send the pieces of a JSON text, and yield those of a successful answer.

        Raises `ServerFault`.
        """
        pool = await self._open()
        import h11

        try:
            async with pool.request("POST", self.diagnostic.url, body) as answer:
                if answer.status != 200:
                    raise self.diagnostic.status(
                        answer.status,
                        await _start_of(answer.pieces, ERROR_BODY),
                        parse_retry_after(answer.headers.get("retry-after")),
                    )
                yield answer.pieces
        except (OSError, ValueError, h11.ProtocolError) as error:
            raise self.diagnostic.transport(error) from error

    async def get(self, url: str) -> Any:
        """Return the JSON at an address of the same server; none on any failure."""
        pool = await self._open()
        import h11

        try:
            async with asyncio.timeout(_ASIDE), pool.request("GET", url) as answer:
                body = await _start_of(answer.pieces, _ASIDE_BODY)
                return json.loads(body) if answer.status == 200 else None
        except (OSError, ValueError, RecursionError, h11.ProtocolError):
            return None

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def _open(self) -> "ConnectionPool":
        if self._pool is None:
            pool = await asyncio.to_thread(self._make_pool)
            if self._pool is None:  # another call may have been faster
                self._pool = pool
        return self._pool

    def _make_pool(self) -> "ConnectionPool":
        from .connection import ConnectionPool, trusted_certificates

        url = self.diagnostic.url
        return ConnectionPool(
            {
                "accept": "*/*",
                "accept-encoding": "identity",
                "content-type": "application/json",
                "user-agent": f"steersman/{__version__}",
                **self._headers,
            },
            self._patience.connect,
            self._patience.silence,
            trusted_certificates() if url.startswith("https:") else None,
            is_direct=is_loopback(url),  # a proxy cannot reach our loopback
        )


async def _start_of(pieces: AsyncIterator[bytes], limit: int) -> str:
    """Read the first bytes of a body."""
    body = b""
    async for piece in pieces:
        body += piece
        if len(body) >= limit:
            break
    return body[:limit].decode("utf-8", "replace")
