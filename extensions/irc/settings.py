"""The table `[gateways.irc]`, and where it says to connect."""

from __future__ import annotations

import ssl
from ipaddress import ip_address

from pydantic import BaseModel, ConfigDict, Field

from ...gateway.chat.platform_parts import secret
from ...machines.errors import ConfigError
from .connection import IrcAccess


class IrcSettings(BaseModel):
    """The keys of `[gateways.irc]` that are IRC's own.

    `server` is `HOST:PORT`. `tls` is on unless the host is this machine; `certificates` is a file of
    trusted issuers. `interval` and `burst`: seconds between two lines after so many at once.
    `ping_seconds`: silence after which the server is asked whether it is there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str = Field(pattern=r"^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$")
    tls: bool | None = None
    certificates: str = ""
    nick: str = Field(default="steers", pattern=r"^[^\s\d:#&~@+%!,*?.-][^\s:@!,*?.]{0,29}$")
    password_env: str = ""
    sasl_account: str = ""
    sasl_password_env: str = ""
    interval: float = Field(default=0.5, ge=0)
    burst: int = Field(default=4, ge=1)
    ping_seconds: float = Field(default=60.0, gt=0)

    def access(self) -> IrcAccess:
        """Return where and as whom to connect; raises `ConfigError`, also for a missing secret."""
        host, _, port = self.server.rpartition(":")
        host = host.strip("[]")
        is_encrypted = not _is_here(host) if self.tls is None else self.tls
        if bool(self.sasl_account) != bool(self.sasl_password_env):
            raise ConfigError("`sasl_account` and `sasl_password_env` go together")
        secrets = [
            secret(name, "the password") for name in (self.password_env, self.sasl_password_env)
        ]
        if any(secrets) and not is_encrypted and not _is_here(host):
            raise ConfigError(
                f"a password would go to `{host}` unencrypted",
                "Leave `tls` out, and use the port for TLS.",
            )
        return IrcAccess(
            host=host,
            port=int(port),
            tls=self._context() if is_encrypted else None,
            nick=self.nick,
            password=secrets[0],
            account=self.sasl_account,
            account_password=secrets[1],
        )

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.certificates or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"`certificates` cannot be read: {error}") from error


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
