"""Reads lines of IRC as what people say: who said it, in which room, and whether that is new."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from contextlib import suppress
from datetime import UTC, datetime

from irctokens.line import Line

from ...gateway.chat.platform import Memory, Said
from ...gateway.chat.platform_parts import Recent
from .connection import IrcConnection, washed
from .room import IrcReceived, IrcRooms

# Messages on their way to the reader --------------------------------------------------------------


SEEN_SECONDS = 30.0  # how often the time of the last line is remembered, at most
WAITING = 1000  # messages that wait for the reader; then the server waits


class IrcInbox:
    """Messages on their way to the reader.

    `received_at` is when the last line came, in seconds since 1970; `marks` the last message of each room
    that the server can find again, as `TIME ID`.
    """

    def __init__(self, rooms: IrcRooms) -> None:
        self.received_at = 0.0
        self.marks: dict[str, str] = {}
        self._rooms = rooms
        self._items: asyncio.Queue[IrcReceived | None] = asyncio.Queue(WAITING)
        self._in_hand: IrcReceived | None = None
        self._memory: Memory | None = None
        self._seen_at = 0.0

    def recall(self, memory: Memory) -> None:
        """Take over what was remembered when this ended."""
        self._memory = memory
        word = memory.get("seen")
        since = float(word) if re.fullmatch(r"\d+(\.\d+)?", word) else None
        for room in self._rooms:
            room.since = since
            self.marks[room.name] = memory.get(f"mark {room.name}")

    def note_line(self) -> None:
        """Note that a line came."""
        self.received_at = time.time()

    async def put(self, received: IrcReceived) -> None:
        """Hand something on to the reader, as soon as there is room."""
        if received.mark and isinstance(received.item, Said):
            self.marks[received.item.room] = received.mark
        await self._items.put(received)

    async def take(self) -> IrcReceived | None:
        """Return what the reader gets next, none at the end. Raises `TimeoutError` after a while."""
        async with asyncio.timeout(SEEN_SECONDS):
            received = await self._items.get()
        self._in_hand = received
        return received

    async def taken(self) -> None:
        """Remember what has to be remembered of that, which is on disk now."""
        received, self._in_hand = self._in_hand, None
        if received is None or self._memory is None:
            return
        if received.mark and isinstance(received.item, Said):
            await self._memory.put(f"mark {received.item.room}", received.mark)
        if self.received_at - self._seen_at > SEEN_SECONDS:
            await self.remember_seen()

    async def remember_seen(self) -> None:
        """Remember when the last line came, but nothing after what waits for the reader."""
        if self._rooms.is_behind or not self._items.empty():
            return
        at = self.received_at
        if self._in_hand is not None:
            at = min(at, self._in_hand.at)
        if self._memory is not None and at > self._seen_at:
            self._seen_at = at
            await self._memory.put("seen", f"{at:.3f}")

    def end(self) -> None:
        """Wake the reader, if it waits: nothing comes any more."""
        with suppress(asyncio.QueueFull):  # then it does not wait
            self._items.put_nowait(None)

    def close(self) -> None:
        """Drop what waits, and wake the reader."""
        while not self._items.empty():
            self._items.get_nowait()
        self.end()


# What a line says ---------------------------------------------------------------------------------


_THROTTLED = frozenset(("263", "439", "707"))
_OTHER_REFUSALS = frozenset(("707", "716", "717", "263", "926"))
_SECONDS = re.compile(r"(?<!\d)(\d{1,9}) ?s", re.IGNORECASE)


def said_text(line: Line) -> str:
    """Return what a PRIVMSG says; empty for CTCP other than ACTION, and for what has no sender."""
    if len(line.params) < 2 or not line.source or "!" not in line.source:
        return ""
    text = line.params[-1]
    if not text.startswith("\x01"):
        return washed(text).strip()
    command, _, rest = text.strip("\x01").partition(" ")
    said = washed(rest).strip()
    return (
        f"* {washed(line.hostmask.nickname)} {said}" if command.upper() == "ACTION" and said else ""
    )


def refuses(line: Line) -> bool:
    """Tell whether a line says that something was not done."""
    if line.params[:1] == ["CHATHISTORY"]:
        return False
    is_error = line.command.isdigit() and "400" <= line.command <= "599"
    return is_error or line.command in _OTHER_REFUSALS or line.command == "FAIL"


def seconds(line: Line) -> float:
    """Return when a refused line may be sent again, 0 if never."""
    if line.command not in _THROTTLED and "RATE_LIMIT" not in " ".join(line.params[:2]).upper():
        return 0.0
    found = _SECONDS.search(line.params[-1])
    return float(found[1]) + 1.0 if found else 10.0


def moment(stamp: str) -> datetime:
    """Return the time that a tag says, the earliest one if it says none."""
    try:
        return datetime.fromisoformat(stamp)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def stamp(moment: datetime) -> str:
    """Return a time as a tag says it."""
    return (
        moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"
    )


# The reader ---------------------------------------------------------------------------------------


OWN_ID = "~"  # begins ids that are made here; no server's id begins so


class IrcIds:
    """Ids for messages to which the server gives none; none is given twice, over restarts as well."""

    def __init__(self) -> None:
        self.began = f"{time.time_ns():x}"
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """Return a new one."""
        return f"{OWN_ID}{self.began}.{next(self._numbers)}"


class IrcReader:
    """Reads the lines of one gateway. `nick` is the configured one."""

    def __init__(self, nick: str, rooms: IrcRooms, ids: IrcIds) -> None:
        self._nick = nick
        self._rooms = rooms
        self._ids = ids
        self._known = Recent[None](2 * WAITING)  # ids of messages
        self._nicks = Recent[str](2 * WAITING)  # by sender

    def read(self, connection: IrcConnection, line: Line) -> IrcReceived | None:
        """Return what a line says, nothing if it is not for us or was received before."""
        text = said_text(line)
        nick = washed(line.hostmask.nickname)
        room, is_private = self._room_of(connection, line.params[0], nick)
        tags = line.tags or {}
        id = tags.get("msgid", "")
        if not text or not room or id in self._known:
            return None
        sender = _sender(connection, line)
        if id:
            self._known.put(id, None)
        self._nicks.put(sender, nick)
        said = Said(
            id=id or self._ids.next(),
            room=room,
            sender=sender,
            text=text,
            name=nick,
            to=washed(tags.get("+draft/reply", "") or tags.get("+reply", "")),
            is_private=is_private,
        )
        mark = f"{tags['time']} {id}" if id and "time" in tags and room in self._rooms else ""
        return IrcReceived(said, time.time(), mark)

    def forget(self, received: IrcReceived) -> None:
        """Read a message again when it comes again."""
        if isinstance(received.item, Said):
            self._known.forget(received.item.id)

    def _room_of(self, connection: IrcConnection, target: str, nick: str) -> tuple[str, bool]:
        is_private = connection.fold(target) == connection.fold(connection.nick)
        if not is_private and connection.fold(target) == connection.fold(self._nick):
            is_private = True  # from the history, where we had the other nick
        wanted = nick if is_private else target
        room = self._rooms.find(connection, wanted)
        if room is not None:
            return room.name, is_private
        return (connection.fold(wanted) if is_private else ""), is_private

    def nick_of(self, sender: str) -> str:
        """Return the nick that a sender had last; that of an account may be another word."""
        return self._nicks.get(sender) or washed(sender.lstrip("~"))

    def renamed(self, connection: IrcConnection, old: str, new: str) -> None:
        """Take in that a person has another nick."""
        was = connection.fold(old)
        self._nicks.change(lambda nick: washed(new) if connection.fold(nick) == was else nick)

    def is_own(self, connection: IrcConnection, line: Line, account: str) -> bool:
        """Tell whether we said a line of the history, perhaps with another nick."""
        if account and "account-tag" in connection.caps:
            said_by = (line.tags or {}).get("account", "")
            return connection.fold(said_by) == connection.fold(account)
        own = (connection.nick, self._nick)
        return connection.fold(line.hostmask.nickname) in {connection.fold(nick) for nick in own}


def _sender(connection: IrcConnection, line: Line) -> str:
    nick = connection.fold(line.hostmask.nickname)
    if "account-tag" not in connection.caps:
        return nick
    account = connection.fold((line.tags or {}).get("account", ""))
    return account if account and account[0] not in "~*" else f"~{nick}"
