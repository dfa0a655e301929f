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

import asyncio
import hashlib
import os
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, field_validator
from telegram import (
    Animation,
    Audio,
    Bot,
    CallbackQuery,
    Chat,
    Document,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    MessageReactionUpdated,
    PhotoSize,
    ReactionTypeEmoji,
    ReplyParameters,
    Sticker,
    Update,
    User,
    Video,
    VideoNote,
    Voice,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    TelegramError,
)

from ...machines.errors import ConfigError
from ...ports.models.route import trusted_certificates
from ..terminal import clean
from .platform import Chosen, Gap, Inbound, Limits, Memory, NotSent, Outgoing, Said, SentFile
from .telegram_request import (
    UNREADABLE,
    Flooded,
    TelegramRequest,
    UnknownOutcome,
    Unreached,
    hide_tokens,
    without_token,
)
from .telegram_text import Span, compose, one_line

T = TypeVar("T")

UPDATES = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
    "message_reaction",
]
POLL = 25.0
"""Seconds that the server holds a request for updates while there are none."""
ANSWER = 20.0
"""Seconds after which a connection without an answer is given up."""
KEPT = 86_400.0
"""Seconds for which the server keeps an update that nobody fetches."""
CONFLICTS = 8
"""How often in a row another program may take the updates before this is an error."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
REMEMBERED = 2_000
"""How many texts and names are remembered."""

_ROOM = re.compile(r"-?[0-9]{1,16}|@[A-Za-z][A-Za-z0-9_]{2,31}")
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,100}")


class TelegramSettings(BaseModel):
    """The table of a Telegram gateway, without the rooms."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_env: str = Field("STEERSMAN_TELEGRAM_TOKEN", min_length=1)
    server: str = "https://api.telegram.org"
    file_bytes: int = Field(65_536, ge=0, le=1_000_000)

    @field_validator("server")
    @classmethod
    def _is_base(cls, server: str) -> str:
        try:
            parts = urlsplit(server)
            is_right = (
                parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            )
        except ValueError:
            is_right = False
        if not is_right or set(server) & set("{}@?# \t\n"):
            raise ValueError("an address like `https://api.telegram.org`, without a token")
        return server.rstrip("/")


class _Closed(Exception):
    """The platform was closed meanwhile."""


class Telegram:
    """A bot in some chats; `rooms` are the ids of chats as text, or public names like `@name`."""

    def __init__(self, settings: TelegramSettings, rooms: tuple[str, ...]) -> None:
        for room in rooms:
            if not _ROOM.fullmatch(room):
                raise ConfigError(
                    f"`{clean(room)}` is no Telegram chat",
                    "Give its id as text, such as `-1001234567890`, or its public name, such as `@name`.",
                )
        token = os.environ.get(settings.token_env, "").strip()
        if not token:
            raise ConfigError(
                f"the environment variable `{settings.token_env}` is not set",
                "Set it to the bot's token, which @BotFather gives out.",
            )
        if not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"the environment variable `{settings.token_env}` holds no bot token",
                "A token looks like `123456:ABC-DEF`; @BotFather gives it out.",
            )
        is_group = any(not room.isdigit() for room in rooms)
        # Telegram counts 4,096 code units of UTF-16. No text has more of them than bytes of UTF-8; the
        # rest is for the name of who is mentioned. A group takes 20 messages a minute, any chat one a
        # second: https://core.telegram.org/bots/faq
        interval = 3.0 if is_group else 1.0
        self.limits = Limits(
            bytes=4000,
            interval=interval,
            edit_interval=interval,
            can_edit=True,
            has_choices=True,
        )
        self._settings = settings
        self._rooms = rooms
        self._chats = {int(room): room for room in rooms if not room.startswith("@")}
        self._ids = {room: chat for chat, room in self._chats.items()}
        hide_tokens()
        # A kept connection may be closed by the server just as a message goes out, whose outcome would be
        # unknown; a new one fails before.
        self._request = TelegramRequest(
            read_timeout=ANSWER,
            write_timeout=ANSWER,
            connect_timeout=ANSWER,
            pool_timeout=ANSWER,
            httpx_kwargs={
                "verify": trusted_certificates(),
                "limits": httpx.Limits(max_connections=64, max_keepalive_connections=0),
            },
        )
        self._bot = Bot(
            token,
            base_url=f"{settings.server}/bot",
            base_file_url=f"{settings.server}/file/bot",
            request=self._request,
            get_updates_request=self._request,
        )
        self._files = f"{settings.server}/file/bot{token}/"
        self._memory: Memory | None = None
        self._me, self._name = 0, ""
        self._forms = _Recent()  # of messages, to tell an edit from other changes
        self._names = _Recent()  # of people, by their ids
        self._tasks: set[asyncio.Future[Any]] = set()
        self._typing: set[str] = set()
        self._is_closed = False

    # What people do

    @property
    def own_name(self) -> str:
        """The bot's user name."""
        return self._name

    def sender_of(self, name: str) -> str:
        """Return the id of a user, which is the sender."""
        return name.strip()

    async def inbound(self, memory: Memory) -> AsyncIterator[Inbound]:
        """Yield what people do in the rooms; see `Platform`."""
        self._memory = memory
        try:
            for room in self._rooms:
                if moved := memory.get(f"moved {room}"):
                    self._place(room, int(moved))
            await self._connect()
            heard = float(memory.get("heard") or 0)
            if heard and time.time() - heard > KEPT:
                for room in self._rooms:
                    yield Gap(room=room, since=heard)
            heard, offset = 0.0, 0
            while True:
                updates = await self._updates(offset)
                polled = time.time()
                for update_id, update in updates:
                    for item in await self._read(update):
                        yield item
                    if update and update.callback_query:
                        self._start(self._acknowledge(update.callback_query))
                    offset = update_id + 1
                if polled - heard > 60:
                    heard = polled
                    await memory.put("heard", str(int(heard)))
        except _Closed:
            return

    async def _connect(self) -> None:
        """Wait for the server, and find the rooms; raises `ConfigError` for a room without a chat."""
        me = await self._ask(lambda: self._bot.get_me())
        self._me, self._name = me.id, me.username or ""
        for room in self._rooms:
            try:
                await self._find(room)
            except (BadRequest, Forbidden) as error:
                raise _no_room(room, error) from None

    async def _find(self, room: str) -> None:
        """Find the chat of a room."""
        try:
            answers = (BadRequest, Forbidden, ChatMigrated)
            self._place(room, (await self._ask(lambda: self._chat(room), *answers)).id)
        except ChatMigrated as error:
            await self._move(room, error.new_chat_id)

    async def _about(self, method: str, room: str, **more: int) -> Any:
        """Return what a method says of a room, as it is.

        The library's own methods refuse an object without a field that came with another version of the
        API. The name is lower case as in `_updates`.
        """
        arguments = {"chat_id": self._ids.get(room, room), **more}
        return await self._run(self._bot.do_api_request(method, arguments))

    async def _chat(self, room: str) -> Chat:
        return Chat.de_json(await self._about("getchat", room), self._bot)

    async def _member(self, room: str, person: int) -> tuple[str, User]:
        """Return what somebody is in a room, such as `administrator`, and who they are."""
        found = await self._about("getchatmember", room, user_id=person)
        return str(found["status"]), User.de_json(found["user"], self._bot)

    async def _updates(self, offset: int) -> list[tuple[int, Update | None]]:
        """Return the next updates after their ids, waiting for some; none for what cannot be read.

        The name of the method is lower case because the library offers its result as it is only under a
        name of which it has no method; the API ignores case.
        """
        arguments = {"offset": offset, "timeout": int(POLL), "allowed_updates": UPDATES}

        async def poll() -> list[tuple[int, Any]]:
            found = await self._bot.do_api_request(
                "getupdates", api_kwargs=arguments, read_timeout=POLL + ANSWER
            )
            return [(int(update["update_id"]), update) for update in found]

        pauses, conflicts = _pauses(), 0
        while True:
            try:
                found = await self._ask(poll, Conflict)
                return [(number, self._update(update)) for number, update in found]
            except Conflict as error:
                conflicts += 1
                if conflicts > CONFLICTS or "webhook" in str(error).lower():
                    raise ConfigError(
                        f"another program receives the updates of this bot: {_said(error)}",
                        "End the other program, or delete its webhook; each bot can have one reader.",
                    ) from None
                await self._run(asyncio.sleep(next(pauses)))

    def _update(self, found: Any) -> Update | None:
        """Return an update; none if the library cannot read it: the next ones still come."""
        try:
            return Update.de_json(found, self._bot)
        except UNREADABLE:
            return None

    async def _read(self, update: Update | None) -> list[Inbound]:
        """Return what a person did, if they did it in one of the rooms."""
        if update is None:
            return []
        if update.message_reaction:
            return self._reaction(update.update_id, update.message_reaction)
        if update.callback_query:
            return self._press(update.callback_query)
        is_edit = update.edited_message or update.edited_channel_post
        message = is_edit or update.message or update.channel_post
        if message is None or (room := self._chats.get(message.chat.id)) is None:
            return []
        if message.migrate_to_chat_id:
            await self._move(room, message.migrate_to_chat_id)
            return []
        said = await self._said(room, message)
        if said is None:
            return []
        if not is_edit:
            self._forms.put(said.id, _form(said))
            return [said]
        is_same = self._forms.get(said.id) == _form(said)
        self._forms.put(said.id, _form(said))
        if is_same:  # a change of something else, such as a preview, is reported alike
            return []
        return [_replacing(said, update.update_id)]

    async def _said(self, room: str, message: Message) -> Said | None:
        """Return what a person said; none for a bot, and for what has neither text nor file."""
        sender, name = _sender(message.sender_chat or message.from_user or message.chat)
        text = _without_own_name(message.text or message.caption or "", self._name)
        files = await self._attached(message) if sender else ()
        if not sender or not (text or files):
            return None
        self._names.put(sender, name)
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
            text = await self._text_of(found.file_id, size)
            return (SentFile(name=name, size=size, text=text),)
        if isinstance(found, tuple | list):  # the sizes of a photo, the largest last
            photos = [one for one in cast(list[Any], found) if isinstance(one, PhotoSize)]
            return tuple(SentFile(name="photo", size=one.file_size or 0) for one in photos[-1:])
        if isinstance(found, Audio | Animation | Video | Voice | VideoNote | Sticker):
            given = getattr(found, "file_name", None) or type(found).__name__.lower()
            return (SentFile(name=one_line(given, 200), size=found.file_size or 0),)
        return ()

    async def _text_of(self, file_id: str, size: int) -> str | None:
        """Return the text of a file; none if it is too large, no text, or cannot be fetched."""
        if not 0 < size <= self._settings.file_bytes:
            return None
        pauses = _pauses()
        for _ in range(4):
            try:
                found = await self._run(self._bot.get_file(file_id))
                # A server on this machine may name a path of it instead, which is not read.
                if not (found.file_path or "").startswith(self._files):
                    return None
                content = await self._run(self._request.retrieve(str(found.file_path)))
                return _decoded(content) if len(content) <= self._settings.file_bytes else None
            except (Unreached, UnknownOutcome):
                await self._run(asyncio.sleep(next(pauses)))
            except Flooded as error:
                await self._run(asyncio.sleep(min(error.seconds, LONGEST_PAUSE)))
            except (TelegramError, *UNREADABLE):
                return None
        return None

    def _press(self, query: CallbackQuery) -> list[Inbound]:
        """Return which button was pressed: one that the message has now, whatever the client claims."""
        message = query.message
        room = self._chats.get(message.chat.id) if message else None
        if room is None or query.from_user.is_bot or not isinstance(message, Message):
            return []
        rows = message.reply_markup.inline_keyboard if message.reply_markup else ()
        texts = [
            one.text
            for row in rows
            for one in row
            if query.data and one.callback_data == query.data
        ]
        sender, name = _sender(query.from_user)
        self._names.put(sender, name)
        return [
            Chosen(
                id=f"press {query.id}",
                room=room,
                sender=sender,
                name=name,
                message=f"{message.chat.id}/{message.message_id}",
                choice=text,
            )
            for text in texts[:1]
        ]

    def _reaction(self, update_id: int, change: MessageReactionUpdated) -> list[Inbound]:
        """Return the emoji that were added to a message."""
        room = self._chats.get(change.chat.id)
        actor = change.actor_chat or change.user
        if room is None or actor is None:
            return []
        sender, name = _sender(actor)
        before = {one.emoji for one in change.old_reaction if isinstance(one, ReactionTypeEmoji)}
        after = [one.emoji for one in change.new_reaction if isinstance(one, ReactionTypeEmoji)]
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

    async def _acknowledge(self, query: CallbackQuery) -> None:
        """End the wait that the client shows on the button."""
        try:
            await self._bot.answer_callback_query(query.id)
        except TelegramError:
            pass  # it is too old, or the next try finds the connection broken as well

    # What is sent

    async def send(self, message: Outgoing) -> str:
        """Send a message, and return its id; see `Platform`."""
        text, entities = await self._composed(message)
        chat_of, _, answered = message.to.rpartition("/")
        is_thread = message.thread.isdigit()

        async def post(chat: int | str) -> Message:
            is_here = chat_of == str(chat) and answered.isdigit()
            return await self._bot.send_message(
                chat,
                text,
                entities=entities,
                reply_parameters=ReplyParameters(int(answered), allow_sending_without_reply=True)
                if is_here
                else None,
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
                return await self._bot.edit_message_text(
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
        if is_typing and not self._is_closed and room not in self._typing:
            self._typing.add(room)
            self._start(self._show_typing(room))

    async def _show_typing(self, room: str) -> None:
        try:
            await self._bot.send_chat_action(self._ids.get(room, room), "typing")
        except (TelegramError, *UNREADABLE):
            pass
        finally:
            self._typing.discard(room)

    async def _composed(self, message: Outgoing) -> tuple[str, list[MessageEntity]]:
        """Return the text of a message and its entities, with a mention in a group."""
        person = message.mentions if message.mentions.isdigit() else ""
        is_private = self._ids.get(message.room, -1) > 0
        if person and not is_private and not self._names.get(person):
            await self._look_up(message.room, person)
        name = self._names.get(person) or ""
        text, spans = compose(
            message.text,
            is_markdown=message.kind == "answer",
            person="" if is_private or not name else person,
            name=name,
        )
        if not text.strip():
            raise NotSent("a message without text")
        return text, [_entity(span) for span in spans]

    async def _look_up(self, room: str, person: str) -> None:
        """Note the name of a member; without one the message mentions nobody."""
        try:
            _, user = await self._member(room, int(person))
        except (TelegramError, _Closed, *UNREADABLE):
            return
        self._names.put(*_sender(user))

    async def _deliver(self, room: str, post: Callable[[int | str], Awaitable[T]]) -> T:
        """Call a method that must not be called twice, once the server can be reached."""
        pauses = _pauses()
        try:
            for _ in range(3):  # a group is moved once
                try:
                    chat = self._ids.get(room, room)
                    return await self._reached(lambda: post(chat), pauses)  # noqa: B023 - at once
                except ChatMigrated as error:
                    await self._move(room, error.new_chat_id)
        except Flooded as error:
            raise NotSent(str(error), seconds=error.seconds) from None
        except InvalidToken as error:
            raise NotSent(f"Telegram refuses the token: {_said(error)}", seconds=60.0) from None
        except BadRequest as error:
            raise NotSent(_said(error)) from None
        except Forbidden as error:
            raise NotSent(_said(error), "Add the bot to the chat again.") from None
        except _Closed:
            raise OSError("closed while a message was sent") from None
        except TelegramError as error:
            raise OSError(f"unknown whether it was sent: {_said(error)}") from None
        except UNREADABLE as error:
            raise OSError(f"sent, but the answer cannot be read: {type(error).__name__}") from None
        raise NotSent(f"the chat {room} is moved again and again", seconds=60.0)

    async def _reached(self, call: Callable[[], Awaitable[T]], pauses: Iterator[float]) -> T:
        """Call a method as soon as there is a connection."""
        while True:
            try:
                return await self._run(call())
            except Unreached:
                await self._run(asyncio.sleep(next(pauses)))

    # What is found

    async def check(self) -> list[str]:
        """Connect once, and say what was found; see `Platform`."""
        server = self._settings.server
        try:
            me = await self._run(self._bot.get_me())
            lines = [
                f"server {server}",
                f"bot {me.id} @{me.username} ({one_line(me.full_name, 64)})",
            ]
            if server.startswith("http:"):
                lines.append("the connection is not encrypted: the token is readable on its way")
            for room in self._rooms:
                lines += await self._check_room(room, me)
        except InvalidToken:
            raise _bad_token(self._settings.token_env) from None
        except (Unreached, UnknownOutcome) as error:
            raise ConfigError(
                f"{server} cannot be reached: {_said(error)}", "Check `server` and the network."
            ) from None
        except (_Closed, TelegramError, *UNREADABLE) as error:
            raise ConfigError(
                f"{server} does not answer as Telegram does: {_said(error)}"
            ) from None
        return lines

    async def _check_room(self, room: str, me: User) -> list[str]:
        """Return lines about a room: what it is, who manages it, and what the bot can read there."""
        try:
            chat = await self._chat(room)
            lines = [f"room {room}: {chat.type} `{one_line(_title(chat), 64)}`, id {chat.id}"]
            if chat.type == Chat.PRIVATE:
                return lines
            status, _ = await self._member(room, me.id)
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
        for manager in await self._managers(room):
            also = f" @{manager.username}" if manager.username else ""
            name = one_line(manager.full_name, 64)
            lines.append(f"  administrator {manager.id} = {name}{also}")
        return lines

    async def _managers(self, room: str) -> list[User]:
        """Return the people who manage a room; nobody if the server does not say."""
        try:
            found = await self._about("getchatadministrators", room)
            users = [User.de_json(manager["user"], self._bot) for manager in found]
        except (TelegramError, *UNREADABLE):
            return []
        return [user for user in users if not user.is_bot]

    async def aclose(self) -> None:
        """End all requests; idempotent."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._request.shutdown()

    # Requests

    async def _ask(self, call: Callable[[], Awaitable[T]], *answers: type[TelegramError]) -> T:
        """Call a method that only reads until the server answers it; `answers` are raised."""
        pauses = _pauses()
        while True:
            try:
                return await self._run(call())
            except InvalidToken:
                raise _bad_token(self._settings.token_env) from None
            except Flooded as error:
                await self._run(asyncio.sleep(error.seconds))
            except (TelegramError, *UNREADABLE) as error:
                if isinstance(error, answers):
                    raise
                await self._run(asyncio.sleep(next(pauses)))

    async def _run(self, work: Awaitable[T]) -> T:
        """Await something that `aclose` ends; raises `_Closed` then."""
        task = asyncio.ensure_future(work)
        if self._is_closed:
            task.cancel()
        self._tasks.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._is_closed and not (current and current.cancelling()):
                raise _Closed from None
            raise
        finally:
            self._tasks.discard(task)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something without waiting for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Where the rooms are

    def _place(self, room: str, chat: int) -> None:
        self._ids[room] = chat
        self._chats[chat] = room

    async def _move(self, room: str, chat: int) -> None:
        """Follow a group that became a supergroup, which has another id."""
        self._place(room, chat)
        if self._memory is not None:
            await self._memory.put(f"moved {room}", str(chat))


class _Recent:
    """Some words by their keys, of which the oldest are forgotten."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, str] = OrderedDict()

    def get(self, key: str) -> str | None:
        return self._words.get(key)

    def put(self, key: str, word: str) -> None:
        self._words[key] = word
        self._words.move_to_end(key)
        if len(self._words) > REMEMBERED:
            self._words.popitem(last=False)


def _pauses() -> Iterator[float]:
    """Yield growing pauses, in seconds."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, LONGEST_PAUSE)


def _sender(actor: User | Chat) -> tuple[str, str]:
    """Return who did something: a person's number, or `chat:ID`; nobody for a bot."""
    if isinstance(actor, User):
        return ("", "") if actor.is_bot else (str(actor.id), one_line(actor.full_name, 128))
    return f"chat:{actor.id}", one_line(_title(actor), 128)


def _title(chat: Chat) -> str:
    """Return what people see as the name of a chat."""
    return chat.title or chat.full_name or chat.username or str(chat.id)


def _without_own_name(text: str, name: str) -> str:
    """Return a command without the name of this bot, which clients add in groups: `/stop@bot`."""
    own = re.match(rf"/[A-Za-z_]+(@{re.escape(name)})(?!\w)", text, re.IGNORECASE)
    return text[: own.start(1)] + text[own.end(1) :] if own and name else text


def _form(said: Said) -> str:
    """Return what people see of a message."""
    return repr((said.text, said.files))


def _replacing(said: Said, update: int) -> Said:
    """Return a message as the change of one; several changes of one message have several ids."""
    return Said(
        id=f"{said.id} {update}",
        room=said.room,
        sender=said.sender,
        name=said.name,
        text=said.text,
        to=said.to,
        thread=said.thread,
        replaces=said.id,
        is_private=said.is_private,
        files=said.files,
    )


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


def _entity(span: Span) -> MessageEntity:
    """Return a span as the API has it."""
    person = span.kind == "text_mention"
    return MessageEntity(
        span.kind,
        span.start,
        span.end - span.start,
        language=span.detail or None if span.kind == "pre" else None,
        user=User(int(span.detail), "person", False) if person else None,
    )


def _decoded(content: bytes) -> str | None:
    """Return the text of a file; none if it is no text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _said(error: Exception) -> str:
    """Return what a server says, as one line without a token or control characters."""
    text = clean(without_token(str(error)))
    return one_line(text, 300) or type(error).__name__


def _bad_token(variable: str) -> ConfigError:
    return ConfigError(
        f"Telegram refuses the token in `{variable}`",
        "Set it to the bot's token, which @BotFather gives out, and check `server`.",
    )


def _no_room(room: str, error: TelegramError) -> ConfigError:
    return ConfigError(
        f"room {room}: {_said(error)}",
        "Check the id, and add the bot to the chat; a person has to write to the bot first.",
    )
