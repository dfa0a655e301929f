"""The program that serves a home: its sessions, its control socket, and HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...journal.lock import Owner
from ...machines.errors import UsageError
from ...workflows.paths import Paths
from ..hosts import Hosts
from ..launch_options import LaunchOptions
from ..serving import Serving, write_address
from .access import Access, DeviceFile
from .application import application
from .desk import Desk
from .page import page_routes
from .stream import Broadcast

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADER_SECONDS = 10.0
"""Seconds in which a new connection has to send a request."""
STRANGERS = 64
"""Connections at a time that have sent no request yet; of more, the oldest are closed."""
CONNECTIONS = 1_000
"""Connections at a time."""
LARGEST_HEADER = 16 << 10
"""Bytes that a request may have before its body."""
PARTING = 2
"""Seconds that answers may take when the server ends; streams are cut."""


class Protocol(H11Protocol):
    """Closes connections that say nothing, so that they keep no others out."""

    _strangers: dict[Protocol, None] = {}  # noqa: RUF012 - of all connections, the oldest first

    def connection_made(self, transport: Any) -> None:
        """Begin a connection."""
        super().connection_made(transport)
        while len(self._strangers) >= STRANGERS:
            next(iter(self._strangers)).drop()
        self._strangers[self] = None
        self._late = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.drop)

    def handle_events(self) -> None:
        """Handle what has come; with a whole request the connection is no stranger's any more."""
        super().handle_events()
        if self.cycle:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._forget()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection of a stranger."""
        self._forget()
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is not None:
            transport.abort()

    def _forget(self) -> None:
        self._strangers.pop(self, None)
        self._late.cancel()


class WebServer(uvicorn.Server):
    """Leaves signals to the program around it."""

    def install_signal_handlers(self) -> None:
        """Install none."""

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
) -> None:
    """Serve a home until a signal comes. Raises `SteersmanError`.

    `certificate` are the files of a TLS certificate and its key, `names` are further names by which the
    server may be asked. `on_ready` gets its address.
    """
    if host not in LOOPBACK and certificate is None:
        raise UsageError(
            f"`--host {host}`: other machines are served only with encryption",
            "set serve.certificate and serve.key, or leave --host out and use a tunnel (`ssh -L`)",
        )
    broadcast = Broadcast()
    hosts = Hosts(paths, environ, LaunchOptions(can_ask=True), broadcast.hear)
    serving = Serving(paths.state)
    try:
        main = await asyncio.to_thread(hosts.of_folder, Path.home())
        serving.take(Owner(pid=os.getpid(), node=main.runtime.node, started=time.time()))
        await asyncio.to_thread(main.listen)
        listener = _listener(host, port)
        place = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if certificate else "http"
        address = f"{scheme}://{shown}:{place}"
        known = [*LOOPBACK[:2], "[::1]", shown, *names] if host in LOOPBACK else [shown, *names]
        allowed = tuple({f"{name}:{place}" for name in known} | set(names))
        access = Access(DeviceFile(paths.state), lambda: allowed, is_secure=certificate is not None)
        app = application(Desk(hosts, broadcast), access, page_routes())
        server = WebServer(
            uvicorn.Config(
                app,
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS,
                h11_max_incomplete_event_size=LARGEST_HEADER,
                timeout_graceful_shutdown=PARTING,
                ssl_certfile=certificate[0] if certificate else None,
                ssl_keyfile=certificate[1] if certificate else None,
            )
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _end, server)
        write_address(paths.state, address)
        on_ready(address)
        await server.serve(sockets=[listener])
    finally:
        await asyncio.to_thread(hosts.close)
        serving.close()


def _end(server: uvicorn.Server) -> None:
    server.should_exit = True


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{host}:{port}: {why}", "choose another --port") from None
    listener.setblocking(False)
    return listener
