"""The table `[gateways.matrix]`, without what all platforms have."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, field_validator, model_validator


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
