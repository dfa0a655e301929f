"""`steersman acp`: an agent for one editor, until its input ends."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from ... import __version__
from ...cli.options import Agent, Model
from ...cli.streams import Lines, Printer, serve_lines
from ...cli.talk import HeldNotice
from ...gateway.events.contract import Event, is_aside
from ...gateway.host.host import Host
from ...gateway.launch_options import LaunchOptions
from ...gateway.views.saved_queues import announce, announce_saved
from ...gateway.wording.acknowledgement import acknowledgement, reverted_text
from ...gateway.wording.terminal import audited
from ...machines.errors import UsageError
from ...workflows.config import load
from ...workflows.extras import how_to_install
from ...workflows.paths import Paths

LAST_SECONDS = 2.0
"""Seconds for the answers that are still due after the editor has closed its end."""


def acp(
    agent: Agent = "",
    model: Model = "",
) -> int:
    """Serve an editor: the Agent Client Protocol on standard input and output.

    Example: steersman acp --agent assistant
    """
    if find_spec("acp") is None:
        raise UsageError(
            "`steersman acp` needs the package `agent-client-protocol`",
            how_to_install("acp"),
        )
    launch = LaunchOptions(agent=agent, model=model, can_ask=True)
    environ = os.environ
    paths = Paths.of(environ)
    load(paths, Path.cwd(), environ)  # reports mistakes in the configuration at once

    def host_of(folder: Path) -> Host:
        return Host(paths, load(paths, folder, environ), environ, launch)

    async def serve(lines: Lines, printer: Printer) -> None:
        from acp.connection import Connection

        from .agent import AcpAgent
        from .methods import Methods
        from .wire import LineTransport, quiet_about_refusals

        logging.getLogger().addFilter(quiet_about_refusals)
        transport = LineTransport(lines, printer.write)
        agent = AcpAgent(__version__, host_of, _event_texts)
        methods = Methods(agent)
        connection = Connection(methods, transport, listening=False)
        methods.connect(connection)
        try:
            await connection.main_loop()
        finally:
            await agent.aclose()
            await transport.settle(LAST_SECONDS)
            await connection.close()

    return serve_lines("acp", serve)


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
