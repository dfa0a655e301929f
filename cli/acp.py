"""`steersman acp`: an agent for editors, on standard input and output.

Three threads: the main one reads lines, so that it receives signals; one runs the connection; one
writes. Standard output belongs to the protocol: all other output goes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from .. import __version__
from ..gateway.events.contract import Event, is_aside
from ..gateway.host.host import Host
from ..gateway.launch_options import LaunchOptions
from ..gateway.views.saved_queues import announce, announce_saved
from ..gateway.wording.acknowledgement import acknowledgement, reverted_text
from ..gateway.wording.terminal import audited
from ..machines.errors import UsageError
from ..workflows.config import load
from ..workflows.extras import how_to_install
from ..workflows.paths import Paths
from .following import HeldNotice
from .printer import Printer
from .signals import SignalExit, leave_on_signals
from .stdin_lines import typed_lines

LAST_SECONDS = 2.0
"""Seconds for the answers that are still due after the editor has closed its end."""


def serve_editor(environ: Mapping[str, str], *, agent: str = "", model: str = "") -> int:
    """Serve one editor until its input ends. Raises `UsageError` without the protocol's library."""
    if find_spec("acp") is None:
        raise UsageError(
            "`steersman acp` needs the package `agent-client-protocol`",
            how_to_install("acp"),
        )
    launch = LaunchOptions(agent=agent, model=model, can_ask=True)
    paths = Paths.of(environ)
    load(paths, Path.cwd(), environ)  # reports mistakes in the configuration at once

    def host_of(folder: Path) -> Host:
        return Host(paths, load(paths, folder, environ), environ, launch)

    output = own_output()
    printer = Printer(output)
    connection = _Connection(host_of, printer.write)
    try:
        with leave_on_signals():
            for line in typed_lines():
                connection.feed(line)
        return 0
    except SignalExit as signal_exit:
        return signal_exit.exit_code
    finally:
        connection.close()
        printer.close()
        with contextlib.suppress(OSError):  # the editor may be gone
            output.close()


class _Connection:
    """The connection, on an asyncio loop in a thread of its own."""

    def __init__(self, host_of: Callable[[Path], Host], write: Callable[[str], None]) -> None:
        self._host_of, self._write = host_of, write
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="acp")
        self._thread.start()
        self._is_ready.wait()

    def feed(self, line: str | None) -> None:
        """Pass a line on; `None` at the end of the input."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._transport.feed, line)

    def close(self) -> None:
        """Close the connection, with every session saved."""
        self.feed(None)
        self._thread.join()

    async def _serve(self) -> None:
        from acp.agent.connection import AgentSideConnection

        from ..gateway.acp.agent import AcpAgent
        from ..gateway.acp.wire import LineTransport, quiet_about_refusals

        logging.getLogger().addFilter(quiet_about_refusals)
        self._loop = asyncio.get_running_loop()
        self._transport = LineTransport(self._write)
        self._is_ready.set()
        agent: Any = AcpAgent(__version__, self._host_of, _event_texts)
        serving = AgentSideConnection(
            agent, self._transport, listening=False, use_unstable_protocol=True
        )
        try:
            await serving.listen()
        finally:
            await agent.aclose()
            await self._transport.settle(LAST_SECONDS)
            await serving.close()


def own_output() -> TextIO:
    """Return standard output for the protocol alone; other output goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return open(own, "w", encoding="utf-8", errors="replace", closefd=True)


def _event_texts() -> Callable[[Event], str]:
    """Return a function that writes a session's events as text for a person."""
    held_notice = HeldNotice()

    def text_of(event: Event) -> str:
        held = held_notice.hear(event)
        match event["type"]:
            case _ if is_aside(event):
                return ""
            case "recovered":
                return announce(event, time.time())
            case "saved_queues":
                return announce_saved(event, time.time())
            case "queue":
                return held
            case "notice" | "result":
                return audited(event["text"])
            case "error":
                return audited(f"error: {event['text']}\n{event['hint']}".strip())
            case "reverted":
                return audited(reverted_text(event))
            case _:
                return audited(acknowledgement(event))

    return text_of
