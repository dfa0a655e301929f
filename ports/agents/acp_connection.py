"""The client's side of the Agent Client Protocol: one process of an agent, one session in it.

Only what every agent has is used: sessions, prompts, updates, permissions, cancel, and, where an agent
announces it, loading. No file system and no terminals are offered, so that the agent uses its own
tools, in its own process, which is watched as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol, cast

from acp.connection import Connection
from acp.exceptions import RequestError

from ... import __version__
from ...machines.errors import ModelError
from .pipe import PipeProcess

Params = dict[str, Any]
FIRST_ANSWER = 60.0
"""Seconds that an agent may take to say who it is: some start slowly, and some wait for a network."""


class Listener(Protocol):
    """Who hears what the agent does."""

    def updated(self, update: Params) -> None:
        """Take an update of the session."""
        ...

    async def wanted(self, call: Params, options: list[Params]) -> str:
        """Answer a question by the id of an option; empty: dismissed."""
        ...


class AcpConnection:
    """Speaks to an agent; what it says of its work goes to `listener`, while there is one."""

    def __init__(self, pipe: PipeProcess) -> None:
        self.pipe = pipe
        self.listener: Listener | None = None
        self.session = ""
        self.can_load = False
        self._connection = Connection(self._handle, cast("Any", pipe))

    async def open(self, folder: Path, known: str) -> bool:
        """Shake hands, and load the known session or begin one; say if it was loaded.

        Raises `ModelError`.
        """
        able = await self._agreed(self._greet())
        self.can_load = bool(able.get("loadSession"))
        resumes = "resume" in (able.get("sessionCapabilities") or {})
        about: Params = {"cwd": str(folder), "mcpServers": []}
        if known and (self.can_load or resumes):
            method = "session/load" if self.can_load else "session/resume"
            try:
                await self._ask(method, {**about, "sessionId": known})
            except RequestError:
                known = ""  # it has forgotten it
            else:
                self.session = known
                return True
        begun = await self._agreed(self._ask("session/new", about))
        self.session = str(begun.get("sessionId", ""))
        return False

    async def prompt(self, text: str) -> Params:
        """Say something; returns the answer of the protocol when the turn is over."""
        prompt = [{"type": "text", "text": text}]
        return await self._agreed(
            self._ask("session/prompt", {"sessionId": self.session, "prompt": prompt})
        )

    async def cancel(self) -> None:
        """Ask the agent to stop what it does."""
        await self._connection.send_notification("session/cancel", {"sessionId": self.session})

    async def _greet(self) -> Params:
        async with asyncio.timeout(FIRST_ANSWER):
            hello = await self._ask(
                "initialize",
                {
                    "protocolVersion": 1,
                    "clientCapabilities": {
                        "fs": {"readTextFile": False, "writeTextFile": False},
                        "terminal": False,
                    },
                    "clientInfo": {"name": "steersman", "version": __version__},
                },
            )
        return cast("Params", hello.get("agentCapabilities") or {})

    async def _ask(self, method: str, params: Params) -> Params:
        answer = await self._connection.send_request(method, params)
        return cast("Params", answer if isinstance(answer, dict) else {})

    async def _agreed(self, asked: Awaitable[Params]) -> Params:
        """Return an answer; what goes wrong is told as a model's failure is."""
        try:
            return await asked
        except RequestError as error:
            raise ModelError(f"the agent refused: {_told(error)}", _hint(error)) from error
        except ConnectionError:
            if self.pipe.result is not None:
                await asyncio.wait([self.pipe.result], timeout=5.0)
            why = f": {self.pipe.complaint}" if self.pipe.complaint else ""
            raise ModelError(f"the agent's process ended{why}") from None
        except TimeoutError:
            raise ModelError(f"the agent did not say who it is within {FIRST_ANSWER:g} s") from None

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        listener, given = self.listener, _table(params)
        if method == "session/update":
            if listener is not None:
                listener.updated(_table(given.get("update")))
        elif method == "session/request_permission":
            options = cast("list[Params]", given.get("options") or [])
            call = _table(given.get("toolCall"))
            chosen = await listener.wanted(call, options) if listener is not None else ""
            said = {"outcome": "selected", "optionId": chosen}
            return {"outcome": said if chosen else {"outcome": "cancelled"}}
        elif not is_notification:
            raise RequestError.method_not_found(method)
        return None


def _table(data: Any) -> Params:
    return cast("Params", data) if isinstance(data, dict) else {}


def _told(error: RequestError) -> str:
    data = _table(error.data)
    more = data.get("details") or data.get("message") or ""
    return f"{error} ({more})" if more else str(error)


def _hint(error: RequestError) -> str:
    return "log in with the agent's own program first" if error.code == -32000 else ""
