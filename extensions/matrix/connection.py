"""A connection to a Matrix server: one attempt a request, bounded answers, and clear errors.

The library repeats a request without end by default, reads answers of any size, and tells a refusal from
a broken proxy only by the HTTP status. Here each request is made once, ends in a time limit,
and fails with

    OSError     it is not known whether the server has done it: no answer, or one of a broken server
    NotSent     not now: the server asks to wait for `seconds`
    MatrixRefusal     the server will not do it, and says why

Source: https://spec.matrix.org/latest/client-server-api/
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar, cast

import truststore
from aiohttp import (
    ClientConnectionError,
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientTimeout,
)
from nio import (  # pyright: ignore[reportMissingTypeStubs]
    AsyncClient,
    AsyncClientConfig,
    ErrorResponse,
    LocalProtocolError,
)
from nio.responses import Response  # pyright: ignore[reportMissingTypeStubs]

from ...gateway.chat.platform import NotSent
from ...machines.errors import SteersmanError
from ...machines.json_shape import parse_json
from ...ports.models.loose_json import table
from .events import one_line

R = TypeVar("R", bound=Response)

REQUEST = 30.0
"""Seconds that a request may take, those of a long poll and of a file apart."""

_CONNECT = 10.0
_LARGEST = 32 << 20  # bytes of an answer: many times what the filters and limits here lead to
_RETRY_AFTER = 5.0  # seconds, if the server does not say how long to wait

logging.getLogger("nio").addHandler(logging.NullHandler())  # no line on a screen


class MatrixRefusal(SteersmanError):
    """The server refuses a request; `code` is Matrix's own word for the reason, such as `M_FORBIDDEN`."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_logged_out(self) -> bool:
        """Whether the access token is not valid, or not any more."""
        return self.code in {"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"}


class _Client(AsyncClient):  # type: ignore[misc]  # mypy finds no types in the library
    """The library's client, with a time limit for every request and a bound for every answer."""

    _is_closed = False

    async def send(
        self,
        method: str,
        path: str,
        data: Any = None,
        headers: dict[str, str] | None = None,
        trace_context: Any | None = None,
        timeout: Any = None,
    ) -> ClientResponse:
        """Send a request; a `timeout` of 0 means none to the library, and here the usual one."""
        if self._is_closed:  # the library would connect again
            raise ClientConnectionError("the connection was closed")
        limit = ClientTimeout(total=timeout or REQUEST, sock_connect=_CONNECT)
        sending = super().send(method, path, data, headers, trace_context, cast("float", limit))
        answer: ClientResponse = await sending
        return answer

    async def close(self) -> None:
        """Close the connection; no request opens it again."""
        self._is_closed = True
        await super().close()

    async def parse_body(self, transport_response: ClientResponse) -> dict[Any, Any]:
        """Return the JSON object of an answer, an empty one if it is none."""
        body = await read(transport_response, _LARGEST)
        with suppress(ValueError, RecursionError):
            return table(parse_json(body))
        return {}


async def read(answer: ClientResponse, limit: int) -> bytes:
    """Return the body of an answer; raises `ClientPayloadError` if it has more than `limit` bytes."""
    body = bytearray()
    async for chunk in answer.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > limit:
            answer.close()
            raise ClientPayloadError(f"the answer has more than {limit:,} bytes")
    return bytes(body)


async def fetch(client: AsyncClient, path: str, limit: int, seconds: float) -> bytes:
    """Return what is at a path of the server; raises `OSError`, also beyond `limit` bytes."""
    headers = {"Authorization": f"Bearer {client.access_token}"}
    try:
        answer = await client.send("GET", path, headers=headers, timeout=seconds)
        async with answer:
            if answer.status != 200:
                raise ConnectionError(f"the server answers with HTTP {answer.status}")
            return await read(answer, limit)
    except (ClientError, TimeoutError) as error:
        raise ConnectionError(one_line(str(error)) or type(error).__name__) from error


def connect(server: str, account: str) -> AsyncClient:
    """Return a client that is not logged in; no request is made yet."""
    config = AsyncClientConfig(
        max_limit_exceeded=0,
        max_timeouts=0,
        request_timeout=REQUEST,
        encryption_enabled=False,
        store_sync_tokens=False,
    )
    # Typed as a bool, and handed to aiohttp, which takes a context.
    tls = cast("bool", truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return _Client(server.rstrip("/"), account, config=config, ssl=tls)


async def ask(what: str, kind: type[R], request: Awaitable[object]) -> R:
    """Return the answer to a request of the library, which has to be a `kind`.

    `what` completes "cannot" in a message. Raises as this module says.
    """
    try:
        response = await request
    except LocalProtocolError as error:
        raise NotSent(f"cannot {what}: there is no login now", seconds=_RETRY_AFTER) from error
    except (ClientError, TimeoutError) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise ConnectionError(f"cannot {what}: {reason}") from error
    transport = cast("ClientResponse", cast("Any", response).transport_response)
    is_fault = isinstance(response, ErrorResponse) or transport.status >= 300
    if isinstance(response, kind) and not is_fault:
        return response
    raise _failure(what, transport, cast("Any", response))


def _failure(what: str, transport: ClientResponse, response: Any) -> Exception:
    status: int = transport.status
    code = one_line(str(getattr(response, "status_code", None) or ""))
    reason = one_line(str(getattr(response, "message", None) or ""))
    if status == 429 or code == "M_LIMIT_EXCEEDED":
        milliseconds: object = getattr(response, "retry_after_ms", None)
        word = transport.headers.get("Retry-After", "")
        said = float(word) if word.isascii() and word.isdecimal() else _RETRY_AFTER
        seconds = milliseconds / 1000 if isinstance(milliseconds, int) else said
        return NotSent(f"cannot {what}: the server asks to wait", seconds=max(seconds, 0.1))
    if not 400 <= status < 500 or status == 408 or not code:
        return ConnectionError(f"cannot {what}: the server answers with HTTP {status}")
    return MatrixRefusal(f"cannot {what}: {code}: {reason}", code)
