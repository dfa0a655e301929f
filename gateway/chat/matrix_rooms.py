"""The rooms of a Matrix gateway: those that are configured, and private ones to which it was invited."""

from __future__ import annotations

import json
import re
from typing import cast

from ...machines.errors import ConfigError
from .matrix_events import one_line
from .platform import Memory, NotSent

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
        known = [str(each) for each in cast("list[object]", json.loads(word))] if word else []
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
