"""The client's side of the Agent Client Protocol: one process of an agent, one session in it.

Uses only what every agent has: sessions, prompts, updates, permissions, cancel, and loading where an
agent announces it. Offers neither a file system nor terminals, so that the agent uses its own tools in
its own process tree, which is supervised as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from acp.connection import Connection
from acp.exceptions import RequestError

from ... import __version__
from ...machines.errors import ModelError
from ...ports.models.loose_json import table, tables
from ...ports.process.pipe import PipeProcess

if TYPE_CHECKING:
    from .driven_agent import AgentRun

Params = dict[str, Any]
FIRST_ANSWER = 60.0
"""Seconds for the answer to `initialize`: some agents start slowly, some wait for a network."""


class AcpConnection:
    """One session with an agent; its updates and questions go to `listener`, if there is one."""

    def __init__(self, pipe: PipeProcess) -> None:
        self.pipe = pipe
        self.listener: AgentRun | None = None
        self.session = ""
        self.can_load = False
        self._connection = Connection(self._handle, cast("Any", pipe))

    async def open(self, folder: Path, known: str) -> bool:
        """Initialize, and load the known session or begin one; returns whether it was loaded.

        Raises `ModelError`.
        """
        able = await self._agreed(self._initialize())
        self.can_load = bool(able.get("loadSession"))
        resumes = "resume" in (able.get("sessionCapabilities") or {})
        about: Params = {"cwd": str(folder), "mcpServers": []}
        if known and (self.can_load or resumes):
            method = "session/load" if self.can_load else "session/resume"
            with suppress(RequestError):  # the agent may no longer have this session
                await self._ask(method, {**about, "sessionId": known})
                self.session = known
                return True
        begun = await self._agreed(self._ask("session/new", about))
        self.session = str(begun.get("sessionId", ""))
        return False

    async def prompt(self, text: str) -> Params:
        """Send a prompt; returns the result of `session/prompt` when the turn is over."""
        prompt = [{"type": "text", "text": text}]
        about = {"sessionId": self.session, "prompt": prompt}
        return await self._agreed(self._ask("session/prompt", about))

    async def cancel(self) -> None:
        """Ask the agent to cancel the prompt."""
        await self._connection.send_notification("session/cancel", {"sessionId": self.session})

    async def _initialize(self) -> Params:
        files = {"readTextFile": False, "writeTextFile": False}
        about = {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": files, "terminal": False},
            "clientInfo": {"name": "steersman", "version": __version__},
        }
        async with asyncio.timeout(FIRST_ANSWER):
            answer = await self._ask("initialize", about)
        return table(answer.get("agentCapabilities"))

    async def _ask(self, method: str, params: Params) -> Params:
        return table(await self._connection.send_request(method, params))

    async def _agreed(self, asked: Awaitable[Params]) -> Params:
        """Await an answer; failures become `ModelError`."""
        try:
            return await asked
        except RequestError as error:
            hint = "log in with the agent's own program first" if error.code == -32000 else ""
            data = table(error.data)
            more = data.get("details") or data.get("message") or ""
            reason = f"{error} ({more})" if more else str(error)
            raise ModelError(f"the agent refused: {reason}", hint) from error
        except ConnectionError:
            if self.pipe.result is not None:
                await asyncio.wait([self.pipe.result], timeout=5.0)
            why = f": {self.pipe.diagnostic}" if self.pipe.diagnostic else ""
            raise ModelError(f"the agent's process ended{why}") from None
        except TimeoutError:
            message = f"the agent did not identify itself within {FIRST_ANSWER:g} s"
            raise ModelError(message) from None

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        listener, given = self.listener, table(params)
        if method == "session/update":
            if listener is not None:
                listener.updated(table(given.get("update")))
        elif method == "session/request_permission":
            options, call = tables(given.get("options")), table(given.get("toolCall"))
            chosen = await listener.wanted(call, options) if listener is not None else ""
            selected = {"outcome": "selected", "optionId": chosen}
            return {"outcome": selected if chosen else {"outcome": "cancelled"}}
        elif not is_notification:
            raise RequestError.method_not_found(method)
        return None
