"""Matrix as a chat platform.

What was heard is kept as the server's own place in its stream (`next_batch`), after the events up to it
were taken; so nothing is lost while this program or the server is down. Rooms with end-to-end encryption
cannot be read: at the start that is an error, and a room that is encrypted later gets a notice.
Source: https://spec.matrix.org/latest/client-server-api/
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, cast
from urllib.parse import quote, urlsplit

from nio import (  # pyright: ignore[reportMissingTypeStubs]
    Api,
    AsyncClient,
    InviteMemberEvent,
    JoinedMembersResponse,
    JoinedRoomsResponse,
    JoinResponse,
    MessageDirection,
    RoomGetEventResponse,
    RoomGetStateEventResponse,
    RoomLeaveResponse,
    RoomMessagesResponse,
    RoomResolveAliasResponse,
    RoomSendResponse,
    RoomTypingResponse,
    SyncResponse,
)
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from ...machines.errors import ConfigError, SteersmanError
from ...machines.value import Value
from .matrix_connection import REQUEST, MatrixRefusal, ask, connect, fetch, log_in, log_out
from .matrix_content import LARGEST_TEXT, bare, change_content, message_content, reactions
from .matrix_events import (
    CHOICES,
    LARGEST_FILE,
    Event,
    MatrixFile,
    is_entry,
    one_line,
    plain,
    read_message,
    table,
    word,
)
from .platform import (
    Chosen,
    Gap,
    Inbound,
    Limits,
    Memory,
    NotSent,
    Outgoing,
    Removed,
    Said,
    SentFile,
)

_POLL = 30_000  # milliseconds that the server may wait for something new
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds between two attempts to connect
_PAGE, _MOST_PAGES = 100, 50  # of what came while nobody listened; beyond that is a gap
_TYPING = 30_000  # milliseconds
_DOWNLOAD = 15.0  # seconds
_KNOWN = 1000  # events whose authors are remembered
_MOST_DIRECT = 100  # rooms
_ENCRYPTED = (
    "This room is encrypted, and I cannot read encrypted rooms. Please use one without encryption."
)
_TYPES = [
    "m.room.message",
    "m.reaction",
    "m.room.redaction",
    "m.room.member",
    "m.room.encryption",
]


class MatrixSettings(BaseModel):
    """The table `[gateways.matrix]`, without what all platforms have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str
    account: str
    token_env: str = ""
    password_env: str = ""
    direct: bool = False

    @field_validator("server")
    @classmethod
    def _is_address(cls, server: str) -> str:
        parts = urlsplit(server)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ValueError("not an address such as `https://matrix.example.org`")
        if parts.username is not None:
            raise ValueError(
                "an address has no name or password in it; use `account` and `token_env`"
            )
        if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("the token would be sent unencrypted; use `https://`")
        return server

    @field_validator("account")
    @classmethod
    def _is_account(cls, account: str) -> str:
        if not re.fullmatch(r"@[^:\s]+:[^\s]+", account):
            raise ValueError("not a user id such as `@steers:example.org`")
        return account

    @model_validator(mode="after")
    def _has_one_secret(self) -> MatrixSettings:
        if bool(self.token_env) == bool(self.password_env):
            raise ValueError("one of `token_env` and `password_env` is needed, and not both")
        return self


class _Author(Value):
    """Who wrote an event, in which thread it stands, its choices, and whether it is itself a change."""

    sender: str
    thread: str
    choices: dict[str, str]
    is_change: bool


class _Batch(Value):
    """What was heard, and the word to remember once it was taken."""

    inbound: list[Inbound]
    place: str


class Matrix:
    """An account on a Matrix server, in the rooms that are named, for one asyncio loop."""

    limits = Limits(
        bytes=LARGEST_TEXT,
        interval=1.0,
        edit_interval=3.0,
        can_edit=True,
        has_choices=True,
        is_idempotent=True,
    )

    def __init__(self, settings: MatrixSettings, rooms: tuple[str, ...]) -> None:
        for name in rooms:
            if not re.fullmatch(r"#[^\s:]+:\S+|!\S+", name):
                hint = "Use `#name:example.org`, or the room's id, `!…`."
                raise ConfigError(f"`{one_line(name)}` is no alias or id of a Matrix room", hint)
        self._settings = settings
        self._rooms = rooms
        self._token = _secret(settings.token_env)
        self._password = _secret(settings.password_env)
        self._client: AsyncClient | None = None
        self._place = f"place {settings.account}"  # in the memory
        self._has_entered = False  # every room, once
        self._ids: dict[str, str] = {}  # name -> room id
        self._names: dict[str, str] = {}  # room id -> name
        self._direct: list[str] = []  # room ids, as remembered
        self._authors: OrderedDict[str, _Author | None] = OrderedDict()  # event id ->
        self._tasks: set[asyncio.Task[None]] = set()
        self._connected = asyncio.Event()
        self._closing = asyncio.Event()

    # Receive ----------------------------------------------------------------------------------------

    @property
    def own_name(self) -> str:
        """The account without its server."""
        return self._settings.account[1:].partition(":")[0]

    def sender_of(self, name: str) -> str:
        """Return a user's id, which is the sender."""
        return name.strip()

    async def inbound(self, memory: Memory) -> AsyncIterator[Inbound]:
        """Yield what people do in the rooms, from the place on that `memory` has."""
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            try:
                batch = await self._listen(memory)
                pause = _FIRST_PAUSE
            except (OSError, NotSent, MatrixRefusal) as error:
                if self._closing.is_set():
                    return
                if isinstance(error, MatrixRefusal) and not error.is_logged_out:
                    raise _config_error(error) from error
                self._connected.clear()
                wait = max(pause, error.seconds if isinstance(error, NotSent) else 0.0)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), wait * random.uniform(0.8, 1.2))
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            for item in batch.inbound:
                yield item
            await memory.put(self._place, batch.place)

    async def _listen(self, memory: Memory) -> _Batch:
        """Connect if there is no connection, and wait for what is new."""
        if self._client is None:
            self._client = connect(self._settings.server, self._settings.account)
        if not self._connected.is_set():
            await self._enter(self._client, memory)
            self._connected.set()
        since, _, heard = memory.get(self._place).partition(" ")
        filtering = _filter([] if self._settings.direct else list(self._names))
        request = self._client.sync(_POLL, filtering, since=since or None)
        news = await ask("read the rooms", SyncResponse, request)
        for room_id in news.rooms.leave:
            await self._forget_direct(room_id, memory)
        for room_id, invitation in news.rooms.invite.items():
            await self._take_invitation(room_id, cast("Any", invitation).invite_state, memory)
        inbound: list[Inbound] = []
        if since:  # what was said before the very first time is not for us
            for room_id, room in news.rooms.join.items():
                if self._name(room_id):
                    timeline = cast("Any", room.timeline)
                    inbound += await self._read_room(room_id, timeline, since, float(heard or 0))
        return _Batch(inbound=inbound, place=f"{news.next_batch} {time.time():.3f}")

    async def _enter(self, client: AsyncClient, memory: Memory) -> None:
        """Log in, and join the rooms; raises `ConfigError` for what no waiting repairs."""
        device = memory.get("device")
        if self._password and not device:
            device = f"STEERSMAN{uuid.uuid4().hex[:10].upper()}"
            await memory.put("device", device)
        await self._log_in(client, device)
        joined = set(
            (await ask("list the rooms", JoinedRoomsResponse, client.joined_rooms())).rooms
        )
        self._direct = [room for room in _words(memory.get("direct")) if room in joined]
        for name in self._rooms:
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
            if self._names.get(room_id, name) != name:
                raise ConfigError(f"{name} and {self._names[room_id]} are the same room")
            self._ids[name], self._names[room_id] = room_id, name
        self._has_entered = True

    async def _log_in(self, client: AsyncClient, device: str) -> None:
        try:
            login = log_in(client, token=self._token, password=self._password, device=device)
            account = await login
        except MatrixRefusal as error:
            if self._password and error.is_logged_out:
                client.access_token = ""  # the next attempt logs in with the password
                raise
            where = self._settings.token_env or self._settings.password_env
            hint = f"See `{where}`, and `account` and `server` in [gateways.matrix]."
            raise ConfigError(error.message, hint) from error
        if account != self._settings.account:
            hint = "Use a token of the account, or correct `account` in [gateways.matrix]."
            raise ConfigError(f"the access token is that of {one_line(account)}", hint)

    async def _read_room(
        self, room_id: str, timeline: Any, since: str, heard: float
    ) -> list[Inbound]:
        """Return what people did in a room, oldest first."""
        events: list[Event] = [event.source for event in timeline.events]
        inbound: list[Inbound] = []
        if timeline.limited and timeline.prev_batch:
            missed, is_whole = await self._missed(room_id, timeline.prev_batch, since)
            seen = {event.get("event_id") for event in events}
            events = [event for event in missed if event.get("event_id") not in seen] + events
            if not is_whole:
                inbound.append(Gap(room=self._name(room_id), since=heard))
        own = self._settings.account
        entered = max((at for at, event in enumerate(events) if is_entry(event, own)), default=-1)
        is_private = await self._is_private(room_id) if events else False
        for event in events[entered + 1 :]:
            item = await self._read_event(room_id, event, is_private=is_private)
            if item is not None:
                inbound.append(item)
        return inbound

    async def _missed(self, room_id: str, start: str, since: str) -> tuple[list[Event], bool]:
        """Return what came before `start`, back to `since`, oldest first; and whether that is all."""
        client = self._live()
        missed: list[Event] = []
        for _page in range(_MOST_PAGES):
            request = client.room_messages(
                room_id, start, since, MessageDirection.back, _PAGE, {"types": _TYPES}
            )
            try:
                page = await ask("read what was missed", RoomMessagesResponse, request)
            except MatrixRefusal as error:
                if error.is_logged_out:
                    raise
                return missed[::-1], False  # out of the room by now
            missed += [cast("Any", event).source for event in page.chunk]
            if not page.end or page.end == start:
                return missed[::-1], True
            start = page.end
        return missed[::-1], False

    async def _read_event(self, room_id: str, event: Event, *, is_private: bool) -> Inbound | None:
        """Return what a person did with an event, if it is for us."""
        sender, event_id = word(event.get("sender")), word(event.get("event_id"))
        content = table(event.get("content"))
        if not sender or not event_id or sender == self._settings.account:
            return None
        match event.get("type"):
            case "m.room.message":
                return await self._read_message(room_id, event_id, sender, content, is_private)
            case "m.room.redaction":
                target = word(event.get("redacts")) or word(content.get("redacts"))
                removed = Removed(room=self._name(room_id), sender=sender, message=target)
                return removed if target else None
            case "m.reaction":
                return await self._read_reaction(room_id, event_id, sender, content)
            case "m.room.encryption":
                notice = _notice(_ENCRYPTED)
                self._begin(self._insist(room_id, "m.room.message", notice, f"encrypted {room_id}"))
                return None
            case _:
                return None

    async def _read_message(
        self, room_id: str, event_id: str, sender: str, content: Event, is_private: bool
    ) -> Said | None:
        message = read_message(content)
        if message is None:
            return None
        thread = message.thread
        if message.replaces:
            # Servers do not check who changes a message.
            author = await self._author(room_id, message.replaces)
            if author is None or author.sender != sender or author.is_change:
                return None
            thread = author.thread
        files = (await self._file(message.attachment),) if message.attachment else ()
        own, text = self._shown_name(room_id, self._settings.account), message.text
        is_addressed = self._settings.account in message.mentions
        if is_addressed and own and text.startswith(f"{own}:"):  # clients write the shown name
            text = f"{self.own_name}{text[len(own) :]}"
        return Said(
            id=event_id,
            room=self._name(room_id),
            sender=sender,
            text=text,
            name=self._shown_name(room_id, sender),
            to=message.to,
            thread=thread,
            replaces=message.replaces,
            is_private=is_private,
            is_addressed=is_addressed,
            files=files,
        )

    async def _read_reaction(
        self, room_id: str, event_id: str, sender: str, content: Event
    ) -> Chosen | None:
        """Return what is chosen with a reaction, if it is one to a message of ours."""
        relation = table(content.get("m.relates_to"))
        target, key = word(relation.get("event_id")), word(relation.get("key"))
        if relation.get("rel_type") != "m.annotation" or not target or not key:
            return None
        author = await self._author(room_id, target)
        if author is None or author.sender != self._settings.account:
            return None
        choices = {bare(emoji): choice for emoji, choice in author.choices.items()}
        return Chosen(
            id=event_id,
            room=self._name(room_id),
            sender=sender,
            message=target,
            choice=choices.get(bare(key)) or one_line(key, 50),
            name=self._shown_name(room_id, sender),
        )

    async def _author(self, room_id: str, event_id: str) -> _Author | None:
        """Return who wrote an event of the room; none if there is no such event."""
        key = f"{room_id} {event_id}"
        if key not in self._authors:
            request = self._live().room_get_event(room_id, event_id)
            try:
                found = await ask("read a message", RoomGetEventResponse, request)
            except MatrixRefusal as error:
                if error.is_logged_out:
                    raise
                self._authors[key] = None
            else:
                self._authors[key] = _read_author(cast("Any", found.event).source)
            if len(self._authors) > _KNOWN:
                self._authors.popitem(last=False)
        self._authors.move_to_end(key)
        return self._authors[key]

    async def _file(self, attachment: MatrixFile) -> SentFile:
        """Return a file, with its content if it is a text and short; its author may lie about both."""
        text = None
        if attachment.is_text and attachment.media and attachment.size <= LARGEST_FILE:
            with suppress(OSError, UnicodeDecodeError):
                content = (await self._download(attachment)).decode("utf-8")
                text = None if "\0" in content else content
        return SentFile(name=attachment.name, size=attachment.size, text=text)

    async def _download(self, attachment: MatrixFile) -> bytes:
        _, address = Api.download(attachment.server, attachment.media)
        path = address.partition("?")[0]  # which has a token that servers refuse beside the header
        return await fetch(self._live(), path, LARGEST_FILE, _DOWNLOAD)

    def _shown_name(self, room_id: str, sender: str) -> str:
        room = self._live().rooms.get(room_id)
        user = room.users.get(sender) if room else None
        return one_line(word(user.display_name if user else None), 100)

    def _name(self, room_id: str) -> str:
        """Return the name that people know a room by, empty if it is none of ours."""
        return self._names.get(room_id) or (room_id if room_id in self._direct else "")

    # Private rooms ----------------------------------------------------------------------------------

    async def _take_invitation(self, room_id: str, state: list[Any], memory: Memory) -> None:
        """Join a room that is configured, or a private one if the settings allow that."""
        client = self._live()
        own = self._settings.account
        invitations = [e for e in state if isinstance(e, InviteMemberEvent) and e.state_key == own]
        is_direct = any(cast("Any", e).content.get("is_direct") is True for e in invitations)
        if room_id not in self._ids.values():
            if not (self._settings.direct and is_direct and len(self._direct) < _MOST_DIRECT):
                return
            if room_id not in self._direct:
                self._direct.append(room_id)
                await memory.put("direct", json.dumps(self._direct))
        self._begin(self._join(client, room_id, memory))  # another server may be slow to answer

    async def _join(self, client: AsyncClient, room_id: str, memory: Memory) -> None:
        try:
            await ask("join a room", JoinResponse, client.join(room_id))
            if room_id in self._direct and await _is_encrypted(client, room_id):
                await self._put(
                    room_id, "m.room.message", _notice(_ENCRYPTED), f"encrypted {room_id}"
                )
                await ask("leave a room", RoomLeaveResponse, client.room_leave(room_id))
        except (OSError, NotSent, MatrixRefusal):
            await self._forget_direct(room_id, memory)

    async def _forget_direct(self, room_id: str, memory: Memory) -> None:
        if room_id in self._direct:
            self._direct.remove(room_id)
            await memory.put("direct", json.dumps(self._direct))

    async def _is_private(self, room_id: str) -> bool:
        if room_id not in self._direct:
            return False
        request = self._live().joined_members(room_id)
        try:
            found = await ask("list the members", JoinedMembersResponse, request)
        except MatrixRefusal:
            return False
        return len(found.members) <= 2

    # Send -------------------------------------------------------------------------------------------

    async def send(self, message: Outgoing) -> str:
        """Send a message, and return its id; the server knows it again by its key."""
        room_id = await self._open_room(message.room)
        event_id = await self._put(room_id, "m.room.message", message_content(message), message.key)
        if message.choices:
            self._begin(self._add_buttons(room_id, event_id, message))
        return event_id

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Change a message; doing so twice is harmless."""
        room_id = await self._open_room(room)
        await self._put(room_id, "m.room.message", change_content(message, sent), uuid.uuid4().hex)

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Show that the agent is at work."""
        room_id = self._ids.get(room) or room
        if self._client and self._connected.is_set() and self._name(room_id):
            with suppress(OSError, NotSent, MatrixRefusal):
                request = self._client.room_typing(room_id, is_typing, _TYPING)
                await ask("show typing", RoomTypingResponse, request)

    async def _open_room(self, room: str) -> str:
        """Wait for a connection, and return the id of a room."""
        await self._connected.wait()
        if self._closing.is_set():
            raise ConnectionError("the connection to Matrix was closed")
        room_id = self._ids.get(room) or (room if room in self._direct else "")
        if not room_id:
            raise NotSent(f"the account is not in {one_line(room)}")
        return room_id

    async def _put(self, room_id: str, kind: str, content: dict[str, Any], key: str) -> str:
        """Send an event, and return its id; with the same key it is there once."""
        transaction = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:40]
        request = self._live().room_send(room_id, kind, content, f"steersman-{transaction}")
        try:
            event_id: str = (await ask("send a message", RoomSendResponse, request)).event_id
        except MatrixRefusal as error:
            raise NotSent(error.message, seconds=REQUEST if error.is_logged_out else 0.0) from error
        return event_id

    async def _add_buttons(self, room_id: str, event_id: str, message: Outgoing) -> None:
        """React to a question with each of its choices, so that people only have to tap one."""
        for emoji in reactions(message.choices):
            relation = {"rel_type": "m.annotation", "event_id": event_id, "key": emoji}
            content = {"m.relates_to": relation}
            await self._insist(room_id, "m.reaction", content, f"{message.key} {emoji}")

    async def _insist(self, room_id: str, kind: str, content: dict[str, Any], key: str) -> None:
        """Send an event as often as it takes, unless it is refused."""
        wait = _FIRST_PAUSE
        while not self._closing.is_set():
            await self._connected.wait()
            try:
                await self._put(room_id, kind, content, key)
                return
            except NotSent as error:
                if not error.seconds:
                    return
                await asyncio.sleep(error.seconds)
            except OSError:
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_PAUSE)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something meanwhile; it ends with the connection."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _live(self) -> AsyncClient:
        if self._client is None:
            raise ConnectionError("there is no connection to Matrix")
        return self._client

    # Check and close ----------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        """Log in, look at each room, and log out again if the login was with a password."""
        client = connect(self._settings.server, self._settings.account)
        try:
            await self._log_in(client, "")
            request = ask("list the rooms", JoinedRoomsResponse, client.joined_rooms())
            joined = set((await request).rooms)
            lines = [f"server: {self._settings.server}", f"account: {self._settings.account}"]
            try:
                lines += [await self._check_room(client, name, joined) for name in self._rooms]
            finally:
                if self._password:
                    with suppress(OSError, NotSent, MatrixRefusal):
                        await log_out(client)
        except OSError as error:
            hint = "See `server` in [gateways.matrix]."
            raise SteersmanError(
                f"{self._settings.server}: {one_line(str(error))}", hint
            ) from error
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
        own: object = table(levels.get("users")).get(
            self._settings.account, levels.get("users_default", 0)
        )
        needed: object = table(levels.get("events")).get(
            "m.room.message", levels.get("events_default", 0)
        )
        if not (isinstance(own, int) and isinstance(needed, int)) or own >= needed:
            return True
        # Who made a room may do everything in it, without a level, since version 12 of rooms.
        path = f"/_matrix/client/v3/rooms/{quote(room_id)}/state/m.room.create?format=event"
        made = await fetch(client, path, 65_536, REQUEST)
        return table(json.loads(made)).get("sender") == self._settings.account

    async def aclose(self) -> None:
        """Disconnect."""
        self._closing.set()
        self._connected.set()  # whoever waits for a connection learns that there will be none
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()


def _secret(variable: str) -> str:
    """Return what an environment variable has; none is needed for no variable."""
    secret = os.environ.get(variable, "").strip() if variable else ""
    if variable and not secret:
        raise ConfigError(f"the environment variable `{variable}` is not set", "It has the secret.")
    return secret


def _filter(rooms: list[str]) -> dict[Any, Any]:
    """Return which events the server sends; no rooms are all rooms."""
    nothing: dict[str, list[str]] = {"types": []}
    members = {
        "types": ["m.room.member"],
        "lazy_load_members": True,
        "include_redundant_members": True,
    }
    room: dict[str, Any] = {
        "timeline": {"limit": 50, "types": _TYPES, "lazy_load_members": True},
        "state": members,
        "ephemeral": nothing,
        "account_data": nothing,
    }
    if rooms:
        room["rooms"] = rooms
    return {"room": room, "presence": nothing, "account_data": nothing}


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


def _notice(text: str) -> dict[str, Any]:
    return message_content(Outgoing(key="", room="", text=text))


def _read_author(event: Event) -> _Author:
    content = table(event.get("content"))
    relation = table(content.get("m.relates_to"))
    kind, target = relation.get("rel_type"), word(relation.get("event_id"))
    choices = table(content.get(CHOICES))
    return _Author(
        sender=word(event.get("sender")),
        thread=target if kind == "m.thread" else "",
        choices={emoji: plain(word(choice)) for emoji, choice in choices.items()},
        is_change=kind == "m.replace",
    )


def _words(text: str) -> list[str]:
    """Return the list of words that was kept as JSON."""
    return [str(each) for each in cast("list[object]", json.loads(text))] if text else []


def _encrypted(name: str) -> ConfigError:
    hint = (
        "Use a room without end-to-end encryption; it cannot be turned off in a room that has it."
    )
    return ConfigError(f"{name} is encrypted, and encrypted rooms cannot be read", hint)


def _config_error(error: MatrixRefusal) -> ConfigError:
    return ConfigError(error.message, "`steersman gateways check` shows what the server allows.")
