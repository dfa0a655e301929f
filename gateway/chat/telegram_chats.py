"""Which chat of Telegram a room is: a group that becomes a supergroup has another id from then on."""

from __future__ import annotations

from .platform import Memory


class TelegramChats:
    """The chats of some rooms; `rooms` are ids as text, or public names like `@name`."""

    def __init__(self, rooms: tuple[str, ...]) -> None:
        self.rooms = rooms
        self._chats = {int(room): room for room in rooms if not room.startswith("@")}
        self._ids = {room: chat for chat, room in self._chats.items()}
        self._memory: Memory | None = None

    def recall(self, memory: Memory) -> None:
        """Take over where the rooms are now."""
        self._memory = memory
        for room in self.rooms:
            if moved := memory.get(f"moved {room}"):
                self.place(room, int(moved))

    def room(self, chat: int) -> str | None:
        """Return the room that a chat is; none if it is none of ours."""
        return self._chats.get(chat)

    def chat(self, room: str) -> int | str:
        """Return the id of a room's chat, or its public name as long as that is not known."""
        return self._ids.get(room, room)

    def is_private(self, room: str) -> bool:
        """Whether a room is a chat with one person."""
        return self._ids.get(room, -1) > 0

    def place(self, room: str, chat: int) -> None:
        """Note which chat a room is."""
        self._ids[room] = chat
        self._chats[chat] = room

    async def move(self, room: str, chat: int) -> None:
        """Follow a group that became a supergroup, which has another id."""
        self.place(room, chat)
        if self._memory is not None:
            await self._memory.put(f"moved {room}", str(chat))
