"""One HTTP connection to a model server: asyncio moves the bytes, h11 knows the protocol.

It carries one request at a time. A general HTTP client would do as well, but to import one takes as long
as a fourth of a start.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, suppress

import h11

from ..awake import wait_awake
from .route import Address, ConnectTimeout, ResponseHead

_CONNECT = 10.0  # seconds in which the server has to accept
_HEADER = 100 * 1024  # bytes of a response's header, or of the line before a chunk
_MOST_UNREAD = 256 * 1024  # bytes after which the server has to wait until they are read
_QUICK: int | None = getattr(socket, "TCP_QUICKACK", None)
# Seconds until a name's next address is tried beside the first (RFC 8305). Where there is one only,
# asyncio's race is left out: cancelled as it ends, it forgets the socket that it has won.
_EYEBALLS = 0.25


class ModelConnection(asyncio.Protocol):
    """A connection that is open; used by one task at a time.

    The methods that wait raise `OSError`, of which `TimeoutError` and `ssl.SSLError` are kinds. After an
    error, and after a cancel, it can only be closed. `ended` is set when the server has ended it, `lost`
    when nothing is open any more.
    """

    def __init__(self, silence: float) -> None:
        self._silence = silence
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unread = 0
        self._is_full = False
        self.ended = asyncio.Event()
        self.lost = asyncio.Event()
        self.is_answered = False
        """Whether anything came since the last request was sent."""
        self._error: Exception | None = None

    @classmethod
    async def open(
        cls,
        address: Address,
        proxy: Address | None,
        trusted: ssl.SSLContext | None,
        silence: float,
    ) -> "ModelConnection":
        """Connect to an address, through a proxy if there is one; later waits last `silence` seconds."""
        made = cls(silence)
        with ExitStack() as undoing:
            undoing.callback(made.close)
            try:
                async with asyncio.timeout(_CONNECT):
                    await made._connect(proxy or address, trusted)
                    if proxy is not None and address.is_encrypted:
                        await made._tunnel(address, proxy, trusted)
            except TimeoutError as error:
                raise ConnectTimeout(str(error)) from error
            undoing.pop_all()
        return made

    @property
    def is_idle(self) -> bool:
        """Whether a request can be sent: nothing came since the last answer, not even an end."""
        return not (self.ended.is_set() or self._unread) and self._http.our_state is h11.IDLE

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: Sequence[bytes] = ()
    ) -> ResponseHead:
        """Send a request, the pieces of its body one by one; return the header of the answer."""
        self.is_answered = False
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        try:
            request = h11.Request(method=method, target=target, headers=lines)
            pieces = [self._http.send(request) or b""]
            pieces += [self._http.send(h11.Data(data=piece)) or b"" for piece in body]
            self._http.send(h11.EndOfMessage())
        except h11.LocalProtocolError as error:
            raise ConnectionError(f"the request cannot be sent: {error}") from error
        if len(pieces) == 2:  # in one packet, if it fits
            pieces = [b"".join(pieces)]
        for piece in pieces:
            if self.ended.is_set() or self._transport is None:
                break  # a server may refuse before it has read everything
            self._transport.write(piece)
            self._acknowledge()
            await asyncio.sleep(0)
            while self._is_full and not self.ended.is_set():
                await self._changed()
        while not isinstance(event := await self._next(), h11.Response):
            continue  # what precedes it is of no interest
        answered = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        return ResponseHead(status=event.status_code, headers=answered)

    async def body(self) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of the answer's body as they come."""
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield bytes(event.data)
        if self._http.our_state is self._http.their_state is h11.DONE:
            self._take_more()
            self._unread = len(self._http.trailing_data[0])
            self._http.start_next_cycle()

    def close(self) -> None:
        """Hang up at once. Idempotent."""
        if self._transport is not None and not self.lost.is_set():
            self._transport.abort()

    async def _connect(self, to: Address, trusted: ssl.SSLContext | None) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self,
                to.host,
                to.port,
                ssl=trusted if to.is_encrypted else None,
                happy_eyeballs_delay=None if to.is_literal else _EYEBALLS,
            )
        except OSError as error:
            # If a name has several addresses, asyncio keeps only the texts of the errors.
            if error.errno is None and f"[Errno {errno.ECONNREFUSED}]" in str(error):
                raise ConnectionRefusedError(str(error)) from error
            raise

    async def _tunnel(
        self, address: Address, proxy: Address, trusted: ssl.SSLContext | None
    ) -> None:
        """Have the proxy pass the bytes on, and speak TLS with the server behind it."""
        headers = {"host": address.place}
        if proxy.login:
            headers["proxy-authorization"] = proxy.login
        answer = await self.request("CONNECT", address.place, headers)
        if not 200 <= answer.status < 300:
            raise ConnectionError(f"the proxy {proxy.place} answered {answer.status}")
        assert self._transport is not None
        assert trusted is not None
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER)
        self._transport = await asyncio.get_running_loop().start_tls(
            self._transport, self, trusted, server_hostname=address.host
        )

    async def _next(self) -> object:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                if self.ended.is_set() and self._http.their_state is h11.SEND_RESPONSE:
                    raise ConnectionResetError("it ended without an answer") from error
                raise ConnectionError(str(error)) from error
            if event is not h11.NEED_DATA:
                return event
            if self._error is not None:
                raise self._error
            self._take_more()
            await self._changed()

    def _acknowledge(self) -> None:
        """Have the system acknowledge at once what comes next, where it can (Linux).

        Many servers keep a small piece back until the one before is acknowledged, which a used connection
        does after 40 ms only.
        """
        found = None if self._transport is None else self._transport.get_extra_info("socket")
        if found is not None and _QUICK is not None:
            with suppress(OSError):
                found.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)

    def _take_more(self) -> None:
        if self._unread > _MOST_UNREAD and self._transport is not None:
            self._transport.resume_reading()
        self._unread = 0

    async def _changed(self) -> None:
        """Wait for a change. Raises `TimeoutError`."""
        self._waiter = asyncio.get_running_loop().create_future()
        if not await wait_awake((self._waiter,), self._silence):
            raise TimeoutError

    def _change(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._acknowledge()

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and pause the server if they are not read."""
        self.is_answered = True
        self._acknowledge()
        self._http.receive_data(data)
        self._unread += len(data)
        if self._unread > _MOST_UNREAD and self._transport is not None:
            self._transport.pause_reading()
        self._change()

    def eof_received(self) -> None:
        """Note the end; the transport closes then."""
        if not self.ended.is_set():
            self.ended.set()
            self._http.receive_data(b"")
        self._change()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end, with its error if it is one."""
        if exc is None:
            self.eof_received()
        self._error = exc
        self.ended.set()
        self.lost.set()
        self._change()

    def pause_writing(self) -> None:
        """Write no more for now."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Write on."""
        self._is_full = False
        self._change()
