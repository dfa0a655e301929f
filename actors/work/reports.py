"""What a tool's run reports while it goes on, on its way to the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...machines.agent_call import AgentSaid
from ...machines.messages import Message
from .pieces import Pieces

__all__ = ["Reports"]


class Reports:
    """Passes reports on, in order, with pieces of text gathered to fewer and longer ones."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, call: str, send: Callable[[Message], None]
    ) -> None:
        self._pieces = Pieces(loop, lambda text: send(AgentSaid(call, text)))
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
