"""One session of an editor: prompts in, updates and questions out."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from uuid import uuid4

from acp.exceptions import RequestError
from acp.schema import PermissionOption, SessionModeState

from ...gateway.client import SessionClient
from ...gateway.commands.command import CommandCall, Reply
from ...gateway.commands.registry import NAMES
from ...gateway.events.contract import (
    AcceptedEvent,
    Event,
    QuestionEvent,
    ReceiptEvent,
    ResultEvent,
    is_receipt,
)
from ...gateway.host.host import Host
from ...gateway.outcome import Outcome
from ...gateway.wording.acknowledgement import rejected_text
from ...journal.queue_record import ItemRecord
from ...machines import protocol as m
from ...machines.errors import SteersmanError, UsageError
from .link import REFUSED, WRONG, EditorLink
from .settings import SETTINGS, modes, settings_of
from .update import (
    KEY,
    NOT_HERE,
    EditorUpdates,
    PromptParts,
    Update,
    commands,
    goal_update,
    history,
)

OPTIONS = [
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="deny", name="Deny", kind="reject_once"),
]


_CHOICES = [one.option_id for one in OPTIONS]
_TRIES = 3  # to fill in a form
CANCELLED = -32800
"""The protocol's error for a request that was cancelled."""
Form = Mapping[str, Any]


class EditorSession:
    """Lives on the connection's asyncio loop; blocking calls run in threads, one after another."""

    def __init__(
        self,
        host: Host,
        conversation: SessionClient,
        *,
        link: EditorLink,
        updates: EditorUpdates,
        delivered: Callable[[SessionClient], Awaitable[None]],
    ) -> None:
        """`delivered` waits until the editor has what happened in the session so far."""
        self.id = conversation.session
        self.conversation = conversation
        self.host, self._link, self._updates = host, link, updates
        self._delivered = delivered
        self._outcomes = host.observers.outcomes[self.id]
        self._receipts: dict[str, tuple[asyncio.Future[ReceiptEvent], asyncio.Event | None]] = {}
        self._inserting: dict[str, asyncio.Event] = {}
        self._in_order = asyncio.Lock()
        self._asking = dict[str, asyncio.Task[None]]()
        self.is_introduced = asyncio.Event()
        self._offered: list[Update] = []

    # Requests of the editor -----------------------------------------------------------------------

    async def prompt(self, said: PromptParts) -> Outcome | None:
        """Send a message, and wait until it is done; none for what has no turn of its own.

        Raises `RequestError`, and `UnknownSession` if the session is left before.
        """
        receipt = await self._say(said)
        if receipt is not None and receipt["type"] == "rejected":
            raise RequestError(REFUSED, rejected_text(receipt))
        if receipt is None or receipt["type"] == "result" or receipt["as"] == "side_talk":
            return None
        outcome = await self._outcomes.of(receipt["id"], with_turn=True)
        if outcome.status == "failed":
            raise RequestError(-32603, outcome.reason)
        await self._delivered(self.conversation)
        return outcome

    async def insert(self, said: PromptParts, explicit: str = "auto") -> str:
        """Send a message, and wait until it is in the conversation; return its id.

        Raises `RequestError`, also for one that is taken back or held before.
        """
        entered = asyncio.Event()
        taken = await self._taken(said, explicit, entered)
        if taken["type"] == "result" or taken["as"] == "side_talk":
            return taken["id"]
        ways = asyncio.create_task(entered.wait()), asyncio.create_task(self._outcome(taken["id"]))
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            ended = ways[1].result() if ways[1].done() else None
        finally:
            for way in ways:
                way.cancel()
            self._inserting.pop(taken["id"], None)
        if not entered.is_set() and (ended is None or ended.status in ("withdrawn", "held")):
            raise RequestError(CANCELLED, "the message was not taken in: it was stopped before")
        return taken["id"]

    async def inject(self, said: PromptParts, explicit: str) -> str:
        """Send a message that waits or steers, and return its id when it is stored."""
        return (await self._taken(said, explicit))["id"]

    async def _taken(
        self, said: PromptParts, explicit: str, entered: asyncio.Event | None = None
    ) -> AcceptedEvent | ResultEvent:
        """Send a message. Raises `RequestError` if it is not taken."""
        receipt = await self._say(said, explicit, entered)
        if receipt is None:
            raise RequestError(WRONG, "your editor has its own way for this command")
        if receipt["type"] == "rejected":
            raise RequestError(REFUSED, rejected_text(receipt))
        return receipt

    async def is_running(self) -> bool:
        """Whether a turn runs."""
        return (await asyncio.to_thread(self.conversation.record)).running is not None

    def reword(self, item: str, text: str) -> None:
        """Note that a message that waits was changed."""
        self._updates.messages.reword(item, text)

    async def _outcome(self, item: str) -> Outcome | None:
        """Wait for the outcome of a message; none if the session is left before."""
        try:
            return await self._outcomes.of(item, with_turn=True)
        except SteersmanError:
            return None

    async def item(self, name: str) -> ItemRecord | None:
        """Return a message of the queue by its id, or of what it became."""
        items = (await asyncio.to_thread(self.conversation.record)).queue.items
        return items.get(self._updates.messages.now(name))

    async def steer(self, said: PromptParts, must_run: bool) -> str:
        """Send a steer to the running turn; return the outcome as the extension names it.

        `must_run`: without a running turn nothing is sent.
        """
        if must_run and not await self.is_running():
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

    async def _say(
        self, said: PromptParts, explicit: str = "auto", entered: asyncio.Event | None = None
    ) -> ReceiptEvent | None:
        """Send a message, and return its receipt; none for a command that the editor has itself.

        `entered` is set when the message is in the conversation.
        """
        text, say = said.text, self.conversation.say
        key = f"{KEY}{uuid4().hex}"
        async with self._in_order:
            found = await asyncio.to_thread(self.conversation.texts.classify, text)
            if explicit == "auto" and found.command in NOT_HERE:
                note = f"/{found.command}: your editor has its own way for it."
                await self.send(self._updates.note(note))
                return None
            receipt: asyncio.Future[ReceiptEvent] = asyncio.get_running_loop().create_future()
            self._receipts[key] = receipt, entered
            self._updates.messages.note(key, text)
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
        if event["type"] in ("turn_started", "steered"):
            name = self._updates.messages.first(str(event.get("item") or event.get("id")))
            if entered := self._inserting.get(name):
                entered.set()
        is_set = event["type"] == "result" and event["name"] in SETTINGS
        if is_set or event["type"] == "mode":
            found = await asyncio.to_thread(settings_of, self.conversation)
            await self.send(self._updates.settings(found))
        if event["type"] == "notice":  # a server may have become ready
            await self._offer_commands()
        key = str(event.get("client_id"))
        if key in self._receipts and is_receipt(event, key):
            receipt, entered = self._receipts.pop(key)
            if entered is not None and event["type"] == "accepted":
                self._inserting[event["id"]] = entered
            receipt.set_result(event)

    async def send(self, updates: list[Update]) -> None:
        """Send updates, in order; none if the editor has disconnected."""
        with contextlib.suppress(ConnectionError):
            for update in updates:
                await self._link.tell(self.id, update)

    async def introduce(self, notices: list[str]) -> None:
        """Send the list of commands, and the notices for the user."""
        await self._offer_commands()
        for notice in notices:
            await self.send(self._updates.note(notice))
        self.is_introduced.set()

    async def _offer_commands(self) -> None:
        """Send the list of commands unless it is the one that was sent last."""
        offered = self._updates.told(commands(self.conversation.offers))
        if offered != self._offered:
            self._offered = offered
            await self.send(offered)

    async def send_history(self, upto: int | None = None) -> None:
        """Send the whole conversation so far, or up to an entry of the journal."""
        found = await asyncio.to_thread(self.conversation.describe)
        messages = await asyncio.to_thread(self.conversation.view.messages, upto)
        for update in history(messages, found.folder):
            await self.send(self._updates.told(update))

    async def send_state(self) -> None:
        """Send what the session does now, where the protocol has an update for it."""
        record = await asyncio.to_thread(self.conversation.record)
        await self.send(self._updates.state_of(record))

    async def options(self) -> Any:
        """Return the settings of the session, a list for which each answer has another type."""
        return await asyncio.to_thread(settings_of, self.conversation)

    async def modes(self) -> SessionModeState:
        """Return the permission modes, and which of them the session has."""
        return modes((await asyncio.to_thread(self.conversation.describe)).policy.mode)

    # Questions ------------------------------------------------------------------------------------

    async def _ask(self, event: QuestionEvent) -> None:
        """Ask the editor; cancelled when another client has answered, or the turn has ended."""
        try:
            form = cast("Form", event["arguments"])
            if (
                event["kind"] == "form"
                and ("form" if "schema" in form else "url") in self._link.fills
            ):
                await self._fill(event["id"], form)
                return
            known = [one for one in OPTIONS if one.option_id in event["options"]]
            chosen = await self._link.ask(self.id, self._updates.question(event), known)
        except ConnectionError:
            return  # the editor has disconnected: the session is about to be left
        except RequestError as error:
            await self._answer(event["id"], "deny", f"the editor could not ask: {error}")
            return
        if chosen:
            await self._answer(event["id"], chosen if chosen in _CHOICES else "deny", "")
        else:
            await self.cancel()

    async def _fill(self, question: str, form: Form) -> None:
        """Have a form filled in, again while what was filled in does not fit."""
        for _ in range(_TRIES):
            content = await self._link.fill(self.id, question, form)
            if content is None:
                break
            given = json.dumps(content) if "schema" in form else ""
            answer = await self._answer(question, "answer", given)
            if answer.get("ok"):
                return
            await self.send(self._updates.note(str(answer.get("reason"))))
        await self._answer(question, "deny", "")

    async def _answer(self, question: str, choice: str, reason: str) -> dict[str, Any]:
        answer = m.Answer(question=question, choice=choice, reason=reason)
        return await asyncio.to_thread(self.conversation.ask, answer)
