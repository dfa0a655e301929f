"""Requests of a login: to a server, to what it names as its authorization server, and nowhere else.

An address that a server names is https, or on this machine as the server is. One of a private network is
asked only for a server that is in one itself; as with the tool `fetch`, the address that is looked at is
the one that is connected to. No redirect is followed, and answers and seconds are bounded.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import httpx2

from ...machines.errors import ToolError
from ...ports.models.endpoint import is_loopback
from ...ports.models.route import Address, proxy_of, target_of
from ...ports.tools.fetching import CheckedConnection, is_private
from ...ports.tools.text import visible

if TYPE_CHECKING:
    from .login_file import LoginFile

_SECONDS = 30.0  # until an answer has to be there as a whole
_MOST = 256 << 10  # bytes of an answer
_KEPT = ("content-type", "www-authenticate", "location", "mcp-session-id")
_SHOWN = 200  # characters of an address


class Answer(NamedTuple):
    """An answer, with the headers that a login looks at."""

    status: int
    headers: dict[str, str]
    body: bytes


class LoginNeeded(ToolError):
    """A server wants a login that is not there, or no longer counts."""

    def __init__(self, name: str) -> None:
        super().__init__(f"it needs a login: run `steersman mcp login {quote(name)}`")


def check_address(url: str, server: str) -> frozenset[str]:
    """Refuse an address that a server may not have us use; return the hosts that may be private.

    Blocks. Raises `ToolError`.
    """
    try:
        to, own = Address.of(url), Address.of(server)
        if not to.host or to.login or any(ord(sign) <= 32 for sign in url):
            raise ValueError
    except ValueError:
        raise ToolError(f"`{visible(url, _SHOWN)}` is no address") from None
    if to.scheme != "https" and not (is_loopback(url) and is_loopback(server)):
        raise ToolError(f"`{visible(url, _SHOWN)}` is not https, so no login is sent there")
    if to.host == own.host or is_loopback(server) or _has_private(own):
        return frozenset((to.host,))
    if _has_private(to):
        raise ToolError(f"`{visible(url, _SHOWN)}` is an address of a private network")
    return frozenset()


def _has_private(address: Address) -> bool:
    """Whether a host has an address of a private network; behind a proxy nobody here knows."""
    if proxy_of(address) is not None:
        return False
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(is_private(str(place[4][0])) for place in found)


def ask(
    method: str, url: str, server: str, headers: Mapping[str, str], body: bytes = b""
) -> Answer:
    """Send a request on behalf of the login at `server`. Blocks. Raises `ToolError` and `OSError`."""
    connection = CheckedConnection(Address.of(url), check_address(url, server))
    address = Address.of(url)
    is_relayed = connection.proxy is not None and not address.is_encrypted
    late = threading.Timer(_SECONDS, _cut, (connection,))
    late.daemon = True
    late.start()
    try:
        more = {"Host": address.header, "User-Agent": "steersman", "Accept-Encoding": "identity"}
        target = url if is_relayed else target_of(url)
        connection.request(method, target, body or None, {**headers, **more})
        with connection.getresponse() as answer:
            kept = {name: answer.headers.get(name, "") for name in _KEPT}
            is_stream = kept["content-type"].startswith("text/event-stream")
            read = b"" if is_stream else answer.read(_MOST + 1)
            if len(read) > _MOST:
                raise ToolError(f"`{address.host}` answered with more than {_MOST:,} bytes")
            return Answer(answer.status, {name: kept[name] for name in kept if kept[name]}, read)
    except (http.client.HTTPException, ValueError, TimeoutError) as error:
        raise ConnectionError(f"`{address.host}` did not answer: {type(error).__name__}") from error
    finally:
        late.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    """End a connection whose server takes too long, however little it sends at a time."""
    with suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)


class LoginTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of the SDK's login at `server`."""

    def __init__(self, server: str) -> None:
        self._server = server

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see `ask`."""
        body = await request.aread()
        given = {name: value for name, value in request.headers.items() if name != "host"}
        answer = await asyncio.to_thread(
            ask, request.method, str(request.url), self._server, given, body
        )
        return httpx2.Response(
            answer.status, headers=answer.headers, content=answer.body, request=request
        )


class LoginAuth(httpx2.Auth):
    """Gives the requests of a session the token of its server's login, and never asks a person.

    A token that is over or refused is renewed. Raises `LoginNeeded` where that does not help.
    """

    def __init__(self, name: str, url: str, file: LoginFile) -> None:
        self._name, self._url, self._file = name, url, file

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, and once more with another token if its own is refused."""
        token = await asyncio.to_thread(self._file.access_token, self._url)
        response = yield _with(request, token)
        if response.status_code == 401 and token:
            token = await asyncio.to_thread(self._file.access_token, self._url, token)
            if token:
                response = yield _with(request, token)
        if response.status_code == 401:
            raise LoginNeeded(self._name)


def _with(request: httpx2.Request, token: str) -> httpx2.Request:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
    return request
