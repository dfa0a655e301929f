"""An editor without a screen: the protocol library's own client, over a real `steersman acp`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    RequestPermissionResponse,
)
from support.driver import COMMAND, WAIT, Place
from support.patience import seconds

__all__ = ["Editor", "editing"]


class Editor:
    """What a client of the protocol has to be; keeps all updates, and answers by `choice`.

    `choice` is an option's id, `cancelled`, or a future that gives one of these.
    """

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[Any] = []
        self.choice: str | asyncio.Future[str] = "allow"
        self._changed = asyncio.Condition()
        self.agent: Any = None
        self.process: Any = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Keep an update."""
        self.updates.append((session_id, update))
        async with self._changed:
            self._changed.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        """Answer a question."""
        self.asked.append((session_id, tool_call, options))
        async with self._changed:
            self._changed.notify_all()
        choice = self.choice if isinstance(self.choice, str) else await self.choice
        if choice == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=choice)
        )

    def on_connect(self, conn: Any) -> None:
        """Take the connection."""

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looked at after each update."""
        try:
            async with asyncio.timeout(seconds(WAIT)), self._changed:
                await self._changed.wait_for(holds)
        except TimeoutError:
            raise AssertionError(f"it did not come; the agent said: {self.text()!r}") from None

    def of(self, kind: str, session: str = "") -> list[Any]:
        """Return the updates of a kind."""
        return [
            one for who, one in self.updates if one.session_update == kind and session in ("", who)
        ]

    def text(self, session: str = "") -> str:
        """Return all that the agent said."""
        return "".join(one.content.text for one in self.of("agent_message_chunk", session))

    async def new(self, place: Place) -> str:
        """Begin a session in the place's folder."""
        return str((await self.agent.new_session(cwd=str(place.folder))).session_id)

    def say(self, session: str, text: str) -> asyncio.Task[Any]:
        """Send a prompt; the task has its answer."""
        asked = self.agent.prompt(session_id=session, prompt=[text_block(text)])
        return asyncio.create_task(asyncio.wait_for(asked, seconds(WAIT)))

    async def extension(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method that is no part of the protocol."""
        answer: dict[str, Any] = await self.agent.ext_method(method, params)
        return answer


@contextlib.asynccontextmanager
async def editing(place: Place, *arguments: str, handshake: bool = True) -> AsyncIterator[Editor]:
    """Start `steersman acp` and shake hands; ends its input at the end."""
    editor: Any = Editor()
    async with spawn_agent_process(
        editor,
        *COMMAND,
        "acp",
        *arguments,
        env=place.environ,
        cwd=place.folder,
        use_unstable_protocol=True,
        transport_kwargs={"stderr": None, "shutdown_timeout": WAIT},
    ) as (agent, process):
        editor.agent, editor.process = agent, process
        if handshake:
            editor.about = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        yield editor
