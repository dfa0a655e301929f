"""The rooms of a Telegram gateway, and its updates as what people do there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace
from telegram import (
    Animation,
    Audio,
    CallbackQuery,
    Chat,
    Document,
    Message,
    MessageReactionUpdated,
    PhotoSize,
    ReactionType,
    ReactionTypeEmoji,
    Sticker,
    Update,
    User,
    Video,
    VideoNote,
    Voice,
)

from ...gateway.chat.platform import Chosen, Inbound, Memory, Said, SentFile
from ...gateway.chat.platform_parts import Recent
from .client import TelegramClient
from .text import one_line

# The rooms ----------------------------------------------------------------------------------------


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


# What people do in them ---------------------------------------------------------------------------


REMEMBERED = 2_000
"""How many texts and names are remembered."""


class TelegramReader:
    """Reads updates; `names` are those of people, by their ids."""

    def __init__(self, client: TelegramClient, chats: TelegramChats) -> None:
        self.own_name = ""
        self.names = Recent[str](REMEMBERED)
        self._client = client
        self._chats = chats
        self._forms = Recent[str](REMEMBERED)  # of messages, to tell an edit from other changes

    async def read(self, update: Update | None) -> list[Inbound]:
        """Return what a person did, if they did it in one of the rooms."""
        if update is None:
            return []
        if update.message_reaction:
            return self._reaction(update.update_id, update.message_reaction)
        if update.callback_query:
            return self._press(update.callback_query)
        is_edit = update.edited_message or update.edited_channel_post
        message = is_edit or update.message or update.channel_post
        if message is None or (room := self._chats.room(message.chat.id)) is None:
            return []
        if message.migrate_to_chat_id:
            await self._chats.move(room, message.migrate_to_chat_id)
            return []
        said = await self._said(room, message)
        if said is None:
            return []
        form = repr((said.text, said.files))  # what people see of it
        is_same = self._forms.get(said.id) == form
        self._forms.put(said.id, form)
        if not is_edit:
            return [said]
        if is_same:  # a change of something else, such as a preview, is reported alike
            return []
        # Several changes of one message have several ids.
        return [replace(said, id=f"{said.id} {update.update_id}", replaces=said.id)]

    async def _said(self, room: str, message: Message) -> Said | None:
        """Return what a person said; none for a bot, and for what has neither text nor file."""
        sender, name = sender_of(message.sender_chat or message.from_user or message.chat)
        text = _without_own_name(message.text or message.caption or "", self.own_name)
        files = await self._attached(message) if sender else ()
        if not sender or not (text or files):
            return None
        self.names.put(sender, name)
        thread = message.message_thread_id if message.is_topic_message else None
        answered = message.reply_to_message
        # In a topic, what answers nothing answers the message that opened it.
        is_answer = answered and not answered.forum_topic_created and answered.message_id != thread
        return Said(
            id=f"{message.chat.id}/{message.message_id}",
            room=room,
            sender=sender,
            name=name,
            text=text,
            to=f"{answered.chat.id}/{answered.message_id}" if answered and is_answer else "",
            thread=str(thread or ""),
            is_private=message.chat.type == Chat.PRIVATE,
            files=files,
        )

    async def _attached(self, message: Message) -> tuple[SentFile, ...]:
        """Return the file of a message, a document with its text."""
        found: Any = message.effective_attachment
        if isinstance(found, Document):
            size = found.file_size or 0
            name = one_line(found.file_name or "document", 200)
            text = await self._client.text_of(found.file_id, size)
            return (SentFile(name=name, size=size, text=text),)
        if isinstance(found, tuple | list):  # the sizes of a photo, the largest last
            photos = [photo for photo in cast(list[Any], found) if isinstance(photo, PhotoSize)]
            return tuple(SentFile(name="photo", size=photo.file_size or 0) for photo in photos[-1:])
        if isinstance(found, Audio | Animation | Video | Voice | VideoNote | Sticker):
            given = getattr(found, "file_name", None) or type(found).__name__.lower()
            return (SentFile(name=one_line(given, 200), size=found.file_size or 0),)
        return ()

    def _press(self, query: CallbackQuery) -> list[Inbound]:
        """Return which button was pressed: one that the message has now, whatever the client claims."""
        message = query.message
        room = self._chats.room(message.chat.id) if message else None
        if room is None or query.from_user.is_bot or not isinstance(message, Message):
            return []
        rows = message.reply_markup.inline_keyboard if message.reply_markup else ()
        buttons = {button.callback_data: button.text for row in rows for button in row}
        sender, name = sender_of(query.from_user)
        self.names.put(sender, name)
        if not query.data or query.data not in buttons:
            return []
        return [
            Chosen(
                id=f"press {query.id}",
                room=room,
                sender=sender,
                name=name,
                message=f"{message.chat.id}/{message.message_id}",
                choice=buttons[query.data],
            )
        ]

    def _reaction(self, update_id: int, change: MessageReactionUpdated) -> list[Inbound]:
        """Return the emoji that were added to a message."""
        room = self._chats.room(change.chat.id)
        actor = change.actor_chat or change.user
        if room is None or actor is None:
            return []
        sender, name = sender_of(actor)
        before, after = _emoji(change.old_reaction), _emoji(change.new_reaction)
        return [
            Chosen(
                id=f"reaction {update_id} {index}",
                room=room,
                sender=sender,
                name=name,
                message=f"{change.chat.id}/{change.message_id}",
                choice=emoji,
            )
            for index, emoji in enumerate(after)
            if emoji not in before and sender
        ]


def _emoji(reactions: Iterable[ReactionType]) -> list[str]:
    """Return the emoji of reactions; a platform's own pictures have none."""
    return [found.emoji for found in reactions if isinstance(found, ReactionTypeEmoji)]


def sender_of(actor: User | Chat) -> tuple[str, str]:
    """Return who did something: a person's number, or `chat:ID`; empty for a bot."""
    if isinstance(actor, User):
        return ("", "") if actor.is_bot else (str(actor.id), one_line(actor.full_name, 128))
    return f"chat:{actor.id}", one_line(title_of(actor), 128)


def title_of(chat: Chat) -> str:
    """Return what people see as the name of a chat."""
    return chat.title or chat.full_name or chat.username or str(chat.id)


def _without_own_name(text: str, name: str) -> str:
    """Return a command without the name of this bot, which clients add in groups: `/stop@bot`."""
    own = re.match(rf"/[A-Za-z_]+(@{re.escape(name)})(?!\w)", text, re.IGNORECASE)
    return text[: own.start(1)] + text[own.end(1) :] if own and name else text
