"""The rooms of an IRC gateway as they are at this moment: joined, asked for, or refused until later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from irctokens.line import Line

from ...gateway.chat.platform import Inbound
from ...machines.errors import ConfigError
from .connection import IrcConnection, washed

LONGEST_REJOIN = 300.0  # seconds between two attempts to join a room
NEVER_JOINED = frozenset(("403", "448", "476", "479"))
NOT_JOINED = frozenset("405 437 470 471 473 474 475 477 480 489 520".split())


@dataclass
class IrcReceived:
    """Something for the reader: when it came, and what of it has to be remembered once it is on disk."""

    item: Inbound
    at: float
    mark: str = ""


@dataclass
class IrcRoom:
    """A room as it is at this moment.

    `since`: from when on nothing was received in it, nothing if that is not so; `held` are messages that
    wait for older ones; `refusal` is why we are not in it, until `retry` on the loop's clock.
    """

    name: str
    is_channel: bool
    is_joined: bool = False
    is_asked: bool = False
    since: float | None = None
    joined_at: float = 0.0
    attempts: int = 0
    refusal: str = ""
    retry: float = 0.0
    held: list[IrcReceived] | None = None

    def join(self, connection: IrcConnection) -> None:
        """Ask the server to let us in."""
        self.is_asked = True
        connection.write("JOIN", self.name)

    def joined(self) -> None:
        """Note that we are in it."""
        self.is_joined, self.is_asked, self.refusal = True, False, ""
        self.joined_at = time.monotonic()

    def left(self, reason: str) -> None:
        """Note that we are not in it any more, and when to try again."""
        if self.joined_at and time.monotonic() - self.joined_at > LONGEST_REJOIN:
            self.attempts = 0
        if self.held is None:
            self.since = self.since or time.time()
        self.is_joined = False
        self.refuse(reason)

    def refuse(self, reason: str) -> None:
        """Note why we are not in it, and try again later."""
        self.is_asked, self.refusal = False, reason
        self.retry = time.monotonic() + min(2.0**self.attempts, LONGEST_REJOIN)
        self.attempts += 1

    def broke(self, received_at: float) -> list[IrcReceived]:
        """Note that the connection broke; return what was held, which the server has still."""
        held = self.held or []
        if self.held is None and self.since is None and (self.is_joined or not self.is_channel):
            self.since = received_at
        self.is_joined, self.is_asked, self.held = False, False, None
        return held

    @property
    def is_due(self) -> bool:
        """Whether to ask again to be let in."""
        is_out = self.is_channel and not self.is_joined and not self.is_asked
        return is_out and time.monotonic() >= self.retry


class IrcRooms:
    """All rooms of a gateway, by their configured names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._rooms = {name: IrcRoom(name, name[:1] in "#&+!") for name in names}

    def __iter__(self) -> Iterator[IrcRoom]:
        return iter(self._rooms.values())

    def __getitem__(self, name: str) -> IrcRoom:
        return self._rooms[name]

    def __contains__(self, name: str) -> bool:
        return name in self._rooms

    def find(self, connection: IrcConnection, name: str) -> IrcRoom | None:
        """Return the room that a server's name means; none if it is none of ours."""
        wanted = connection.fold(name)
        return next((room for room in self if connection.fold(room.name) == wanted), None)

    @property
    def is_settled(self) -> bool:
        """Whether the server has answered each attempt to join."""
        return all(room.is_joined or not room.is_asked for room in self)

    @property
    def is_behind(self) -> bool:
        """Whether something that was said in a room is not received yet."""
        return any(room.since is not None or room.held is not None for room in self)

    def not_joined(self, connection: IrcConnection, line: Line) -> None:
        """Take in that a room was not joined. Raises `ConfigError` for one that never will be."""
        if line.command not in NEVER_JOINED | NOT_JOINED or len(line.params) < 2:
            return
        room = self.find(connection, line.params[1])
        if room is None or not room.is_asked:
            return
        reason = washed(line.params[-1])
        if line.command in NEVER_JOINED:
            raise ConfigError(
                f"the room `{room.name}` cannot be joined: {reason}",
                "Correct its name under `rooms`.",
            )
        room.refuse(reason)
