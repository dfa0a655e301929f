"""The table `[gateways.telegram]`, and the bot's token."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...gateway.chat.platform_parts import secret
from ...machines.errors import ConfigError

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
            is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or set(server) & set("{}@?# \t\n"):
            raise ValueError("an address like `https://api.telegram.org`, without a token")
        return server.rstrip("/")

    def token(self) -> str:
        """Return the bot's token. Raises `ConfigError` if there is none."""
        token = secret(self.token_env, "the bot's token, which @BotFather gives out")
        if not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"the environment variable `{self.token_env}` holds no bot token",
                "A token looks like `123456:ABC-DEF`; @BotFather gives it out.",
            )
        return token
