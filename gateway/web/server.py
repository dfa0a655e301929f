"""The program that serves a home: its sessions, its control socket, and HTTP."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import h11
import uvicorn
from sse_starlette.sse import AppStatus
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ...journal.lock import this_process
from ...machines.errors import UsageError
from ...workflows.home_folder import expanded, home_folder
from ...workflows.home_place import home_place
from ...workflows.paths import Paths
from ...workflows.plugins import GATEWAYS
from ..chat.gateway_supervisor import gateways_running
from ..chat.platform_parts import BackgroundTasks
from ..host.node import Node
from ..host.scheduling import Scheduler
from ..hosts import Hosts
from ..launch_options import LaunchOptions
from ..reach import SERVING, alone, write_address
from .access import LARGEST_HEADER, Access, DeviceFile
from .application import application
from .desk import Desk
from .log_lines import log_event
from .probes import Metrics, probe_routes
from .push import Bell, Push

LOGGER = logging.getLogger("steersman")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
REQUEST_SECONDS = 10.0
"""Seconds in which a request has to come whole."""
READING_SECONDS = 30.0
"""Seconds in which a client has to take some more of what waits for it."""
STRANGERS = 256
"""Connections at a time that no paired device has used yet; of more, the oldest are closed."""
FILES = 16_384
"""Files that may be open at a time, if the system lets them."""
BACKLOG = 2_048
"""Connections that may wait for being accepted."""
CROWDED = 1.0
"""Seconds before the next attempt when no connection could be accepted: too many files are open."""
WORKERS = 32
"""Threads for what blocks: the journal, and the sessions of other programs."""
PAGE = Path(__file__).parent / "page" / "assets"
PARTING = 2
"""Seconds that answers may take when the server ends; streams are cut."""


class Strangers:
    """Connections that no paired device has used yet, by what closes them: at most `STRANGERS`."""

    def __init__(self) -> None:
        self._known: dict[Callable[[], object], None] = {}

    def add(self, drop: Callable[[], object]) -> None:
        """Add one, and close the oldest ones if they are too many."""
        while len(self._known) >= STRANGERS:
            oldest = next(iter(self._known))
            self.remove(oldest)
            oldest()
        self._known[drop] = None

    def remove(self, drop: Callable[[], object]) -> None:
        """Forget one that is closed, or was used by a device. Idempotent."""
        self._known.pop(drop, None)


class Protocol(H11Protocol):
    """Closes connections that say nothing, say it too slowly or do not read: none keeps others out.

    A request finds `admitted` in its state, to be called when a device has shown its token.
    """

    def __init__(
        self, strangers: Strangers, config: uvicorn.Config, server_state: ServerState
    ) -> None:
        super().__init__(config, server_state, {})
        self._strangers = strangers
        self._timers: dict[str, asyncio.TimerHandle] = {}  # for a request to come, and to be read

    def connection_made(self, transport: Any) -> None:
        """Begin a connection."""
        super().connection_made(transport)
        # `pause_writing` whenever something waits; 0 would pause an encrypted connection for ever
        transport.set_write_buffer_limits(1, 0)
        admitted = partial(self._strangers.remove, self.drop)
        self.app_state = {**self.app_state, "admitted": admitted}
        self._strangers.add(self.drop)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Handle what has come; the rest of a request has to come in time."""
        super().data_received(data)
        if self.is_expecting:
            self._expect()
        else:
            self._cancel("request")

    @property
    def is_expecting(self) -> bool:
        """Whether a request has not come whole."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def pause_writing(self) -> None:
        """Remember how much waits for the client."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        """Forget it: the client has read everything."""
        super().resume_writing()
        self._cancel("reading")

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._forget()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection at once."""
        self._forget()
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is not None:
            transport.abort()

    def _expect(self) -> None:
        if "request" not in self._timers:
            self._timers["request"] = self.loop.call_later(REQUEST_SECONDS, self.drop)

    def _look_later(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._cancel("reading")
        look = self.loop.call_later(READING_SECONDS, self._has_read, waiting)
        self._timers["reading"] = look

    def _has_read(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._look_later()
        else:
            self.drop()

    def _cancel(self, name: str) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def _forget(self) -> None:
        self._strangers.remove(self.drop)
        self._cancel("request")
        self._cancel("reading")


class WebServer(uvicorn.Server):
    """Leaves signals to the program around it, and counts strangers from their first packet on.

    asyncio's own servers do not report a connection before its encryption is agreed upon.
    """

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context
        self._strangers = Strangers()
        self._tasks = BackgroundTasks()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self.servers = []
        for listener in sockets or ():
            self._tasks.start(self._accept(listener))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and end the connections."""
        await self._tasks.aclose()
        await super().shutdown(sockets)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except ConnectionError:
                continue  # it was broken off before it was accepted
            except OSError:
                await asyncio.sleep(CROWDED)
                continue
            self._tasks.start(self._begin(connection))
            await asyncio.sleep(0)  # a flood delays no other client

    async def _begin(self, connection: socket.socket) -> None:
        """Agree upon the encryption, which may never happen, and let the protocol begin."""
        limit = REQUEST_SECONDS if self._context is not None else None
        task = asyncio.current_task()
        assert task is not None
        self._strangers.add(task.cancel)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: Protocol(self._strangers, self.config, self.server_state),
                connection,
                ssl=self._context,
                ssl_handshake_timeout=limit,
                ssl_shutdown_timeout=limit,
            )
        except OSError:
            return  # the other side broke it off, was too slow, or speaks something else
        finally:
            self._strangers.remove(task.cancel)

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()


async def serve(
    paths: Paths,
    environ: Mapping[str, str],
    *,
    host: str,
    port: int,
    certificate: tuple[str, str] | None,
    names: tuple[str, ...],
    on_ready: Callable[[str], None],
    is_logged: bool = False,
) -> None:
    """Serve a home until a signal comes. Raises `SteersmanError`.

    `certificate` are the files of a TLS certificate and its key, `names` are further names by which the
    server may be asked. `on_ready` gets its address. `is_logged`: the life of sessions is logged.
    """
    if host not in LOOPBACK and certificate is None:
        raise UsageError(
            f"`--host {host}`: other machines are served only with encryption",
            "set serve.certificate and serve.key, or leave --host out and use a tunnel (`ssh -L`)",
        )
    context = _context(*certificate) if certificate else None
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # strangers write no log
    _allow_files()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(WORKERS, "web"))
    hosts = Hosts(paths, environ, LaunchOptions(can_ask=True))
    if is_logged:
        hosts.event_bus.subscribe(log_event)
    hosts.recorders = (metrics := Metrics(),)
    serving = ExitStack()
    node: Node | None = None
    try:
        main = await asyncio.to_thread(hosts.of_folder, home_folder())
        owner = this_process(main.runtime.node, time.time())
        hint = "`steersman serve status` shows where"
        serving.enter_context(alone(paths.state, SERVING, owner, "serves this home", hint))
        await asyncio.to_thread(main.endpoint.listen)
        listener = _listener(host, port)
        place = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if certificate else "http"
        address = f"{scheme}://{shown}:{place}"
        known = [*LOOPBACK[:2], "[::1]", shown, *names] if host in LOOPBACK else [shown, *names]
        allowed = {f"{name}:{place}" for name in known} | set(names)
        access = Access(DeviceFile(paths.state), allowed, is_secure=certificate is not None)
        desk = Desk(hosts)
        probes = probe_routes(hosts, metrics, access, lambda: node is not None and node.is_fenced)
        push = Push(paths.state, main.config.serve.push_services, access.is_paired)
        contact = names[0].partition(":")[0] if names else "localhost"
        bell = Bell(push, desk.row, f"https://{contact}")
        hosts.event_bus.subscribe(bell.hear)
        page = [
            Route("/", partial(_asset, "index.html")),  # which has the session in its address
            Route("/worker.js", partial(_asset, "worker.js")),  # its place is what it may speak for
            Mount("/assets", StaticFiles(directory=PAGE)),
        ]
        app = application(desk, access, push, [*probes, *page])
        server = WebServer(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                h11_max_incomplete_event_size=LARGEST_HEADER,
                timeout_graceful_shutdown=PARTING,
            ),
            context,
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _end, server)
        if home_place(paths, environ).url:
            node = Node(
                hosts, main, lambda: loop.call_soon_threadsafe(_end, server), LOGGER.warning
            )
            await asyncio.to_thread(node.start)
        write_address(paths.state, address)
        on_ready(address)
        gateways = [name for name in main.config.gateways if name in GATEWAYS.by_name]
        async with (
            Scheduler(hosts, main, desk.call, environ),
            gateways_running(gateways, paths.state, environ),
        ):
            await server.serve(sockets=[listener])
        await bell.aclose()
        await desk.edits.aclose()
    finally:
        if node is not None:
            await asyncio.to_thread(node.end)
        await asyncio.to_thread(hosts.close)
        serving.close()


async def _asset(name: str, request: Request) -> Response:
    """Send the page, or what shows notices for it while it is closed."""
    return FileResponse(PAGE / name, headers={"Cache-Control": "no-cache"})


def _context(certificate: str, key: str) -> ssl.SSLContext:
    """Return what encrypts with a certificate and its key, which has no password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(expanded(certificate), expanded(key), password="")
    except OSError as error:
        raise UsageError(
            f"the certificate `{certificate}` with the key `{key}` cannot be used: "
            f"{error.strerror or error}",
            "serve.certificate and serve.key name PEM files that belong together",
        ) from None
    return context


def _allow_files() -> None:
    """Have this program hold as many files open as it may: each session has one, each stream, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _end(server: uvicorn.Server) -> None:
    connections = cast("set[Protocol]", server.server_state.connections)
    for connection in tuple(connections):
        if connection.is_expecting:
            connection.drop()
    AppStatus.should_exit = True  # ends the streams
    server.should_exit = True


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{host}:{port}: {why}", "choose another --port") from None
    listener.setblocking(False)
    return listener
