"""The login of a Matrix gateway: its settings, whether it is connected, and what it sends."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

from nio import (  # pyright: ignore[reportMissingTypeStubs]
    AsyncClient,
    LoginResponse,
    RoomSendResponse,
    WhoamiResponse,
)
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from ...gateway.chat.platform import NotSent, Outgoing
from ...gateway.chat.platform_parts import BackgroundTasks, Contact, pauses, secret
from ...machines.errors import ConfigError
from .connection import REQUEST, MatrixRefusal, ask, connect
from .events import message_content, one_line

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two attempts
_ENCRYPTED = (
    "This room is encrypted, and I cannot read encrypted rooms. Please use one without encryption."
)


class MatrixSettings(BaseModel):
    """The table `[gateways.matrix]`, without what all platforms have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str
    account: str
    token_env: str = ""
    password_env: str = ""
    direct: bool = False

    @field_validator("server")
    @classmethod
    def _is_address(cls, server: str) -> str:
        parts = urlsplit(server)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ValueError("not an address such as `https://matrix.example.org`")
        if parts.username is not None:
            fault = "an address has no name or password in it; use `account` and `token_env`"
            raise ValueError(fault)
        if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("the token would be sent unencrypted; use `https://`")
        return server

    @field_validator("account")
    @classmethod
    def _is_account(cls, account: str) -> str:
        if not re.fullmatch(r"@[^:\s]+:[^\s]+", account):
            raise ValueError("not a user id such as `@steers:example.org`")
        return account

    @model_validator(mode="after")
    def _has_one_secret(self) -> MatrixSettings:
        if bool(self.token_env) == bool(self.password_env):
            raise ValueError("one of `token_env` and `password_env` is needed, and not both")
        return self


class MatrixLink:
    """An account on a server; `connected` is set while it is in its rooms, `closing` at the end."""

    def __init__(self, settings: MatrixSettings) -> None:
        self.connected = asyncio.Event()
        self.closing = asyncio.Event()
        self.tasks = BackgroundTasks()
        self.client: AsyncClient | None = None
        self.contact = Contact(settings.server)
        self._settings = settings
        self._secrets = [
            secret(name, "the secret") for name in (settings.token_env, settings.password_env)
        ]

    @property
    def account(self) -> str:
        """The user's id."""
        return self._settings.account

    @property
    def has_password(self) -> bool:
        """Whether the login is with a password, and so makes a token of its own."""
        return bool(self._secrets[1])

    def connect(self) -> AsyncClient:
        """Return a client that is not logged in."""
        return connect(self._settings.server, self._settings.account)

    def live(self) -> AsyncClient:
        """Return the client. Raises `OSError` if there is none."""
        if self.client is None:
            raise ConnectionError("there is no connection to Matrix")
        return self.client

    async def log_in(self, client: AsyncClient, device: str) -> None:
        """Log in. Raises `ConfigError`, or `MatrixRefusal` if only the login of before is over."""
        token, password = self._secrets
        client.access_token = token or client.access_token
        try:
            if client.access_token:
                found = await ask("use the access token", WhoamiResponse, client.whoami())
                account = found.user_id
            else:
                # The server recognises a message that is sent again only by the device that sent it.
                client.device_id = device
                request = client.login(password, device_name="steersman")
                account = (await ask("log in", LoginResponse, request)).user_id
        except MatrixRefusal as error:
            if password and error.is_logged_out:
                client.access_token = ""  # the next attempt logs in with the password
                raise
            where = self._settings.token_env or self._settings.password_env
            hint = f"See `{where}`, and `account` and `server` in [gateways.matrix]."
            raise ConfigError(error.message, hint) from error
        if account != self._settings.account:
            hint = "Use a token of the account, or correct `account` in [gateways.matrix]."
            raise ConfigError(f"the access token is that of {one_line(account)}", hint)

    async def put(self, room_id: str, kind: str, content: dict[str, Any], key: str) -> str:
        """Send an event, and return its id; with the same key it is there once."""
        transaction = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:40]
        request = self.live().room_send(room_id, kind, content, f"steersman-{transaction}")
        try:
            event_id: str = (await ask("send a message", RoomSendResponse, request)).event_id
        except MatrixRefusal as error:
            raise NotSent(error.message, seconds=REQUEST if error.is_logged_out else 0.0) from error
        return event_id

    async def insist(self, room_id: str, kind: str, content: dict[str, Any], key: str) -> None:
        """Send an event as often as it takes, unless it is refused."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        while not self.closing.is_set():
            await self.connected.wait()
            try:
                await self.put(room_id, kind, content, key)
                return
            except NotSent as error:
                if not error.seconds:
                    return
                await asyncio.sleep(error.seconds)
            except OSError:
                await asyncio.sleep(next(waits))

    async def refuse_encryption(self, room_id: str, *, is_once: bool = False) -> None:
        """Say in a room that it cannot be read, until that is said; `is_once`: raises what `put` does."""
        content = message_content(Outgoing(key="", room="", text=_ENCRYPTED))
        say = self.put if is_once else self.insist
        await say(room_id, "m.room.message", content, f"encrypted {room_id}")

    async def aclose(self) -> None:
        """Disconnect, and end what goes on."""
        self.closing.set()
        self.connected.set()  # a caller that waits for a connection learns that there will be none
        await self.tasks.aclose()
        if self.client is not None:
            await self.client.close()
