"""What a tool's run reports while it goes on, on its way to the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...machines.effects import RunTool, StopTool
from ...machines.messages import Message
from ...machines.port_results import AgentSaid, ToolFinished
from ...ports.tools.tool import ToolResult
from .model_work import TextBatcher

# The last lines of what a command prints, told while it goes on -----------------------------------


PATIENCE = 0.5
"""Seconds for which a command runs before anything is told: the result of a short one says it all."""
INTERVAL = 0.25
"""Seconds between two tellings."""
LINES = 10
LONGEST = 2_000
"""Characters that are told at most."""


class OutputTail:
    """Keeps the end of an output, and tells its last lines now and then."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[str], None]) -> None:
        self._loop = loop
        self._send = send
        self._from = loop.time() + PATIENCE
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take in what was printed next."""
        self._text = (self._text + text)[-LONGEST:]
        if self._timer is None:
            wait = max(INTERVAL, self._from - self._loop.time())
            self._timer = self._loop.call_later(wait, self._tell)

    def close(self) -> None:
        """Say no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        self._timer = None
        lines = self._text.rstrip("\n").split("\n")[-LINES:]
        self._send("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


class ToolReports:
    """Passes reports on, in order, with pieces of text gathered to fewer and longer ones."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, call: str, send: Callable[[Message], None]
    ) -> None:
        self._pieces = TextBatcher(loop, lambda text: send(AgentSaid(call=call, text=text)))
        self._send = send

    def tell(self, said: Message) -> None:
        """Pass one on."""
        if isinstance(said, AgentSaid):
            self._pieces.add(said.text)
        else:
            self._pieces.flush()
            self._send(said)

    def close(self) -> None:
        """Pass on what is left."""
        self._pieces.close()


# What a tool call came to, as the message that its actor gets -------------------------------------


def finished(effect: RunTool | StopTool, result: ToolResult) -> ToolFinished:
    """Say how a call ended."""
    return ToolFinished(
        turn=effect.turn,
        epoch=effect.epoch,
        call=effect.call,
        status=result.status,
        text=result.text,
        exit_code=result.exit_code,
        bytes=result.bytes,
        killed=result.killed,
        survivors=result.survivors,
        spilled=result.spilled,
        progress=result.progress,
        errors=result.errors,
        is_cut=result.is_cut,
    )
