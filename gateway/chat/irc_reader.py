"""Reads lines of IRC as what people say: who said it, in which room, and whether that is new."""

from __future__ import annotations

import itertools
import time

from irctokens.line import Line

from .irc_connection import IrcConnection, washed
from .irc_inbox import WAITING
from .irc_line import said_text
from .irc_room import IrcHeard, IrcRooms
from .platform import Said
from .platform_parts import Recent

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

    def heard(self, connection: IrcConnection, line: Line) -> IrcHeard | None:
        """Return what a line says, nothing if it is not for us or was heard before."""
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
        return IrcHeard(said, time.time(), mark)

    def forget(self, heard: IrcHeard) -> None:
        """Read a message again when it comes again."""
        if isinstance(heard.item, Said):
            self._known.forget(heard.item.id)

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
