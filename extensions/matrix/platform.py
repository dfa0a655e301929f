"""Matrix as a chat platform.

What was read is kept as the server's own place in its stream (`next_batch`), after the events up to it
were taken; so nothing is lost while this program or the server is down. Rooms with end-to-end encryption
cannot be read: at the start that is an error, and a room that is encrypted later gets a notice.
Source: https://spec.matrix.org/latest/client-server-api/
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, cast
from urllib.parse import quote

from nio import (  # pyright: ignore[reportMissingTypeStubs]
    AsyncClient,
    InviteMemberEvent,
    JoinedMembersResponse,
    JoinedRoomsResponse,
    JoinResponse,
    LogoutResponse,
    RoomGetStateEventResponse,
    RoomLeaveResponse,
    RoomResolveAliasResponse,
    RoomTypingResponse,
    SyncResponse,
)

from ...gateway.chat.platform import Inbound, Memory, NotSent, Outgoing, PlatformLimits
from ...gateway.chat.platform_parts import pauses
from ...machines.errors import ConfigError, SteersmanError
from ...machines.json_shape import parse_json
from ...ports.models.loose_json import table
from .connection import REQUEST, MatrixRefusal, ask, fetch
from .events import LARGEST_TEXT, Event, change_content, message_content, one_line, reactions
from .link import FIRST_PAUSE, LONGEST_PAUSE, MatrixLink, MatrixSettings
from .reader import TYPES, MatrixReader, MatrixRooms, local_name

_POLL = 30_000  # milliseconds that the server may wait for something new
_TYPING = 30_000  # milliseconds


class Matrix:
    """An account on a Matrix server, in the rooms that are named, for one asyncio loop."""

    limits = PlatformLimits(
        bytes=LARGEST_TEXT,
        interval=1.0,
        edit_interval=3.0,
        can_edit=True,
        has_choices=True,
        is_idempotent=True,
    )

    def __init__(self, settings: MatrixSettings, rooms: tuple[str, ...]) -> None:
        self._settings = settings
        self._rooms = MatrixRooms(rooms)
        self._link = MatrixLink(settings)
        self._reader = MatrixReader(self._link, self._rooms)
        self._place = f"place {settings.account}"  # in the memory
        self._has_entered = False  # every room, once

    # Receive ----------------------------------------------------------------------------------------

    @property
    def own_name(self) -> str:
        """The account without its server."""
        return local_name(self._settings.account)

    def sender_of(self, name: str) -> str:
        """Return a user's id, which is the sender."""
        return name.strip()

    async def inbound(self, memory: Memory) -> AsyncIterator[Inbound]:
        """Yield what people do in the rooms, from the place on that `memory` has."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        while not self._link.closing.is_set():
            try:
                inbound, place = await self._listen(memory)
                self._link.contact.made()
                waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
            except (OSError, NotSent, MatrixRefusal) as error:
                if self._link.closing.is_set():
                    return
                if isinstance(error, MatrixRefusal) and not error.is_logged_out:
                    raise _config_error(error) from error
                self._link.connected.clear()
                self._link.contact.lost(error)
                wait = max(next(waits), error.seconds if isinstance(error, NotSent) else 0.0)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait * random.uniform(0.8, 1.2)):
                        await self._link.closing.wait()
                continue
            for item in inbound:
                yield item
            await memory.put(self._place, place)

    async def _listen(self, memory: Memory) -> tuple[list[Inbound], str]:
        """Connect if there is no connection, and wait for what is new.

        Returns it with the word to remember once it was taken.
        """
        link = self._link
        if link.client is None:
            link.client = link.connect()
        if not link.connected.is_set():
            await self._enter(link.client, memory)
            link.connected.set()
        since, _, received = memory.get(self._place).partition(" ")
        filtering = _filter([] if self._settings.direct else self._rooms.ids)
        request = link.client.sync(_POLL, filtering, since=since or None)
        news = await ask("read the rooms", SyncResponse, request)
        for room_id in news.rooms.leave:
            await self._rooms.forget_direct(room_id, memory)
        for room_id, invitation in news.rooms.invite.items():
            await self._take_invitation(room_id, cast("Any", invitation).invite_state, memory)
        inbound: list[Inbound] = []
        if since:  # what was said before the very first time is not for us
            for room_id, room in news.rooms.join.items():
                if self._rooms.name(room_id):
                    timeline = cast("Any", room.timeline)
                    inbound += await self._reader.read_room(
                        room_id, timeline, since, float(received or 0)
                    )
        return inbound, f"{news.next_batch} {time.time():.3f}"

    async def _enter(self, client: AsyncClient, memory: Memory) -> None:
        """Log in, and join the rooms; raises `ConfigError` for what no waiting repairs."""
        device = memory.get("device")
        if self._link.has_password and not device:
            device = f"STEERSMAN{uuid.uuid4().hex[:10].upper()}"
            await memory.put("device", device)
        await self._link.log_in(client, device)
        joined = await _joined(client)
        self._rooms.recall(memory, joined)
        for name in self._rooms.names:
            try:
                room_id = await _room_id(client, name)
                if room_id not in joined:
                    await ask(f"join {name}", JoinResponse, client.join(name))
                is_encrypted = await _is_encrypted(client, room_id)
            except MatrixRefusal as error:
                if not self._has_entered:
                    hint = "Invite the account to the room, or correct the name."
                    raise ConfigError(error.message, hint) from error
                continue  # the account was put out of this room; it may be invited again
            if is_encrypted and not self._has_entered:
                raise _encrypted(name)
            self._rooms.place(name, room_id)
        self._has_entered = True

    # Private rooms ----------------------------------------------------------------------------------

    async def _take_invitation(self, room_id: str, state: list[Any], memory: Memory) -> None:
        """Join a room that is configured, or a private one if the settings allow that."""
        client = self._link.live()
        own = self._settings.account
        invitations = [e for e in state if isinstance(e, InviteMemberEvent) and e.state_key == own]
        is_direct = any(cast("Any", e).content.get("is_direct") is True for e in invitations)
        if room_id not in self._rooms.ids:
            if not (self._settings.direct and is_direct):
                return
            if not await self._rooms.add_direct(room_id, memory):
                return
        # Another server may be slow to answer.
        self._link.tasks.start(self._join(client, room_id, memory))

    async def _join(self, client: AsyncClient, room_id: str, memory: Memory) -> None:
        try:
            await ask("join a room", JoinResponse, client.join(room_id))
            if room_id in self._rooms.direct and await _is_encrypted(client, room_id):
                await self._link.refuse_encryption(room_id, is_once=True)
                await ask("leave a room", RoomLeaveResponse, client.room_leave(room_id))
        except (OSError, NotSent, MatrixRefusal):
            await self._rooms.forget_direct(room_id, memory)

    # Send -------------------------------------------------------------------------------------------

    async def send(self, message: Outgoing) -> str:
        """Send a message, and return its id; the server knows it again by its key."""
        room_id, content = await self._open_room(message.room), message_content(message)
        event_id = await self._link.put(room_id, "m.room.message", content, message.key)
        if message.choices:
            self._link.tasks.start(self._add_buttons(room_id, event_id, message))
        return event_id

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Change a message; doing so twice is harmless."""
        room_id, content = await self._open_room(room), change_content(message, sent)
        await self._link.put(room_id, "m.room.message", content, uuid.uuid4().hex)

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Show that the agent is at work."""
        link = self._link
        if link.client is None or not link.connected.is_set():
            return
        with suppress(OSError, NotSent, MatrixRefusal):
            request = link.client.room_typing(self._rooms.id(room), is_typing, _TYPING)
            await ask("show typing", RoomTypingResponse, request)

    async def _open_room(self, room: str) -> str:
        """Wait for a connection, and return the id of a room."""
        await self._link.connected.wait()
        if self._link.closing.is_set():
            raise ConnectionError("the connection to Matrix was closed")
        return self._rooms.id(room)

    async def _add_buttons(self, room_id: str, event_id: str, message: Outgoing) -> None:
        """React to a question with each of its choices, so that people only have to tap one."""
        for emoji in reactions(message.choices):
            relation = {"rel_type": "m.annotation", "event_id": event_id, "key": emoji}
            content = {"m.relates_to": relation}
            await self._link.insist(room_id, "m.reaction", content, f"{message.key} {emoji}")

    # Check and close ----------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        """Log in, look at each room, and log out again if the login was with a password."""
        client = self._link.connect()
        try:
            await self._link.log_in(client, "")
            joined = await _joined(client)
            lines = [f"server: {self._settings.server}", f"account: {self._settings.account}"]
            try:
                for name in self._rooms.names:
                    lines.append(await self._check_room(client, name, joined))
            finally:
                if self._link.has_password:
                    with suppress(OSError, NotSent, MatrixRefusal):
                        await ask("log out", LogoutResponse, client.logout())
        except OSError as error:
            what = f"{self._settings.server}: {one_line(str(error))}"
            raise SteersmanError(what, "See `server` in [gateways.matrix].") from error
        except MatrixRefusal as error:
            raise _config_error(error) from error
        finally:
            await client.close()
        return lines

    async def _check_room(self, client: AsyncClient, name: str, joined: set[str]) -> str:
        room_id = await _room_id(client, name)
        if room_id not in joined:
            return f"{name}: not joined yet; it is joined at the start, if the account may"
        if await _is_encrypted(client, room_id):
            raise _encrypted(name)
        if not await self._may_speak(client, room_id):
            hint = "Give the account a higher power level there."
            raise ConfigError(f"the account may not send messages in {name}", hint)
        request = client.joined_members(room_id)
        members = (await ask("list the members", JoinedMembersResponse, request)).members
        return f"{name}: joined, with {len(members)} members"

    async def _may_speak(self, client: AsyncClient, room_id: str) -> bool:
        levels = await _state(client, room_id, "m.room.power_levels") or {}
        users, events = table(levels.get("users")), table(levels.get("events"))
        own: object = users.get(self._settings.account, levels.get("users_default", 0))
        needed: object = events.get("m.room.message", levels.get("events_default", 0))
        if not (isinstance(own, int) and isinstance(needed, int)) or own >= needed:
            return True
        # Who made a room may do everything in it, without a level, since version 12 of rooms.
        path = f"/_matrix/client/v3/rooms/{quote(room_id)}/state/m.room.create?format=event"
        made = await fetch(client, path, 65_536, REQUEST)
        return table(parse_json(made)).get("sender") == self._settings.account

    async def aclose(self) -> None:
        """Disconnect."""
        await self._link.aclose()


def _filter(rooms: list[str]) -> dict[Any, Any]:
    """Return which events the server sends; no rooms are all rooms."""
    nothing: dict[str, list[str]] = {"types": []}
    lazy = {"lazy_load_members": True}
    room: dict[str, Any] = {
        "timeline": {"limit": 50, "types": TYPES, **lazy},
        "state": {"types": ["m.room.member"], "include_redundant_members": True, **lazy},
        "ephemeral": nothing,
        "account_data": nothing,
    }
    if rooms:
        room["rooms"] = rooms
    return {"room": room, "presence": nothing, "account_data": nothing}


async def _joined(client: AsyncClient) -> set[str]:
    return set((await ask("list the rooms", JoinedRoomsResponse, client.joined_rooms())).rooms)


async def _room_id(client: AsyncClient, name: str) -> str:
    if not name.startswith("#"):
        return name
    request = client.room_resolve_alias(name)
    room_id: str = (await ask(f"find {name}", RoomResolveAliasResponse, request)).room_id
    return room_id


async def _state(client: AsyncClient, room_id: str, kind: str) -> Event | None:
    """Return the content of a part of a room's state; none if the room has none."""
    request = client.room_get_state_event(room_id, kind)
    try:
        found: Any = await ask("read the room", RoomGetStateEventResponse, request)
        return table(found.content)
    except MatrixRefusal as error:
        if error.code == "M_NOT_FOUND":
            return None
        raise


async def _is_encrypted(client: AsyncClient, room_id: str) -> bool:
    return await _state(client, room_id, "m.room.encryption") is not None


def _encrypted(name: str) -> ConfigError:
    hint = (
        "Use a room without end-to-end encryption; it cannot be turned off in a room that has it."
    )
    return ConfigError(f"{name} is encrypted, and encrypted rooms cannot be read", hint)


def _config_error(error: MatrixRefusal) -> ConfigError:
    hint = "`steersman gateway check matrix` shows what the server allows."
    return ConfigError(error.message, hint)
