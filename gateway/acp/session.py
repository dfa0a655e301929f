"""One session as an editor has it: prompts in, updates and questions out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ConfigOptionUpdate,
    PermissionOption,
    SessionConfigOptionSelect,
)

from ...machines.messages import Interrupt
from ..commands.registry import COMMANDS
from ..commands.reply import Reply
from ..conversation import Conversation
from ..events.contract import Event
from ..host import Host
from .update import NOT_HERE, Telling, Update, busy_option, commands, goal_update, history

# The prompts that an editor waits for, and what each becomes --------------------------------------
# A prompt is answered when its message is done: at the end of the turn that it began or entered, at once
# where it only stopped something, and as cancelled when it was taken out of the queue or is held there.


StopReason = Literal["end_turn", "cancelled"]
ENDS: dict[str, StopReason] = {"completed": "end_turn", "interrupted": "cancelled"}


@dataclass(frozen=True, slots=True)
class PromptOutcome:
    """How a prompt ended: `fault` says why its turn failed, or why it was not taken in."""

    stop_reason: StopReason
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    fault: str = ""


@dataclass(slots=True)
class _Waiting:
    """One prompt: the queue item that it is, and the turn that took it in."""

    accepted: asyncio.Future[str]
    ended: asyncio.Future[PromptOutcome]
    item: str = ""
    turn: str = ""

    def end(self, outcome: PromptOutcome) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)


class Prompts:
    """One session's open prompts, by the key under which each was said. On one asyncio loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._turn = ""

    def expect(self, key: str) -> None:
        """Await what becomes of a message before it is said."""
        loop = asyncio.get_running_loop()
        self._waiting[key] = _Waiting(loop.create_future(), loop.create_future())

    async def accepted(self, key: str) -> str:
        """Return as what a message was taken in: turn, queue, steer …, or rejected."""
        return await self._waiting[key].accepted

    async def ended(self, key: str) -> PromptOutcome:
        """Return how a message ended."""
        try:
            return await self._waiting[key].ended
        finally:
            self.forget(key)

    def forget(self, key: str) -> None:
        """Await it no more."""
        self._waiting.pop(key, None)

    def hear(self, event: Event) -> None:
        """Take in an event of the session itself."""
        match event["type"]:
            case "accepted" | "rejected":
                self._receipt(event)
            case "turn_started":
                self._turn = event["turn"]
            case "steered":
                for one in self._of_item(event["id"]):
                    one.turn = self._turn
            case "requeued":
                for one in self._of_item(event["id"]):
                    one.item, one.turn = event["item"], ""
            case "turn_ended":
                self._turn_ended(event)
            case "queue":
                self._look_at(event)
            case "session_suspended" | "session_finalized":
                for one in self._all():
                    one.end(PromptOutcome("cancelled"))
            case _:
                pass

    def _receipt(self, event: Event) -> None:
        one = self._waiting.get(event["client_id"] or "")
        if one is None or one.accepted.done():
            return
        if event["type"] == "rejected":
            hint = f"; {event['hint']}" if event.get("hint") else ""
            one.end(PromptOutcome("end_turn", fault=f"not taken in: {event['reason']}{hint}"))
            one.accepted.set_result("rejected")
            return
        one.accepted.set_result(event["as"])
        if event["number"] is None or event["as"] == "side_talk":
            one.end(
                PromptOutcome("end_turn")
            )  # a stop, or a talk beside: nothing of its own to wait for
        else:
            one.item = event["id"]

    def _turn_ended(self, event: Event) -> None:
        self._turn = ""
        status = event["status"]
        fault = str(event.get("reason") or status) if status not in ENDS else ""
        outcome = PromptOutcome(ENDS.get(status, "end_turn"), event["usage"], fault)
        for one in self._all():
            if event["item"] == one.item or event["turn"] == one.turn:
                one.end(outcome)

    def _look_at(self, event: Event) -> None:
        """Give up what left the queue without a turn, or is held in it with nothing running."""
        there = {one["id"] for one in event["items"]}
        for one in self._all():
            is_gone = one.item and not one.turn and one.item not in there
            if is_gone or (one.item and event.get("is_parked")):
                one.end(PromptOutcome("cancelled"))

    def _of_item(self, item: str) -> list[_Waiting]:
        return [one for one in self._all() if one.item == item]

    def _all(self) -> list[_Waiting]:
        return list(self._waiting.values())


OPTIONS = [
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="deny", name="Deny", kind="reject_once"),
]


class EditorSession:
    """Lives on the connection's asyncio loop; what blocks runs in threads, one call after another."""

    def __init__(
        self,
        host: Host,
        conversation: Conversation,
        client: Client,
        words: Callable[[Event], str],
    ) -> None:
        self.id = conversation.session
        self.conversation = conversation
        self._host, self._client = host, client
        live = host.runtime.sessions[self.id]
        self._telling = Telling(self.id, Path(live.record.folder), words, self._output)
        self._prompts = Prompts()
        self._in_order = asyncio.Lock()
        self._asking = dict[str, asyncio.Task[None]]()
        self._is_introduced = asyncio.Event()

    # What the editor says -------------------------------------------------------------------------

    async def prompt(self, text: str) -> PromptOutcome:
        """Say something and wait until it is done. Raises `RequestError`."""
        key = await self._say(text)
        if not key:
            return PromptOutcome("end_turn")
        outcome = await self._prompts.ended(key)
        if outcome.fault:
            raise RequestError(-32603, outcome.fault)
        return outcome

    async def steer(self, text: str, must_run: bool) -> str:
        """Say something to the running turn; return the outcome in the extension's words.

        `must_run`: with no turn running nothing is said.
        """
        if must_run and (await asyncio.to_thread(self.conversation.record)).running is None:
            return "promptRequired"
        key = await self._say(text, "steer")
        said_as = await self._prompts.accepted(key)
        self._prompts.forget(key)
        return {"rejected": "failed", "turn": "startedNewTurn"}.get(said_as, "injected")

    async def cancel(self, turn: str = "") -> None:
        """Stop what runs."""
        async with self._in_order:
            said = self.conversation.runtime.next_said()
            order = Interrupt("stop", turn, said=said)
            await asyncio.to_thread(self.conversation.ask, order)

    async def command(self, line: str) -> Reply:
        """Carry out a slash command, with an answer as data."""
        async with self._in_order:
            return await asyncio.to_thread(self._run, line)

    async def _say(self, text: str, explicit: str = "auto") -> str:
        """Say something and return its key; empty when it was a command, which is answered."""
        key = f"acp-{uuid4().hex}"
        self._prompts.expect(key)
        async with self._in_order:
            found = await asyncio.to_thread(self.conversation.classify, text)
            name = found.command if explicit == "auto" else ""
            if name in NOT_HERE:
                await self.send(self._telling.note(f"/{name}: your editor has its own way for it."))
                reply: Reply | None = Reply(False)
            else:
                reply = await asyncio.to_thread(self.conversation.say, text, explicit, key)
        if reply is not None:
            self._prompts.forget(key)
            return ""
        return key

    def _run(self, line: str) -> Reply:
        name, _, argument = line.strip().removeprefix("/").partition(" ")
        command = COMMANDS.get(name.lower())
        if command is None or name in NOT_HERE or command.says:
            return Reply(False, text=f"No command `/{name}`.")
        return command.run(self.conversation, argument.strip())

    # What the editor is told ----------------------------------------------------------------------

    async def hear(self, event: Event) -> None:
        """Tell an event of this session, or of one beneath it; behind the introduction."""
        await self._is_introduced.wait()
        await self.send(self._telling.updates(event))
        if event["type"] == "question":
            self._asking[event["id"]] = asyncio.create_task(self._ask(event))
        if event["type"] == "answered" and (asking := self._asking.pop(event["id"], None)):
            asking.cancel()  # what the editor still says of it means nothing
        if event["session"] != self.id:
            return
        if event["type"] == "goal":
            await self.send([goal_update(event)])
        if event["type"] == "result" and event["name"] == "busy":
            await self.send([await self._busy_changed()])
        self._prompts.hear(event)

    async def send(self, updates: list[Update]) -> None:
        """Send updates, in order; an editor that is gone gets none."""
        with contextlib.suppress(ConnectionError):
            for one in updates:
                await self._client.session_update(self.id, one)

    async def introduce(self, notices: list[str]) -> None:
        """Say which commands there are, and what a person has to know."""
        await self.send([commands()])
        for one in notices:
            await self.send(self._telling.note(one))
        self._is_introduced.set()

    async def tell_again(self) -> None:
        """Tell the whole conversation so far."""
        record = self._host.runtime.sessions[self.id].record
        await self.send(history(tuple(record.conversation), Path(record.folder)))

    async def options(self) -> list[SessionConfigOptionSelect]:
        """Return the settings of the session."""
        record = await asyncio.to_thread(self.conversation.record)
        live = self._host.runtime.sessions[self.id]
        return [busy_option(record.busy_mode or live.environment.policy.busy_mode)]

    async def _busy_changed(self) -> ConfigOptionUpdate:
        options: Any = await self.options()
        return ConfigOptionUpdate(session_update="config_option_update", config_options=options)

    # Questions ------------------------------------------------------------------------------------

    async def _ask(self, event: Event) -> None:
        """Let the editor answer; cancelled when somebody else has, or the turn has ended."""
        try:
            said = await self._client.request_permission(
                self.id, self._telling.question(event), OPTIONS
            )
        except ConnectionError:
            return  # the editor is gone: the session is about to be left
        except RequestError as error:
            await self._answer(event, "deny", f"the editor could not ask: {error}")
            return
        if isinstance(said.outcome, AllowedOutcome):
            await self._answer(event, said.outcome.option_id, "")
        else:
            await self.cancel()

    async def _answer(self, event: Event, choice: str, reason: str) -> None:
        known = choice if choice in ("allow", "always", "deny") else "deny"
        await asyncio.to_thread(self.conversation.answer, event["id"], known, reason)

    def _output(self, session: str, call: str) -> str:
        """Return what a call gave, as the model reads it."""
        live = self._host.runtime.sessions.get(session)
        conversation = live.record.conversation if live is not None else ()
        found = (one.text for one in reversed(conversation) if one.call == call)
        return next(found, "")
