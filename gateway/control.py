"""The control socket: how another terminal of the same user reaches a session that runs here.

A Unix socket in a private folder, one for each process, named after its node; newline-delimited
JSON-RPC 2.0. The peer's user id is checked with the kernel (SO_PEERCRED) before a byte is read.
A client that reads slowly has its own buffer and is disconnected when that is full; sessions never wait.

docs/control.md has the methods, their parameters and results.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import secrets
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pykka

from ..journal.codec import encode_whole
from ..journal.folder import PrivateFolder
from ..machines.errors import SteersmanError, UnknownSession
from ..machines.json_shape import parse_json
from .events.contract import Event, ReceiptEvent, is_receipt
from .follow import Feed
from .remote import INVALID, MISTAKE, NO_ANSWER, NOT_HERE, REFUSED, SOCKETS
from .running import Works, go_on
from .session_info import described

if TYPE_CHECKING:
    from .client import SessionClient
    from .commands.command import CommandCall
    from .host.host import Host
    from .mail_reader import MailReader


LOGGER = logging.getLogger("steersman")
LINE_LIMIT = 8 * 1024 * 1024
UNREAD_LIMIT = 8 * 1024 * 1024
"""Bytes that may wait for a client that does not read; with more it is disconnected."""
RECEIPT_SECONDS = 10.0
OPEN_REQUESTS = 100
"""Requests of one client that are answered at a time; further ones are not read until then."""

Params = dict[str, Any]


class ControlServer:
    """How other programs reach a host's sessions: by its control socket, and by their mailboxes (`mail`).

    `opening` opens a session for another program, where this one does that; it gets the parameters of
    `begin`. `evicting` gives a session back, in a node. `woken` is called when mail has come, also for
    sessions that no process owns.
    """

    def __init__(self, host: Host, mail: MailReader) -> None:
        self._host, self.mail = host, mail
        self._folder: PrivateFolder | None = None
        self._name = f"{host.runtime.node}.sock"
        self._server: asyncio.Server | None = None
        self._clients: dict[Client, asyncio.Task[None]] = {}
        self.opening: Callable[[Params], Params] | None = None
        self.evicting: Callable[[str], None] | None = None
        self.woken: Callable[[], None] = lambda: None

    def listen(self) -> None:
        """Open the control socket; a failure becomes a notice, and the session works without it."""
        if self._folder is not None:
            return
        home = PrivateFolder.open(self._host.paths.state, create=True)
        self._folder = home.subfolder(SOCKETS, create=True)
        try:
            self._host.runtime.run(self._start(self._folder))
        except OSError as error:
            self._host.notices.append(f"other terminals cannot reach this session: {error}")
        self.mail.start()

    def close(self) -> None:
        """Take nothing more in. Idempotent."""
        if self._folder is not None:
            folder, self._folder = self._folder, None
            self._host.runtime.run(self._end(folder))
        self.mail.close()

    async def _start(self, folder: PrivateFolder) -> None:
        """Begin to listen; sockets that dead processes left are removed. Raises `OSError`."""
        for name in os.listdir(folder.path):
            if name.endswith(".sock") and _is_dead(folder.address(name)):
                folder.remove(name)
        self._server = await asyncio.start_unix_server(
            self._accept, folder.address(self._name), limit=LINE_LIMIT
        )
        folder.narrow(self._name)

    async def _end(self, folder: PrivateFolder) -> None:
        """Stop listening, and disconnect every client."""
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = tuple(self._clients.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        folder.remove(self._name)
        folder.close()

    def is_followed(self, session: str) -> bool:
        """Whether a client gets the events of a session; any thread."""
        return any(session == client.followed for client in tuple(self._clients))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        client = Client(self._host, writer)
        self._clients[client] = task
        try:  # a client that is gone, or a stop of ours, needs no reply
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                if _is_same_user(writer):
                    await client.serve(reader)
        finally:
            client.close()
            del self._clients[client]


class Client:
    """One connection; `followed` is the session whose events it gets."""

    def __init__(self, host: Host, writer: asyncio.StreamWriter) -> None:
        self._host = host
        self._writer = writer
        self.followed = ""
        self._leave: Callable[[], None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._requests = Requests(host)

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Answer requests until the client goes; a slow one does not hold up the next."""
        loop = asyncio.get_running_loop()
        while line := await self._line(reader):
            while len(self._answering) >= OPEN_REQUESTS:
                await asyncio.wait(self._answering, return_when=asyncio.FIRST_COMPLETED)
            task = loop.create_task(self._answer(line))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readline()
        except ValueError:
            limit = f"at most {LINE_LIMIT // 1024 // 1024} MiB a line"
            error = _error(INVALID, "the request is too long", limit)
            self._send({"jsonrpc": "2.0", "id": None, "error": error})
            return b""

    def close(self) -> None:
        """Forget the client. Idempotent."""
        if self._leave is not None:
            self._leave()
        self._requests.close()
        for task in self._answering:
            task.cancel()
        self._writer.close()

    async def _answer(self, line: bytes) -> None:
        """Answer a request, also where this program is wrong."""
        request, sent = Params(), asyncio.Event()
        try:
            request = _object(parse_json(line))
        except ValueError as error:
            found: Any = error
        else:
            [found] = await asyncio.gather(self._result(request, sent), return_exceptions=True)
        is_fault = isinstance(found, BaseException)
        answer = {"error": error_of(found)} if is_fault else {"result": found}
        self._send({"jsonrpc": "2.0", "id": request.get("id"), **answer})
        sent.set()

    async def _result(self, request: Params, sent: asyncio.Event) -> Any:
        method, params = str(request["method"]), _object(request.get("params") or {})
        if method == "subscribe":
            session = self._host.conversation(str(params["session"])).session
            return {"ok": True, "seq": self._subscribe(session, sent)}
        return await self._requests.call(method, params)

    def _subscribe(self, session: str, sent: asyncio.Event) -> int:
        """Send what happens in a session after the answer; return the newest entry that was told of."""
        feed, publisher = Feed(session, "all"), self._host.runtime.loop
        if self._leave is not None:
            self._leave()
        self.followed = session
        leave = self._host.event_bus.follow(
            session, lambda event: feed.hear(event, publisher), feed.begin
        )
        telling = asyncio.get_running_loop().create_task(self._tell(feed, sent))

        def end() -> None:
            leave()
            telling.cancel()

        self._leave = end
        return feed.known or 0

    async def _tell(self, feed: Feed, sent: asyncio.Event) -> None:
        """Send the events of a session; after those of whole entries, that they were all."""
        await sent.wait()
        while (events := await feed.next(None)) != []:
            for event in events or ():
                self._send({"jsonrpc": "2.0", "method": "event", "params": event})
            if events:
                self._send({"jsonrpc": "2.0", "method": "told", "params": {}})
        self._writer.transport.abort()  # it reads too slowly

    def _send(self, message: dict[str, Any]) -> None:
        transport = self._writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > UNREAD_LIMIT:
            transport.abort()
            return
        # Half a surrogate pair, which JSON can name and UTF-8 cannot, stays an escape.
        text = json.dumps(message, ensure_ascii=False).encode("utf-8", "backslashreplace")
        self._writer.write(text + b"\n")


class Requests:
    """What one client asks of the sessions of a process, by method and parameters; on any loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._key = f"k-{secrets.token_hex(8)}"
        self._edited: tuple[SessionClient, int] | None = None

    def close(self) -> None:
        """Let go of the message that the client edits. Idempotent."""
        if self._edited is not None:
            self._edited[0].end_edit(self._key)
        self._edited = None

    async def call(self, method: str, params: Params) -> Any:
        """Carry a method out and return its result.

        Raises `UnknownSession`, `SteersmanError`, `TimeoutError` or a fault of pykka's, and `ValueError`
        or `KeyError` for what is no request.
        """
        from .commands.registry import call  # of all commands, which most sessions never need
        from .commands.talk import answer, stop

        match method:
            case "say":
                return await self._say(params)
            case "stop":
                return await self._run(params, stop())
            case "answer":
                given = {"question": params["id"], "choice": params["choice"]}
                reason = str(params.get("reason") or "")
                is_let = given["choice"] == "allow"
                if is_let and isinstance(params.get("arguments"), dict):  # of a call that is held
                    given["choice"], reason = "change", json.dumps(params["arguments"])
                return await self._run(params, answer.call({**given, "reason": reason}))
            case "command":
                arguments = _object(params.get("arguments") or {})
                return await self._run(params, call(str(params["name"]), arguments))
            case "edit":
                return await self._edit(params)
            case "run":
                again, done = _works(params.get("again")), _works(params.get("done"))
                await asyncio.to_thread(go_on, self._conversation(params), again, done)
                return {"ok": True}
            case "begin" if self._host.endpoint.opening is not None:
                return await asyncio.to_thread(self._host.endpoint.opening, params)
            case "evict" if self._host.endpoint.evicting is not None:
                await asyncio.to_thread(
                    self._host.endpoint.evicting, self._conversation(params).session
                )
                return {"ok": True}
            case "sessions":
                return self._host.open_sessions
            case "resumable":
                found = await asyncio.to_thread(self._conversation(params).resumable)
                return [encode_whole(choice) for choice in found]
            case "list":
                return {"sessions": await asyncio.to_thread(self._list)}
            case "inspect":
                return await asyncio.to_thread(self._conversation(params).view.inspect)
            case "queue":
                return await asyncio.to_thread(self._conversation(params).queue)
            case _:
                raise ValueError(f"no method `{method}`")

    async def _edit(self, params: Params) -> Params:
        """Keep a waiting message from starting while this client edits it; without a number let go.

        The same message again stays kept all the while.
        """
        if params.get("number") is None:
            self.close()
            return {"ok": True}
        conversation, number = self._conversation(params), _number(params["number"])
        if self._edited != (conversation, number):
            self.close()
        self._edited = (conversation, number)
        conversation.begin_edit(number, self._key)
        record = await asyncio.to_thread(conversation.record)
        item = next((item for item in record.queue.live() if item.number == number), None)
        if item is not None and item.editor == self._key:
            return {"ok": True}
        is_edited = item is not None and item.editor
        why = "is being edited" if is_edited else "does not wait any more"
        return {"ok": False, "reason": f"#{number} {why}"}

    def _list(self) -> list[dict[str, str]]:
        store, here = self._host.store, self._host.open_sessions
        found = (described(store, session, lambda _: True) for session in here)
        return [
            {name: getattr(info, name) for name in ("id", "name", "title", "state", "needs")}
            for info in found
        ]

    async def _say(self, params: Params) -> ReceiptEvent:
        """Send a message, show it to all clients with its sender, and wait for the receipt."""
        conversation = self._conversation(params)
        text, explicit = str(params["text"]), str(params.get("as") or "auto")

        def say(key: str, user: str) -> None:
            is_plain = params.get("plain") is True
            if is_plain or not text.startswith("/"):
                who = user or "another terminal"
                conversation.publisher.notice(f"{who}: {text}", key)
            (conversation.send_message if is_plain else conversation.say)(text, explicit, key, user)

        return await self._receipt(params, say)

    async def _run(self, params: Params, call: CommandCall) -> ReceiptEvent:
        """Run a command, and wait for its result."""
        conversation = self._conversation(params)
        return await self._receipt(
            params, lambda key, user: conversation.run(call, key, user, self._key)
        )

    async def _receipt(self, params: Params, do: Callable[[str, str], object]) -> ReceiptEvent:
        """Run `do` in a thread, with a client id and the sender, and wait for the receipt."""
        key = str(params.get("client_id") or f"k-{secrets.token_hex(8)}")
        loop = asyncio.get_running_loop()
        receipt: asyncio.Future[ReceiptEvent] = loop.create_future()

        def settle(event: ReceiptEvent) -> None:
            if not receipt.done():
                receipt.set_result(event)

        def hear(event: Event) -> None:
            """Receive an event; any thread."""
            if is_receipt(event, key):
                loop.call_soon_threadsafe(settle, event)

        leave = self._host.event_bus.subscribe(hear)
        try:
            await asyncio.to_thread(do, key, str(params.get("user") or ""))
            return await asyncio.wait_for(receipt, RECEIPT_SECONDS)
        finally:
            leave()

    def _conversation(self, params: Params) -> SessionClient:
        return self._host.conversation(str(params["session"]))


def error_of(fault: BaseException) -> Params:
    """Return the `error` of an answer; of a mistake of this program the traceback is in its log."""
    match fault:
        case UnknownSession():
            return _error(NOT_HERE, fault.message, fault.hint)
        case SteersmanError():
            return _error(REFUSED, str(fault), fault.hint)
        case ValueError() | KeyError():
            return _error(INVALID, f"not a request: {fault}", "see docs/control.md")
        case TimeoutError() | pykka.Timeout() | pykka.ActorDeadError():
            return _error(NO_ANSWER, "the session did not answer in time", "try again")
        case _:
            LOGGER.error("a request could not be carried out", exc_info=fault)
            return _error(MISTAKE, "a mistake in steersman", "its log says more")


def _error(code: int, text: str, hint: str) -> Params:
    return {"code": code, "message": text, "data": {"hint": hint}}


def _object(data: Any) -> Params:
    """Take JSON that must be an object. Raises `ValueError`."""
    if not isinstance(data, dict):
        raise ValueError("not an object")
    return cast("Params", data)


def _number(data: Any) -> int:
    """Take JSON that must be a whole number. Raises `ValueError`."""
    if not isinstance(data, int) or isinstance(data, bool):
        raise ValueError("not a whole number")
    return data


def _works(data: Any) -> Works:
    """Take pairs of a step and the number of an item in it. Raises `ValueError`."""
    try:
        return tuple((str(step), _number(index)) for step, index in data or ())
    except TypeError:
        raise ValueError("`again` and `done` are lists of pairs") from None


def _is_dead(address: str) -> bool:
    """Whether no server listens at a socket any more."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.setblocking(False)
        return probe.connect_ex(address) == errno.ECONNREFUSED


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    peer = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the folder's mode keeps others out
    data = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", data)
    return bool(user == os.geteuid())
