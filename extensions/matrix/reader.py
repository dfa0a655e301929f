"""The rooms of a Matrix gateway, and its events as what people do there."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, cast

from nio import (  # pyright: ignore[reportMissingTypeStubs]
    Api,
    JoinedMembersResponse,
    MessageDirection,
    RoomGetEventResponse,
    RoomMessagesResponse,
)

from ...gateway.chat.platform import Chosen, Gap, Inbound, Memory, NotSent, Removed, Said, SentFile
from ...gateway.chat.platform_parts import Recent
from ...machines.errors import ConfigError
from ...machines.json_shape import parse_json
from ...machines.value import Value
from ...ports.models.loose_json import table
from .connection import MatrixRefusal, ask, fetch
from .events import (
    CHOICES,
    LARGEST_FILE,
    Event,
    MatrixFile,
    bare,
    is_entry,
    one_line,
    plain,
    read_message,
    word,
)
from .link import MatrixLink

# The rooms ----------------------------------------------------------------------------------------


_MOST_DIRECT = 100  # rooms


class MatrixRooms:
    """Rooms by their configured names (an alias, or the id) and by their ids."""

    def __init__(self, names: tuple[str, ...]) -> None:
        for name in names:
            if not re.fullmatch(r"#[^\s:]+:\S+|!\S+", name):
                hint = "Use `#name:example.org`, or the room's id, `!…`."
                raise ConfigError(f"`{one_line(name)}` is no alias or id of a Matrix room", hint)
        self.names = names
        self.direct: list[str] = []  # room ids, as remembered
        self._ids: dict[str, str] = {}  # name -> room id
        self._names: dict[str, str] = {}  # room id -> name

    def recall(self, memory: Memory, joined: set[str]) -> None:
        """Take over the private rooms that were remembered, if the account is still in them."""
        word = memory.get("direct")
        known = [str(each) for each in cast("list[object]", parse_json(word))] if word else []
        self.direct = [room for room in known if room in joined]

    def place(self, name: str, room_id: str) -> None:
        """Note the id of a configured room. Raises `ConfigError` if another one has it."""
        if self._names.get(room_id, name) != name:
            raise ConfigError(f"{name} and {self._names[room_id]} are the same room")
        self._ids[name], self._names[room_id] = room_id, name

    @property
    def ids(self) -> list[str]:
        """The ids of the configured rooms that are known."""
        return list(self._names)

    def name(self, room_id: str) -> str:
        """Return the name that people know a room by, empty if it is none of ours."""
        return self._names.get(room_id) or (room_id if room_id in self.direct else "")

    def id(self, name: str) -> str:
        """Return the id of a room. Raises `NotSent` if the account is not in it."""
        room_id = self._ids.get(name) or (name if name in self.direct else "")
        if not room_id:
            raise NotSent(f"the account is not in {one_line(name)}")
        return room_id

    async def add_direct(self, room_id: str, memory: Memory) -> bool:
        """Remember a private room; false if there are too many."""
        if room_id not in self.direct:
            if len(self.direct) >= _MOST_DIRECT:
                return False
            self.direct.append(room_id)
            await memory.put("direct", json.dumps(self.direct))
        return True

    async def forget_direct(self, room_id: str, memory: Memory) -> None:
        """Forget a private room."""
        if room_id in self.direct:
            self.direct.remove(room_id)
            await memory.put("direct", json.dumps(self.direct))


# What people do in them ---------------------------------------------------------------------------


TYPES = ["m.room.message", "m.reaction", "m.room.redaction", "m.room.member", "m.room.encryption"]
"""The types of events that are read."""
_PAGE, _MOST_PAGES = 100, 50  # of what came while there was no connection; beyond that is a gap
_DOWNLOAD = 15.0  # seconds
_KNOWN = 1000  # events whose authors are remembered


class MatrixAuthor(Value):
    """Who wrote an event, in which thread it stands, its choices, and whether it is itself a change."""

    sender: str
    thread: str
    choices: dict[str, str]
    is_change: bool


class MatrixReader:
    """Reads the events of one account in its rooms."""

    def __init__(self, link: MatrixLink, rooms: MatrixRooms) -> None:
        self._link = link
        self._rooms = rooms
        self._authors = Recent[MatrixAuthor | None](_KNOWN)  # by event

    async def read_room(
        self, room_id: str, timeline: Any, since: str, received: float
    ) -> list[Inbound]:
        """Return what people did in a room, oldest first."""
        events: list[Event] = [event.source for event in timeline.events]
        inbound: list[Inbound] = []
        if timeline.limited and timeline.prev_batch:
            missed, is_whole = await self._missed(room_id, timeline.prev_batch, since)
            seen = {event.get("event_id") for event in events}
            events = [event for event in missed if event.get("event_id") not in seen] + events
            if not is_whole:
                inbound.append(Gap(room=self._rooms.name(room_id), since=received))
        own = self._link.account
        entered = max((at for at, event in enumerate(events) if is_entry(event, own)), default=-1)
        is_private = await self._is_private(room_id) if events else False
        for event in events[entered + 1 :]:
            item = await self._read_event(room_id, event, is_private=is_private)
            if item is not None:
                inbound.append(item)
        return inbound

    async def _missed(self, room_id: str, start: str, since: str) -> tuple[list[Event], bool]:
        """Return what came before `start`, back to `since`, oldest first; and whether that is all."""
        client = self._link.live()
        missed: list[Event] = []
        for _page in range(_MOST_PAGES):
            request = client.room_messages(
                room_id, start, since, MessageDirection.back, _PAGE, {"types": TYPES}
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
        if not sender or not event_id or sender == self._link.account:
            return None
        match event.get("type"):
            case "m.room.message":
                return await self._read_message(room_id, event_id, sender, content, is_private)
            case "m.room.redaction":
                target = word(event.get("redacts")) or word(content.get("redacts"))
                removed = Removed(room=self._rooms.name(room_id), sender=sender, message=target)
                return removed if target else None
            case "m.reaction":
                return await self._read_reaction(room_id, event_id, sender, content)
            case "m.room.encryption":
                self._link.tasks.start(self._link.refuse_encryption(room_id))
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
        own, text = self._shown_name(room_id, self._link.account), message.text
        is_addressed = self._link.account in message.mentions
        if is_addressed and own and text.startswith(f"{own}:"):  # clients write the shown name
            text = f"{local_name(self._link.account)}{text[len(own) :]}"
        return Said(
            id=event_id,
            room=self._rooms.name(room_id),
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
        if author is None or author.sender != self._link.account:
            return None
        choices = {bare(emoji): choice for emoji, choice in author.choices.items()}
        return Chosen(
            id=event_id,
            room=self._rooms.name(room_id),
            sender=sender,
            message=target,
            choice=choices.get(bare(key)) or one_line(key, 50),
            name=self._shown_name(room_id, sender),
        )

    async def _author(self, room_id: str, event_id: str) -> MatrixAuthor | None:
        """Return who wrote an event of the room; none if there is no such event."""
        key = f"{room_id} {event_id}"
        if key not in self._authors:
            request = self._link.live().room_get_event(room_id, event_id)
            try:
                found = await ask("read a message", RoomGetEventResponse, request)
            except MatrixRefusal as error:
                if error.is_logged_out:
                    raise
                self._authors.put(key, None)
            else:
                self._authors.put(key, _read_author(cast("Any", found.event).source))
        author = self._authors.get(key)
        self._authors.put(key, author)
        return author

    async def _file(self, attachment: MatrixFile) -> SentFile:
        """Return a file, with its content if it is a text and short; its author may lie about both."""
        text = None
        if attachment.is_text and attachment.media and attachment.size <= LARGEST_FILE:
            _, address = Api.download(attachment.server, attachment.media)
            path = address.partition("?")[
                0
            ]  # without a token, which servers refuse beside the header
            with suppress(OSError, UnicodeDecodeError):
                data = await fetch(self._link.live(), path, LARGEST_FILE, _DOWNLOAD)
                content = data.decode("utf-8")
                text = None if "\0" in content else content
        return SentFile(name=attachment.name, size=attachment.size, text=text)

    def _shown_name(self, room_id: str, sender: str) -> str:
        room = self._link.live().rooms.get(room_id)
        user = room.users.get(sender) if room else None
        return one_line(word(user.display_name if user else None), 100)

    async def _is_private(self, room_id: str) -> bool:
        if room_id not in self._rooms.direct:
            return False
        request = self._link.live().joined_members(room_id)
        try:
            found = await ask("list the members", JoinedMembersResponse, request)
        except MatrixRefusal:
            return False
        return len(found.members) <= 2


def local_name(account: str) -> str:
    """Return an account without its server."""
    return account[1:].partition(":")[0]


def _read_author(event: Event) -> MatrixAuthor:
    content = table(event.get("content"))
    relation = table(content.get("m.relates_to"))
    kind, target = relation.get("rel_type"), word(relation.get("event_id"))
    choices = table(content.get(CHOICES))
    return MatrixAuthor(
        sender=word(event.get("sender")),
        thread=target if kind == "m.thread" else "",
        choices={emoji: plain(word(choice)) for emoji, choice in choices.items()},
        is_change=kind == "m.replace",
    )
