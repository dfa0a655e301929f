"""HTTP/1.1 to one server: connections that are kept, on asyncio's own transports, framed by h11.

A call of a model is one POST whose answer is a stream. So nothing is here but that: requests with a
body of a known length, answers as they come, connections that are used again, TLS, and the proxies of
the environment. Redirects and compression are not asked for.

A kept connection may be closed by its server at the moment in which it is used. If it is lost before the
first byte of an answer, the request is sent once more, at once, on a new one (RFC 9112, 9.3.1).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11

from ...machines.value import Value

_AT_ONCE = 256 * 1024  # bytes that are sent before the loop has its turn, and that wait to be read
_HEAD = 64 * 1024  # bytes of the head of an answer
_KEPT = 90.0  # seconds a connection is kept: tools and people take longer than the usual 5
_MOST = 4  # connections that are kept
_REST = 0.05  # seconds for the end of a body whose last event has come
_HAPPY_EYEBALLS = 0.25  # seconds after which the next address of a name is tried (RFC 8305)


class ConnectTimeout(TimeoutError):
    """The server does not accept a connection."""


class SilenceTimeout(TimeoutError):
    """The server sends nothing, or does not read."""


class Address(Value):
    """Where requests go: `target` is their path and query, or the whole URL at a proxy.

    `host` and `port` are connected to. `tunnel` is the host and port that a proxy is asked for, empty
    without one; `name` is the host in a certificate, empty without TLS. `headers` are those that the URL
    adds, `login` those for the proxy.
    """

    host: str
    port: int
    target: str
    name: str
    tunnel: str
    headers: tuple[tuple[str, str], ...]
    login: tuple[tuple[str, str], ...] = ()


def address_of(url: str, *, is_direct: bool) -> Address:
    """Return where to send requests for a URL. Raises `OSError` for a proxy of another kind.

    `is_direct`: the environment's proxies do not apply.
    """
    parts = urlsplit(url)
    host, is_secure = _ascii(parts.hostname or ""), parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    place = f"[{host}]" if ":" in host else host
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    target = f"{path}?{quote(parts.query, safe='/%:@!$&()*+,;=~?')}" if parts.query else path
    shown = place if parts.port is None else f"{place}:{port}"
    headers = (("host", shown), *_login("authorization", parts))
    name = host if is_secure else ""
    proxy = urlsplit("" if is_direct else _proxy(parts, place))
    if not proxy.hostname:
        return Address(host=host, port=port, target=target, name=name, tunnel="", headers=headers)
    if proxy.scheme != "http":
        raise OSError(f"proxies of the kind `{proxy.scheme}://` are not supported")
    login = _login("proxy-authorization", proxy)
    return Address(
        host=proxy.hostname,
        port=proxy.port or 80,
        target=target if is_secure else f"http://{shown}{target}",
        name=name,
        tunnel=f"{place}:{port}" if is_secure else "",
        headers=headers if is_secure else (*headers, *login),
        login=login,
    )


def _ascii(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode()


def _login(header: str, parts: SplitResult) -> tuple[tuple[str, str], ...]:
    """Return the header for the user name and password in a URL."""
    if not parts.username:
        return ()
    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return ((header, f"Basic {b64encode(words.encode()).decode()}"),)


def _proxy(parts: SplitResult, place: str) -> str:
    """Return the URL of the proxy that the environment names for a URL, empty if it names none."""
    if proxy_bypass(f"{place}:{parts.port}" if parts.port else place):
        return ""
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all") or ""
    return found if "://" in found or not found else f"http://{found}"


def trusted_certificates() -> ssl.SSLContext:
    """Load the certificates that this machine trusts, which takes a while."""
    from httpx2 import create_ssl_context

    context = create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Connection(asyncio.Protocol):
    """One connection, with one exchange at a time; each wait takes at most `silence` seconds.

    `lost` is called when it is closed.
    """

    def __init__(self, silence: float, lost: Callable[[Connection], None]) -> None:
        self._silence = silence
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._http = _framing()
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._unread = 0
        self._is_full = False  # the server does not read
        self._rest: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_answered = False
        """Whether anything has come since the last request."""

    # What asyncio calls ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; also once TLS was put on it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Keep what came; more than a model says in a moment waits outside."""
        self.is_answered = True
        self._unread += len(data)
        if self._unread > _AT_ONCE and self._transport is not None:
            self._transport.pause_reading()
        self._take(data)

    def eof_received(self) -> None:
        """Note that nothing more comes; the transport is closed."""
        self._take(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it is gone."""
        self._error = exc or ConnectionResetError("the server closed it")
        self._lost(self)
        self._wake()
        self._read_rest()

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Go on."""
        self._is_full = False
        self._wake()

    def _take(self, data: bytes) -> None:
        if self._error is None:
            try:
                self._http.receive_data(data)
            except RuntimeError as error:  # after its end
                self._error = error
        self._wake()
        self._read_rest()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # One exchange ---------------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent: it is there, and nothing came that was not asked for."""
        is_open = self._transport is not None and not self._transport.is_closing()
        return is_open and self._error is None and not self.is_answered

    async def send(self, head: h11.Request, body: Sequence[bytes]) -> h11.Response:
        """Send a request; return the head of its answer. Raises `OSError` or `h11.ProtocolError`."""
        self.is_answered = False
        waiting, size = [self._http.send(head) or b""], 0
        for piece in body:
            waiting.append(self._http.send(h11.Data(data=piece)) or b"")
            size += len(piece)
            if size >= _AT_ONCE:
                await self._write(waiting)
                waiting, size = [], 0
        waiting.append(self._http.send(h11.EndOfMessage()) or b"")
        await self._write(waiting)
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the body of the answer as it comes. Raises as `send` does."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece of the body."""
        event = await self._event()
        if not isinstance(event, h11.Data):
            raise StopAsyncIteration
        return bytes(event.data)

    async def tunnel(self, place: str, login: Sequence[tuple[str, str]]) -> None:
        """Have a proxy connect to another server. Raises `OSError`."""
        head = h11.Request(method="CONNECT", target=place, headers=[("host", place), *login])
        answer = await self.send(head, ())
        if answer.status_code >= 300:
            raise ConnectionError(f"the proxy answered {answer.status_code}")

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """Put TLS on it. Raises `OSError`."""
        assert self._transport is not None
        self._http = _framing()
        secured = await self._loop.start_tls(self._transport, self, context, server_hostname=name)
        self._transport = secured

    def finish(self, keep: Callable[[Connection], None]) -> None:
        """End an exchange: `keep` it if its answer comes to an end within a moment, or else close it."""

        def done() -> None:
            self._rest = None
            if self._timer is not None:
                self._timer.cancel()
            if self._http.our_state is self._http.their_state is h11.DONE and self._error is None:
                self._http.start_next_cycle()
                self.is_answered = False
                keep(self)
            else:
                self.close()

        self._rest = done
        self._read_rest()
        if self._rest is not None:
            self._timer = self._loop.call_later(_REST, done)

    def close(self) -> None:
        """Hang up at once. Idempotent."""
        if self._transport is not None:
            self._transport.abort()

    def _read_rest(self) -> None:
        """Drop what is left of an answer, whose last event has come."""
        done = self._rest
        if done is None:
            return
        with suppress(h11.ProtocolError):
            while isinstance(event := self._http.next_event(), h11.Data):
                pass
            if event is h11.NEED_DATA and self._error is None:
                return
        done()

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._unread = 0
            if self._error is not None:
                raise self._error
            assert self._transport is not None
            if not self._transport.is_reading() and not self._transport.is_closing():
                self._transport.resume_reading()
            await self._wait()
        return event

    async def _write(self, pieces: list[bytes]) -> None:
        assert self._transport is not None
        self._transport.write(b"".join(pieces))
        while self._is_full and self._error is None:  # a server may answer, and read no further
            await self._wait()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            async with asyncio.timeout(self._silence):
                await self._waiter
        except TimeoutError:
            raise SilenceTimeout from None
        finally:
            self._waiter = None


def _framing() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)


class Answer(Value):
    """The status and the headers of an answer, by lower-case name, and its body in pieces."""

    status: int
    headers: dict[str, str]
    pieces: AsyncIterator[bytes]


class ConnectionPool:
    """The connections to one server; used on one asyncio loop. Times are in seconds.

    `headers` go with every request. Without `certificates` no server with TLS can be reached.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        connect: float,
        silence: float,
        certificates: ssl.SSLContext | None,
        *,
        is_direct: bool,
    ) -> None:
        self._headers = tuple(headers.items())
        self._connect, self._silence = connect, silence
        self._certificates = certificates
        self._is_direct = is_direct
        self._kept: list[tuple[float, Connection]] = []
        self._open = set[Connection]()
        self._is_closed = False

    @asynccontextmanager
    async def request(
        self, method: str, url: str, body: Sequence[bytes] = ()
    ) -> AsyncGenerator[Answer]:
        """Send a request, and yield the answer. Raises `OSError` and `h11.ProtocolError`."""
        address = address_of(url, is_direct=self._is_direct)
        length = [("content-length", str(sum(map(len, body))))] if body else []
        head = h11.Request(
            method=method,
            target=address.target,
            headers=[*address.headers, *self._headers, *length],
        )
        connection, found = await self._asked(address, head, body)
        with ExitStack() as undoing:
            undoing.callback(connection.close)
            names = {name.decode(): value.decode("latin-1") for name, value in found.headers}
            yield Answer(status=found.status_code, headers=names, pieces=connection)
            undoing.pop_all()
        connection.finish(self._keep)

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        self._is_closed = True
        for connection in self._open:
            connection.close()
        await asyncio.sleep(0)  # they are closed in the loop's next round

    async def _asked(
        self, address: Address, head: h11.Request, body: Sequence[bytes]
    ) -> tuple[Connection, h11.Response]:
        """Send a request on a kept connection, or else on a new one."""
        known = self._known()
        while True:
            connection = known or await self._opened(address)
            with ExitStack() as undoing:
                undoing.callback(connection.close)
                try:
                    found = await connection.send(head, body)
                except (ConnectionError, h11.ProtocolError):
                    if known is None or connection.is_answered:
                        raise
                else:
                    undoing.pop_all()
                    return connection, found
            known = None

    def _known(self) -> Connection | None:
        since = time.monotonic() - _KEPT
        while self._kept:
            at, connection = self._kept.pop()
            if at >= since and connection.is_usable:
                return connection
            connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        if self._is_closed:
            connection.close()
            return
        self._kept.append((time.monotonic(), connection))
        if len(self._kept) > _MOST:
            self._kept.pop(0)[1].close()

    async def _opened(self, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        is_secure = bool(address.name)
        direct = (
            {"ssl": self._certificates, "server_hostname": address.name}
            if (is_secure and not address.tunnel)
            else {}
        )
        with ExitStack() as undoing:
            try:
                async with asyncio.timeout(self._connect):
                    _, connection = await loop.create_connection(
                        lambda: Connection(self._silence, self._open.discard),
                        address.host,
                        address.port,
                        happy_eyeballs_delay=_HAPPY_EYEBALLS,
                        **cast("Any", direct),
                    )
                    undoing.callback(connection.close)
                    if address.tunnel:
                        assert self._certificates is not None
                        await connection.tunnel(address.tunnel, address.login)
                        await connection.secure(self._certificates, address.name)
            except TimeoutError:
                raise ConnectTimeout from None
            undoing.pop_all()
        self._open.add(connection)
        return connection
