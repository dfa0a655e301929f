"""A bot of Telegram: its settings, and its requests, which end when it is closed.

Requests are repeated where that is right. The token is part of each address, which the HTTP client keeps
in its exceptions, and logs: none gets out.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, field_validator
from telegram import Bot, CallbackQuery, Chat, Update, User
from telegram.error import Conflict, InvalidToken, NetworkError, TelegramError
from telegram.request import HTTPXRequest

from ...gateway.chat.platform_parts import BackgroundTasks, Contact, pauses, secret
from ...gateway.wording.terminal import clean
from ...machines.errors import ConfigError
from ...machines.json_shape import parse_json
from ...ports.models.route import trusted_certificates
from .text import one_line

# Settings -----------------------------------------------------------------------------------------


_SET_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,100}")


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
            is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or set(server) & set("{}@?# \t\n"):
            raise ValueError("an address like `https://api.telegram.org`, without a token")
        return server.rstrip("/")

    def token(self) -> str:
        """Return the bot's token. Raises `ConfigError` if there is none."""
        token = secret(self.token_env, "the bot's token, which @BotFather gives out")
        if not _SET_TOKEN.fullmatch(token):
            raise ConfigError(
                f"the environment variable `{self.token_env}` holds no bot token",
                "A token looks like `123456:ABC-DEF`; @BotFather gives it out.",
            )
        return token


# One request --------------------------------------------------------------------------------------


UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What the library raises for an object that lacks a field, or has one of another type."""

_TOKEN = re.compile(r"(?<=/bot)[0-9]+:[^/\s]+|[0-9]{5,20}:[A-Za-z0-9_-]{20,}")


def _hide_tokens(record: logging.LogRecord) -> bool:
    """Remove tokens from a log record: the HTTP client and the library log their addresses."""
    record.msg, record.args = without_token(record.getMessage()), ()
    return True


class Unreached(NetworkError):
    """There was no connection: the server has nothing of the request."""


class UnknownOutcome(NetworkError):
    """The connection broke, or the server failed: it may have done what was asked."""


class Flooded(TelegramError):
    """The server asks for a pause."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many requests: retry after {seconds:g} seconds")
        self.seconds = seconds


class TelegramRequest(HTTPXRequest):
    """The library's HTTP client, with errors that say whether the server may have the request.

    The library's `RetryAfter` is avoided: creating one issues a warning in version 22.
    """

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """Request something; see the library."""
        failed: NetworkError  # raised behind the `except`: the cause has the address in it
        try:
            code, payload = await super().do_request(*args, **kwargs)
        except NetworkError as error:
            failed = _failure(error.__cause__)
        except (httpx.InvalidURL, RuntimeError) as error:
            failed = UnknownOutcome(type(error).__name__)
        else:
            return _answer(code, payload)
        raise failed


def _failure(cause: BaseException | None) -> NetworkError:
    """Return whether the server may have what was sent, by how the HTTP client failed."""
    reason = type(cause).__name__
    unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    return Unreached(f"{reason}: {cause}") if isinstance(cause, unsent) else UnknownOutcome(reason)


def _answer(code: int, payload: bytes) -> tuple[int, bytes]:
    """Return an answer that the library may read."""
    if code == 429:
        try:
            seconds = max(1.0, float(parse_json(payload)["parameters"]["retry_after"]))
        except UNREADABLE:
            seconds = 5.0  # it does not say
        raise Flooded(seconds)
    if code >= 500:
        raise UnknownOutcome(f"the server answers with {code}")
    return code, payload


def without_token(text: str) -> str:
    """Return a text without the tokens that are in it."""
    return _TOKEN.sub("(token)", text)


# The bot ------------------------------------------------------------------------------------------


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
CONFLICTS = 8
"""How often in a row another program may take the updates before this is an error."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0


class Closed(Exception):
    """The connection was closed meanwhile."""


class TelegramClient:
    """One bot, whose requests end with it."""

    def __init__(self, settings: TelegramSettings) -> None:
        token = settings.token()
        for logger in ("httpx", "telegram.Bot"):
            logging.getLogger(logger).addFilter(_hide_tokens)
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
        self.bot = Bot(
            token,
            base_url=f"{settings.server}/bot",
            base_file_url=f"{settings.server}/file/bot",
            request=self._request,
            get_updates_request=self._request,
        )
        self.tasks = BackgroundTasks()
        self.is_closed = False
        self._contact = Contact(settings.server)
        self._settings = settings
        self._files = f"{settings.server}/file/bot{token}/"

    async def about(self, method: str, chat: int | str, **more: int) -> Any:
        """Return what a method says of a chat, as it is.

        The library's own methods refuse an object without a field that came with another version of the
        API. The name is lower case as in `updates`.
        """
        arguments = {"chat_id": chat, **more}
        return await self.run(self.bot.do_api_request(method, arguments))

    async def chat(self, chat: int | str) -> Chat:
        """Return what a chat is."""
        return Chat.de_json(await self.about("getchat", chat), self.bot)

    async def member(self, chat: int | str, person: int) -> tuple[str, User]:
        """Return what a person is in a chat, such as `administrator`, and who they are."""
        found = await self.about("getchatmember", chat, user_id=person)
        return str(found["status"]), User.de_json(found["user"], self.bot)

    async def updates(self, offset: int) -> list[tuple[int, Update | None]]:
        """Return the next updates after their ids, waiting for some; none for what cannot be read.

        The name of the method is lower case because the library offers its result as it is only under a
        name of which it has no method; the API ignores case.
        """
        arguments = {"offset": offset, "timeout": int(POLL), "allowed_updates": UPDATES}

        async def poll() -> list[tuple[int, Any]]:
            found = await self.bot.do_api_request(
                "getupdates", api_kwargs=arguments, read_timeout=POLL + ANSWER
            )
            return [(int(update["update_id"]), update) for update in found]

        def read(found: Any) -> Update | None:
            try:
                return Update.de_json(found, self.bot)
            except UNREADABLE:  # the next ones still come
                return None

        waits, conflicts = pauses(FIRST_PAUSE, LONGEST_PAUSE), 0
        while True:
            try:
                found = await self.ask(poll, Conflict)
                return [(number, read(update)) for number, update in found]
            except Conflict as error:
                conflicts += 1
                if conflicts > CONFLICTS or "webhook" in str(error).lower():
                    raise ConfigError(
                        f"another program receives the updates of this bot: {said_by(error)}",
                        "End the other program, or delete its webhook; each bot can have one reader.",
                    ) from None
                await self.run(asyncio.sleep(next(waits)))

    async def text_of(self, file_id: str, size: int) -> str | None:
        """Return the text of a file; none if it is too large, no text, or cannot be fetched."""
        if not 0 < size <= self._settings.file_bytes:
            return None
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        for _ in range(4):
            try:
                found = await self.run(self.bot.get_file(file_id))
                # A server on this machine may name a path of it instead, which is not read.
                if not (found.file_path or "").startswith(self._files):
                    return None
                content = await self.run(self._request.retrieve(str(found.file_path)))
                return _decoded(content) if len(content) <= self._settings.file_bytes else None
            except (Unreached, UnknownOutcome):
                await self.run(asyncio.sleep(next(waits)))
            except Flooded as error:
                await self.run(asyncio.sleep(min(error.seconds, LONGEST_PAUSE)))
            except (TelegramError, *UNREADABLE):
                return None
        return None

    async def acknowledge(self, query: CallbackQuery) -> None:
        """End the wait that the client shows on the button."""
        try:
            await self.bot.answer_callback_query(query.id)
        except TelegramError:
            pass  # it is too old, or the next try finds the connection broken as well

    async def managers(self, chat: int | str) -> list[User]:
        """Return the people who manage a chat; none if the server does not say."""
        try:
            found = await self.about("getchatadministrators", chat)
            users = [User.de_json(manager["user"], self.bot) for manager in found]
        except (TelegramError, *UNREADABLE):
            return []
        return [user for user in users if not user.is_bot]

    async def reached(self, call: Callable[[], Awaitable[T]], waits: Iterator[float]) -> T:
        """Call a method as soon as there is a connection."""
        while True:
            try:
                return await self.run(call())
            except Unreached:
                await self.run(asyncio.sleep(next(waits)))

    async def ask(self, call: Callable[[], Awaitable[T]], *answers: type[TelegramError]) -> T:
        """Call a method that only reads until the server answers it; `answers` are raised."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                found = await self.run(call())
                self._contact.made()
                return found
            except InvalidToken:
                raise bad_token(self._settings.token_env) from None
            except Flooded as error:
                await self.run(asyncio.sleep(error.seconds))
            except (TelegramError, *UNREADABLE) as error:
                if isinstance(error, answers):
                    raise
                self._contact.lost(said_by(error))
                await self.run(asyncio.sleep(next(waits)))

    async def run(self, work: Awaitable[T]) -> T:
        """Await something that `aclose` ends; raises `Closed` then."""
        task = asyncio.ensure_future(work)
        if self.is_closed:
            task.cancel()
        self.tasks.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self.is_closed and not (current and current.cancelling()):
                raise Closed from None
            raise

    async def aclose(self) -> None:
        """End all requests; idempotent."""
        self.is_closed = True
        await self.tasks.aclose()
        await self._request.shutdown()


def _decoded(content: bytes) -> str | None:
    """Return the text of a file; none if it is no text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def said_by(error: Exception) -> str:
    """Return what a server says, as one line without a token or control characters."""
    text = clean(without_token(str(error)))
    return one_line(text, 300) or type(error).__name__


def bad_token(variable: str) -> ConfigError:
    """Return the error for a token that the server refuses."""
    return ConfigError(
        f"Telegram refuses the token in `{variable}`",
        "Set it to the bot's token, which @BotFather gives out, and check `server`.",
    )
