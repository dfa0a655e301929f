"""One session of an editor: prompts in, updates and questions out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ConfigOptionUpdate,
    PermissionOption,
)

from ...gateway.client import SessionClient
from ...gateway.commands.command import CommandCall, Reply
from ...gateway.commands.registry import NAMES
from ...gateway.events.contract import Event, QuestionEvent, ReceiptEvent, is_receipt
from ...gateway.host.host import Host
from ...gateway.outcome import Outcome
from ...gateway.wording.acknowledgement import rejected_text
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
        conversation: SessionClient,
        *,
        folder: Path,
        client: Client,
        words: Callable[[Event], str],
        delivered: Callable[[SessionClient], Awaitable[None]],
    ) -> None:
        """`delivered` waits until the editor has what happened in the session so far."""
        self.id = conversation.session
        self.conversation = conversation
        self.host, self._client = host, client
        self._updates = EditorUpdates(self.id, folder, words, self._output)
        self._delivered = delivered
        self._outcomes = host.observers.outcomes[self.id]
        self._receipts: dict[str, asyncio.Future[ReceiptEvent]] = {}
        self._in_order = asyncio.Lock()
        self._asking = dict[str, asyncio.Task[None]]()
        self.is_introduced = asyncio.Event()
        self._offered: Update | None = None

    # Requests of the editor -----------------------------------------------------------------------

    async def prompt(self, said: PromptParts) -> Outcome | None:
        """Send a message, and wait until it is done; none for what has no turn of its own.

        Raises `RequestError`, and `UnknownSession` if the session is left before.
        """
        receipt = await self._say(said)
        if receipt is not None and receipt["type"] == "rejected":
            raise RequestError(-32603, rejected_text(receipt))
        if receipt is None or receipt["type"] == "result" or receipt["as"] == "side_talk":
            return None
        outcome = await self._outcomes.of(receipt["id"], with_turn=True)
        if outcome.status == "failed":
            raise RequestError(-32603, outcome.reason)
        await self._delivered(self.conversation)
        return outcome

    async def steer(self, said: PromptParts, must_run: bool) -> str:
        """Send a steer to the running turn; return the outcome as the extension names it.

        `must_run`: without a running turn nothing is sent.
        """
        if must_run and (await asyncio.to_thread(self.conversation.record)).running is None:
            return "promptRequired"
        receipt = await self._say(said, "steer")
        if receipt is not None and receipt["type"] == "rejected":
            return "failed"
        is_turn = receipt is not None and receipt["type"] == "accepted" and receipt["as"] == "turn"
        return "startedNewTurn" if is_turn else "injected"

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

    async def _say(self, said: PromptParts, explicit: str = "auto") -> ReceiptEvent | None:
        """Send a message, and return its receipt; none for a command that the editor has itself."""
        text, say = said.text, self.conversation.say
        key = f"acp-{uuid4().hex}"
        async with self._in_order:
            found = await asyncio.to_thread(self.conversation.texts.classify, text)
            if explicit == "auto" and found.command in NOT_HERE:
                note = f"/{found.command}: your editor has its own way for it."
                await self.send(self._updates.note(note))
                return None
            receipt: asyncio.Future[ReceiptEvent] = asyncio.get_running_loop().create_future()
            self._receipts[key] = receipt
            await asyncio.to_thread(say, text, explicit, key, pictures=said.pictures)
        return await receipt

    # Updates for the editor -----------------------------------------------------------------------

    async def hear(self, event: Event) -> None:
        """Send an event of this session or of a descendant, after the introduction."""
        await self.is_introduced.wait()
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
            now = await self.options()
            update = ConfigOptionUpdate(session_update="config_option_update", config_options=now)
            await self.send([update])
        if event["type"] == "notice":  # a server may have become ready
            await self._offer_commands()
        key = str(event.get("client_id"))
        if key in self._receipts and is_receipt(event, key):
            self._receipts.pop(key).set_result(event)

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
        self.is_introduced.set()

    async def _offer_commands(self) -> None:
        """Send the list of commands unless it is the one that was sent last."""
        offered = commands(self.conversation.offers)
        if offered != self._offered:
            self._offered = offered
            await self.send([offered])

    async def send_history(self, upto: int | None = None) -> None:
        """Send the whole conversation so far, or up to an entry of the journal."""
        found = await asyncio.to_thread(self.conversation.describe)
        messages = await asyncio.to_thread(self.conversation.view.messages, upto)
        await self.send(history(messages, found.folder))

    async def options(self) -> Any:
        """Return the settings of the session, a list for which each answer has another type."""
        found = await asyncio.to_thread(self.conversation.describe)
        return [busy_option(found.policy.busy_mode)]

    # Questions ------------------------------------------------------------------------------------

    async def _ask(self, event: QuestionEvent) -> None:
        """Ask the editor; cancelled when another client has answered, or the turn has ended."""
        try:
            known = [one for one in OPTIONS if one.option_id in event["options"]]
            response = await self._client.request_permission(
                self.id, self._updates.question(event), known
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
