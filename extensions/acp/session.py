"""One session of an editor: prompts in, updates and questions out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ConfigOptionUpdate,
    PermissionOption,
    SessionConfigOptionSelect,
)

from ...gateway.commands.command import CommandCall, Reply
from ...gateway.commands.registry import NAMES
from ...gateway.conversation import Conversation
from ...gateway.events.contract import Event, QuestionEvent
from ...gateway.host.host import Host
from ...gateway.outcome import Ending, Endings
from ...machines.errors import UnknownSession, UsageError
from .update import (
    NOT_HERE,
    EditorUpdates,
    PromptParts,
    Update,
    busy_option,
    commands,
    goal_update,
    history,
)

CANCELLED = ("interrupted", "withdrawn", "held", "left")
"""How a prompt ends that was not carried out."""
OPTIONS = [
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="deny", name="Deny", kind="reject_once"),
]


class EditorSession:
    """Lives on the connection's asyncio loop; blocking calls run in threads, one after another."""

    def __init__(
        self,
        host: Host,
        conversation: Conversation,
        *,
        folder: Path,
        client: Client,
        words: Callable[[Event], str],
    ) -> None:
        self.id = conversation.session
        self.conversation = conversation
        self.host, self._client = host, client
        self._updates = EditorUpdates(self.id, folder, words, self._output)
        self._prompts = Endings()
        self._in_order = asyncio.Lock()
        self._asking = dict[str, asyncio.Task[None]]()
        self._is_introduced = asyncio.Event()
        self._offered: Update | None = None

    # Requests of the editor -----------------------------------------------------------------------

    async def prompt(self, said: PromptParts) -> Ending:
        """Send a message, and wait until it is done. Raises `RequestError`."""
        key = await self._say(said)
        end = await self._prompts.ended(key)
        if end.status not in ("completed", *CANCELLED):
            raise RequestError(-32603, end.reason)
        return end

    async def steer(self, said: PromptParts, must_run: bool) -> str:
        """Send a steer to the running turn; return the outcome as the extension names it.

        `must_run`: without a running turn nothing is sent.
        """
        if must_run and (await asyncio.to_thread(self.conversation.record)).running is None:
            return "promptRequired"
        key = await self._say(said, "steer")
        said_as = await self._prompts.accepted(key)
        self._prompts.forget(key)
        return {"rejected": "failed", "turn": "startedNewTurn"}.get(said_as, "injected")

    async def cancel(self, turn: str = "") -> None:
        """Interrupt the running turn."""
        async with self._in_order:
            await asyncio.to_thread(self.conversation.interrupt, turn)

    async def command(self, line: str) -> Reply:
        """Run a slash command that was typed."""
        name, _, argument = line.strip().removeprefix("/").partition(" ")
        found = NAMES.get(name.lower())
        if found is None:
            return Reply(ok=False, text=f"No command `/{name}`.")
        if found.name in NOT_HERE:
            return Reply(ok=False, text=f"/{found.name}: your editor has its own way for it.")
        if found.says:
            return Reply(ok=False, text=f"/{found.name} is a message: send it as a prompt.")
        try:
            return await self.run(found.parse(argument))
        except UsageError as mistake:
            return Reply(ok=False, text=mistake.message)

    async def run(self, call: CommandCall) -> Reply:
        """Run a command."""
        async with self._in_order:
            return await asyncio.to_thread(call.run, self.conversation)

    async def _say(self, said: PromptParts, explicit: str = "auto") -> str:
        """Send a message, and return its client id."""
        text, say = said.text, self.conversation.say
        key = f"acp-{uuid4().hex}"
        self._prompts.expect(key)
        async with self._in_order:
            found = await asyncio.to_thread(self.conversation.classify, text)
            name = found.command if explicit == "auto" else ""
            if name in NOT_HERE:
                await self.send(self._updates.note(f"/{name}: your editor has its own way for it."))
                self._prompts.answered(key)
            else:
                await asyncio.to_thread(say, text, explicit, key, pictures=said.pictures)
        return key

    # Updates for the editor -----------------------------------------------------------------------

    async def hear(self, event: Event, *, is_parked: bool) -> None:
        """Send an event of this session or of a descendant, after the introduction.

        `is_parked`: nothing runs in the session of a `queue` event.
        """
        await self._is_introduced.wait()
        await self.send(await asyncio.to_thread(self._updates.updates, event))
        if event["type"] == "question":
            self._asking[event["id"]] = asyncio.create_task(self._ask(event))
        if event["type"] == "answered" and (asking := self._asking.pop(event["id"], None)):
            asking.cancel()  # the question is answered: the editor's answer would be too late
        if event["session"] != self.id:
            return
        if event["type"] == "goal":
            await self.send([goal_update(event)])
        if event["type"] == "result" and event["name"] == "busy":
            await self.send([await self._busy_changed()])
        if event["type"] == "notice":  # a server may have become ready
            await self._offer_commands()
        self._prompts.hear(event, is_parked=is_parked)

    async def send(self, updates: list[Update]) -> None:
        """Send updates, in order; none if the editor has disconnected."""
        with contextlib.suppress(ConnectionError):
            for update in updates:
                await self._client.session_update(self.id, update)

    async def introduce(self, notices: list[str]) -> None:
        """Send the list of commands, and the notices for the user."""
        await self._offer_commands()
        for notice in notices:
            await self.send(self._updates.note(notice))
        self._is_introduced.set()

    async def _offer_commands(self) -> None:
        """Send the list of commands unless it is the one that was sent last."""
        offered = commands(self.conversation.offers)
        if offered != self._offered:
            self._offered = offered
            await self.send([offered])

    async def introduced(self) -> None:
        """Wait until the introduction has been sent."""
        await self._is_introduced.wait()

    async def send_history(self, upto: int | None = None) -> None:
        """Send the whole conversation so far, or up to an entry of the journal."""
        found = await asyncio.to_thread(self.conversation.describe)
        messages = await asyncio.to_thread(self.conversation.messages, upto)
        await self.send(history(messages, found.folder))

    async def options(self) -> list[SessionConfigOptionSelect]:
        """Return the settings of the session."""
        found = await asyncio.to_thread(self.conversation.describe)
        return [busy_option(found.policy.busy_mode)]

    async def _busy_changed(self) -> ConfigOptionUpdate:
        options: Any = await self.options()
        return ConfigOptionUpdate(session_update="config_option_update", config_options=options)

    # Questions ------------------------------------------------------------------------------------

    async def _ask(self, event: QuestionEvent) -> None:
        """Ask the editor; cancelled when another client has answered, or the turn has ended."""
        try:
            response = await self._client.request_permission(
                self.id, self._updates.question(event), OPTIONS
            )
        except ConnectionError:
            return  # the editor has disconnected: the session is about to be left
        except RequestError as error:
            await self._answer(event, "deny", f"the editor could not ask: {error}")
            return
        if isinstance(response.outcome, AllowedOutcome):
            await self._answer(event, response.outcome.option_id, "")
        else:
            await self.cancel()

    async def _answer(self, event: QuestionEvent, choice: str, reason: str) -> None:
        known = choice if choice in ("allow", "always", "deny") else "deny"
        await asyncio.to_thread(self.conversation.answer, event["id"], known, reason)

    def _output(self, session: str, call: str) -> str:
        """Return the output of a tool call, as the model reads it."""
        try:
            messages = self.host.runtime.describe(session).messages
        except UnknownSession:
            return ""
        return next((message.text for message in reversed(messages) if message.call == call), "")
