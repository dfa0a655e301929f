"""The session of one room: taken up again, begun with the first message, followed, and shown at work."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Never

from ...machines.errors import SteersmanError, UsageError
from ..commands.registry import call
from ..follow import Event
from ..library import SessionHandle
from .event_messages import EventMessages, event_key, stream_key
from .gateway_store import OutboxMessage
from .platform import NotSent, Outgoing
from .platform_parts import pauses
from .room import Room, parts

log = logging.getLogger("steersman.chat")

_TYPING = 4.0  # seconds between two signs that the agent is at work


class LiveAnswer:
    """Shows that the agent is at work, and its answer as it is written, if messages can be changed."""

    def __init__(self, room: Room, session: str) -> None:
        self._room, self._platform, self._session = room, room.platform, session
        self._text = ""
        self._shown = ""
        self._showing = set[asyncio.Task[None]]()

    def update(self, event: Mapping[str, Any]) -> None:
        """Take in an event of the session."""
        kind = event["type"]
        if kind in ("turn_started", "turn_ended"):
            self._stop()
        if kind == "turn_started" or (kind == "text" and not self._showing):
            task = asyncio.create_task(self._show(str(event["turn"])))
            self._showing.add(task)
            task.add_done_callback(self._showing.discard)
        if kind == "text":
            self._text = ("" if event.get("so_far") else self._text) + event["delta"]
        elif kind == "tool_started":
            self._text = ""

    def _stop(self) -> None:
        for task in self._showing:
            task.cancel()
        self._text = self._shown = ""

    async def aclose(self) -> None:
        """Show nothing any more."""
        self._stop()
        if self._showing:
            await asyncio.wait(self._showing)

    async def _show(self, turn: str) -> None:
        try:
            await self._show_at_work(turn)
        finally:
            await self._platform.typing(self._room.name, is_typing=False)

    async def _show_at_work(self, turn: str) -> Never:
        """Show what has come, at the rate of the platform."""
        limits = self._platform.limits
        key, last = stream_key(self._session, turn), 0.0
        while True:
            now = time.monotonic()
            if now - last >= _TYPING:
                await self._platform.typing(self._room.name, is_typing=True)
                last = now
            await asyncio.sleep(max(limits.edit_interval, 0.05))
            begun = parts(self._text, limits)[:1] if limits.can_edit else []
            if not begun or begun[0] == self._shown:
                continue
            self._shown = begun[0]
            sent = Outgoing(key=key, room=self._room.name, text=self._shown, kind="answer")
            if message := await self._room.store.id_there(key):
                with suppress(NotSent, OSError):  # the end of the turn brings the whole
                    await self._platform.change(self._room.name, message, sent)
            else:
                await self._room.store.write(OutboxMessage(outgoing=sent))
                self._room.posted.set()


class RoomSession:
    """The session of one room: `current`, if it was taken up or begun."""

    def __init__(self, room: Room) -> None:
        self._room, self._options = room, room.options
        self.current: SessionHandle | None = None
        self._is_there = asyncio.Event()

    async def take_up(self) -> None:
        """Resume the room's session, if it has one that is not finalized. Raises `SteersmanError`."""
        name, _ = await self._room.store.room(self._room.name)
        known = await asyncio.to_thread(self._room.home.sessions) if name else []
        if not any(info.id == name and info.state != "finalized" for info in known):
            return
        session = await self._room.home.resume(name)
        self._is(session)
        if self._options.on_restart == "resume":
            try:
                await session.resume_queue()
            except UsageError as refusal:
                log.warning(
                    "room %s: its queue is not resumed: %s", self._room.name, refusal.message
                )

    async def open(self) -> SessionHandle:
        """Return the room's session; begin it if there is none. Raises `SteersmanError`."""
        if self.current is None:
            await self.take_up()
        if self.current is None or not self.current.is_open:
            options, folder = self._options, Path(self._options.folder)
            session = await self._room.home.start(options.agent or None, folder=folder)
            await session.enter(call("busy", {"mode": options.busy}))
            await self._room.store.begin(self._room.name, session.id, 0)
            self._is(session)
        assert self.current is not None
        return self.current

    async def go_to(self, name: str) -> None:
        """Be the room of another session, which a command has put in place of this one."""
        session = await self._room.home.resume(name)
        await self._room.store.begin(self._room.name, session.id, 0)
        self._is(session)

    def _is(self, session: SessionHandle) -> None:
        self.current = session
        self._is_there.set()

    async def follow(self) -> Never:
        """Follow one session after another."""
        followed, waits = "", pauses()
        while True:
            await self._is_there.wait()
            session = self.current
            if session is None or session.id == followed:
                self._is_there.clear()
                continue
            try:
                await self._follow(session)
                followed, waits = session.id, pauses()
            except SteersmanError as fault:  # its journal cannot be read now
                log.warning("room %s is not told more for now: %s", self._room.name, fault.message)
                await asyncio.sleep(next(waits))

    async def _follow(self, session: SessionHandle) -> None:
        """Write the messages of a session for the room, until that ends."""
        room, events = self._room, EventMessages(self._room, session)
        _, seq = await room.store.room(room.name)
        live = LiveAnswer(room, session.id)
        try:
            async for event in session.events(after=seq):
                live.update(event.data)
                if event.seq is None and event.get("parent") is None:
                    continue
                if messages := await self._messages(events, event):
                    # the entry may have more events: they are looked at again, and known by their keys
                    await room.store.write(*messages, room=room.name, seq=(event.seq or 1) - 1)
                    room.posted.set()
        finally:
            await live.aclose()

    async def _messages(self, events: EventMessages, event: Event) -> list[OutboxMessage]:
        """Return what is to be said of an event; a mistake here does not come again at each start."""
        [messages] = await asyncio.gather(events.messages(event), return_exceptions=True)
        if isinstance(messages, list):
            return messages
        if isinstance(messages, SteersmanError):
            raise messages
        log.error("room %s: %s cannot be told", self._room.name, event, exc_info=messages)
        text = f"There is something that I cannot show (`{event.type}`); my log says more."
        return self._room.write(event_key(event), text)
