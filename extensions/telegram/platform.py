"""Telegram as a chat platform: a bot that reads by long polling.

An update is confirmed by the offset of the next `getUpdates`, so only after it is on disk; the server
keeps what is not confirmed for a day. It does not report to bots what people delete. The Bot API has no
key by which a message that is sent again is recognized: after a broken connection it is unknown whether
the message is there.

`python-telegram-bot` is used for its methods and objects, not for its loop, which confirms too early. The
token is part of each address, so no exception of the library or its HTTP client leaves this module.
Source: https://core.telegram.org/bots/api
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from telegram import (
    Chat,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
    User,
)
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, TelegramError

from ...gateway.chat.platform import Gap, Inbound, Memory, NotSent, Outgoing, PlatformLimits
from ...gateway.chat.platform_parts import pauses
from ...gateway.wording.terminal import clean
from ...machines.errors import ConfigError
from .client import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    UNREADABLE,
    Closed,
    Flooded,
    TelegramClient,
    TelegramSettings,
    UnknownOutcome,
    Unreached,
    bad_token,
    said_by,
)
from .reader import TelegramChats, TelegramReader, sender_of, title_of
from .text import TelegramSpan, compose, one_line

T = TypeVar("T")

KEPT = 86_400.0
"""Seconds for which the server keeps an update that is not fetched."""

_ROOM = re.compile(r"-?[0-9]{1,16}|@[A-Za-z][A-Za-z0-9_]{2,31}")


class Telegram:
    """A bot in some chats; `rooms` are the ids of chats as text, or public names like `@name`."""

    def __init__(self, settings: TelegramSettings, rooms: tuple[str, ...]) -> None:
        for room in rooms:
            if not _ROOM.fullmatch(room):
                raise ConfigError(
                    f"`{clean(room)}` is no Telegram chat",
                    "Give its id as text, such as `-1001234567890`, or its public name, such as `@name`.",
                )
        is_group = any(not room.isdigit() for room in rooms)
        # Telegram counts 4,096 code units of UTF-16. No text has more of them than bytes of UTF-8; the
        # rest is for the name of who is mentioned. A group takes 20 messages a minute, any chat one a
        # second: https://core.telegram.org/bots/faq
        interval = 3.0 if is_group else 1.0
        self.limits = PlatformLimits(
            bytes=4000, interval=interval, edit_interval=interval, can_edit=True, has_choices=True
        )
        self._settings = settings
        self._chats = TelegramChats(rooms)
        self._client = TelegramClient(settings)
        self._reader = TelegramReader(self._client, self._chats)
        self._typing: set[str] = set()

    # What people do

    @property
    def own_name(self) -> str:
        """The bot's user name."""
        return self._reader.own_name

    def sender_of(self, name: str) -> str:
        """Return the id of a user, which is the sender."""
        return name.strip()

    async def inbound(self, memory: Memory) -> AsyncIterator[Inbound]:
        """Yield what people do in the rooms; see `Platform`."""
        self._chats.recall(memory)
        try:
            await self._connect()
            seen = float(memory.get("heard") or 0)
            if seen and time.time() - seen > KEPT:
                for room in self._chats.rooms:
                    yield Gap(room=room, since=seen)
            seen, offset = 0.0, 0
            while True:
                updates = await self._client.updates(offset)
                polled = time.time()
                for update_id, update in updates:
                    for item in await self._reader.read(update):
                        yield item
                    if update and update.callback_query:
                        self._client.tasks.start(self._client.acknowledge(update.callback_query))
                    offset = update_id + 1
                if polled - seen > 60:
                    seen = polled
                    await memory.put("heard", str(int(seen)))
        except Closed:
            return

    async def _connect(self) -> None:
        """Wait for the server, and find the rooms; raises `ConfigError` for a room without a chat."""
        me = await self._client.ask(lambda: self._client.bot.get_me())
        self._reader.own_name = me.username or ""
        answers = (BadRequest, Forbidden, ChatMigrated)
        for room in self._chats.rooms:
            chat = self._chats.chat(room)
            try:
                found = await self._client.ask(partial(self._client.chat, chat), *answers)
                self._chats.place(room, found.id)
            except ChatMigrated as error:
                await self._chats.move(room, error.new_chat_id)
            except (BadRequest, Forbidden) as error:
                raise _no_room(room, error) from None

    # What is sent

    async def send(self, message: Outgoing) -> str:
        """Send a message, and return its id; see `Platform`."""
        text, entities = await self._composed(message)
        chat_of, _, answered = message.to.rpartition("/")
        is_thread = message.thread.isdigit()

        async def post(chat: int | str) -> Message:
            reply = None
            if chat_of == str(chat) and answered.isdigit():
                reply = ReplyParameters(int(answered), allow_sending_without_reply=True)
            return await self._client.bot.send_message(
                chat,
                text,
                entities=entities,
                reply_parameters=reply,
                message_thread_id=int(message.thread) if is_thread else None,
                reply_markup=_keyboard(message.choices),
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            )

        sent = await self._deliver(message.room, post)
        return f"{sent.chat.id}/{sent.message_id}"

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Change a message that was sent; see `Platform`."""
        text, entities = await self._composed(sent)
        chat, _, number = message.rpartition("/")
        if not number.isdigit():
            raise NotSent(f"`{clean(message)}` is no message of Telegram")

        async def edit(_: int | str) -> Message | bool:
            try:
                return await self._client.bot.edit_message_text(
                    text,
                    chat_id=int(chat),
                    message_id=int(number),
                    entities=entities,
                    reply_markup=_keyboard(sent.choices),
                    link_preview_options=LinkPreviewOptions(is_disabled=True),
                )
            except BadRequest as error:
                if "message is not modified" in str(error).lower():
                    return True
                raise

        await self._deliver(room, edit)

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Show for some seconds that the agent is at work; the end of it cannot be shown."""
        if is_typing and not self._client.is_closed and room not in self._typing:
            self._typing.add(room)
            self._client.tasks.start(self._show_typing(room))

    async def _show_typing(self, room: str) -> None:
        try:
            with suppress(TelegramError, *UNREADABLE):
                await self._client.bot.send_chat_action(self._chats.chat(room), "typing")
        finally:
            self._typing.discard(room)

    async def _composed(self, message: Outgoing) -> tuple[str, list[MessageEntity]]:
        """Return the text of a message and its entities, with a mention in a group."""
        person = message.mentions if message.mentions.isdigit() else ""
        is_private = self._chats.is_private(message.room)
        if person and not is_private and not self._reader.names.get(person):
            with suppress(TelegramError, Closed, *UNREADABLE):  # without a name there is no mention
                _, user = await self._client.member(self._chats.chat(message.room), int(person))
                self._reader.names.put(*sender_of(user))
        name = self._reader.names.get(person) or ""
        text, spans = compose(
            message.text,
            is_markdown=message.kind == "answer",
            person="" if is_private or not name else person,
            name=name,
        )
        if not text.strip():
            raise NotSent("a message without text")
        return text, [_entity(span) for span in spans]

    async def _deliver(self, room: str, post: Callable[[int | str], Awaitable[T]]) -> T:
        """Call a method that must not be called twice, once the server can be reached."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        try:
            for _ in range(3):  # a group is moved once
                try:
                    chat = self._chats.chat(room)
                    return await self._client.reached(lambda: post(chat), waits)  # noqa: B023 - at once
                except ChatMigrated as error:
                    await self._chats.move(room, error.new_chat_id)
        except Flooded as error:
            raise NotSent(str(error), seconds=error.seconds) from None
        except InvalidToken as error:
            raise NotSent(f"Telegram refuses the token: {said_by(error)}", seconds=60.0) from None
        except BadRequest as error:
            raise NotSent(said_by(error)) from None
        except Forbidden as error:
            raise NotSent(said_by(error), "Add the bot to the chat again.") from None
        except Closed:
            raise OSError("closed while a message was sent") from None
        except TelegramError as error:
            raise OSError(f"unknown whether it was sent: {said_by(error)}") from None
        except UNREADABLE as error:
            raise OSError(f"sent, but the answer cannot be read: {type(error).__name__}") from None
        raise NotSent(f"the chat {room} is moved again and again", seconds=60.0)

    # What is found

    async def check(self) -> list[str]:
        """Connect once, and say what was found; see `Platform`."""
        server = self._settings.server
        try:
            me = await self._client.run(self._client.bot.get_me())
            lines = [
                f"server {server}",
                f"bot {me.id} @{me.username} ({one_line(me.full_name, 64)})",
            ]
            if server.startswith("http:"):
                lines.append("the connection is not encrypted: the token is readable on its way")
            for room in self._chats.rooms:
                lines += await self._check_room(room, me)
        except InvalidToken:
            raise bad_token(self._settings.token_env) from None
        except (Unreached, UnknownOutcome) as error:
            raise ConfigError(
                f"{server} cannot be reached: {said_by(error)}", "Check `server` and the network."
            ) from None
        except (Closed, TelegramError, *UNREADABLE) as error:
            raise ConfigError(
                f"{server} does not answer as Telegram does: {said_by(error)}"
            ) from None
        return lines

    async def _check_room(self, room: str, me: User) -> list[str]:
        """Return lines about a room: what it is, who manages it, and what the bot can read there."""
        try:
            chat = await self._client.chat(self._chats.chat(room))
            lines = [f"room {room}: {chat.type} `{one_line(title_of(chat), 64)}`, id {chat.id}"]
            if chat.type == Chat.PRIVATE:
                return lines
            status, _ = await self._client.member(self._chats.chat(room), me.id)
        except ChatMigrated as error:
            return [f"room {room}: moved, its id is now {error.new_chat_id}"]
        except (BadRequest, Forbidden) as error:
            raise _no_room(room, error) from None
        if status in ("left", "kicked"):
            raise ConfigError(
                f"room {room}: the bot is not a member", "Add the bot to the chat, and try again."
            )
        is_manager = status in ("administrator", "creator")
        if not is_manager:
            lines.append("  reactions are not received: the bot is no administrator there")
            if not me.can_read_all_group_messages:
                lines.append(
                    "  only commands, and answers to the bot, are received: switch off its privacy"
                    " mode (@BotFather, /setprivacy), or make it an administrator"
                )
        for manager in await self._client.managers(self._chats.chat(room)):
            also = f" @{manager.username}" if manager.username else ""
            name = one_line(manager.full_name, 64)
            lines.append(f"  administrator {manager.id} = {name}{also}")
        return lines

    async def aclose(self) -> None:
        """End all requests; idempotent."""
        await self._client.aclose()


def _keyboard(choices: tuple[str, ...]) -> InlineKeyboardMarkup | None:
    """Return buttons, one a line.

    What a button sends back is a hash of its text: a press on an old form of the message cannot be taken
    for another choice, and no text is too long for the 64 bytes that are allowed.
    """
    if not choices:
        return None
    rows: list[list[InlineKeyboardButton]] = []
    for index, choice in enumerate(choices):
        token = hashlib.blake2s(choice.encode(errors="replace"), digest_size=12).hexdigest()
        rows.append([InlineKeyboardButton(choice, callback_data=f"{index}.{token}")])
    return InlineKeyboardMarkup(rows)


def _entity(span: TelegramSpan) -> MessageEntity:
    """Return a span as the API has it."""
    is_person = span.kind == "text_mention"
    return MessageEntity(
        span.kind,
        span.start,
        span.end - span.start,
        language=span.detail or None if span.kind == "pre" else None,
        user=User(int(span.detail), "person", False) if is_person else None,
    )


def _no_room(room: str, error: TelegramError) -> ConfigError:
    return ConfigError(
        f"room {room}: {said_by(error)}",
        "Check the id, and add the bot to the chat; a person has to write to the bot first.",
    )
