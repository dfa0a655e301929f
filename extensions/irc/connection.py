"""One connection to an IRC server: its settings, its lines, and how it is registered."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import ssl
import unicodedata
from ipaddress import ip_address

from irctokens.line import Line, build, tokenise
from pydantic import BaseModel, ConfigDict, Field

from ...gateway.chat.platform_parts import secret
from ...machines.errors import ConfigError
from ...machines.value import Value

WANTED = (
    "account-tag",
    "batch",
    "draft/chathistory",
    "draft/event-playback",  # without it, a history tells joins as messages of a service
    "echo-message",
    "labeled-response",
    "message-tags",
    "server-time",
)
REGISTER_SECONDS = 60.0
LONGEST_LINE = 65536  # bytes; a line with tags has at most 8191 + 512
NICK_TRIES = 6

_FORMATTING = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6})?")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSENDABLE = re.compile(r"[\r\n\0]")
_WRONG_PASSWORD = re.compile(r"password|access denied", re.IGNORECASE)
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_LOWER_STRICT = _LOWER | str.maketrans("[]\\", "{}|")
_LOWER_RFC1459 = _LOWER_STRICT | str.maketrans("^", "~")


class IrcAccess(Value):
    """Where to connect, and as whom; the secrets are values, not names of variables."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    nick: str
    password: str = ""
    account: str = ""
    account_password: str = ""


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


def washed(text: str) -> str:
    """Return a text without formatting codes, control characters and changes of direction."""
    text = _FORMATTING.sub("", text.replace("\t", " ").replace("\r\n", " ").replace("\n", " "))
    return "".join(
        letter
        for letter in text
        if unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp") and letter not in _BIDI
    )


def parsed(raw: bytes) -> Line | None:
    """Return a line, or nothing for what is none.

    Text that is not UTF-8 is read as Windows-1252. A name that is not UTF-8 has no reading that
    only one name can have, so its lines are ignored.
    """
    raw = raw.strip(b"\r\n")
    try:
        line = tokenise(raw.decode("utf-8", "surrogateescape"))
        for name in (
            line.source or "",
            line.command,
            *line.params[:-1],
            *(line.tags or {}).values(),
        ):
            name.encode()
    except (ValueError, IndexError):  # an empty line, one without a command, or a name as above
        return None
    if line.params:
        last = line.params[-1].encode("utf-8", "surrogateescape")
        try:
            line.params[-1] = last.decode()
        except UnicodeDecodeError:
            line.params[-1] = last.decode("cp1252", "replace")
    return line


class IrcConnection:
    """A registered connection; a broken one is not used again.

    `nick` is ours at this moment, `caps` what the server acknowledged, `supports` its ISUPPORT tokens,
    `prefix` our own as the server shows it, empty until it has.
    """

    def __init__(
        self, access: IrcAccess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.nick = access.nick
        self.caps: set[str] = set()
        self.supports: dict[str, str] = {}
        self.server = ""
        self.prefix = ""
        self._access = access
        self._offered: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._tries = 0

    @classmethod
    async def open(cls, access: IrcAccess) -> IrcConnection:
        """Connect and register; raises `OSError`, or `ConfigError` for what no waiting repairs."""
        async with asyncio.timeout(REGISTER_SECONDS):
            try:
                reader, writer = await asyncio.open_connection(
                    access.host, access.port, ssl=access.tls, limit=LONGEST_LINE
                )
            except ssl.SSLCertVerificationError as error:
                raise ConfigError(
                    f"the certificate of `{access.host}` is not trusted: {error.verify_message}",
                    "Use the name in the certificate, or set `certificates` to the file of its issuer.",
                ) from error
            connection = cls(access, reader, writer)
            with contextlib.ExitStack() as stack:
                stack.callback(connection.close)
                await connection._register()
                stack.pop_all()
        return connection

    def fold(self, name: str) -> str:
        """Return a name such that two are equal if the server takes them for one.

        An unknown mapping is taken as `ascii`: two people are then never taken for one.
        """
        match self.supports.get("CASEMAPPING", "rfc1459"):
            case "rfc1459":
                return name.translate(_LOWER_RFC1459)
            case "rfc1459-strict" | "strict-rfc1459":
                return name.translate(_LOWER_STRICT)
            case _:
                return name.translate(_LOWER)

    async def read(self) -> Line:
        """Return the next line; raises `OSError` when there is none any more. Answers PINGs."""
        while True:
            try:
                raw = await self._reader.readline()
            except ValueError as error:
                raise ConnectionError("the server sent a line without end") from error
            if not raw.endswith(b"\n"):
                raise ConnectionResetError("the server closed the connection")
            line = parsed(raw)
            if line is None:
                continue
            if line.command == "PING":
                self.write("PONG", *line.params[-1:])
            elif line.command == "ERROR":
                raise ConnectionAbortedError(washed(" ".join(line.params)))
            else:
                return line

    def write(self, command: str, *words: str, tags: dict[str, str] | None = None) -> None:
        """Send a line; raises `ValueError` if the words do not make exactly one."""
        line = build(command, list(words), tags=tags).format()
        if _UNSENDABLE.search(line):
            raise ValueError("a line of IRC cannot contain a line break")
        self._writer.write(f"{line}\r\n".encode("utf-8", "replace"))

    async def drain(self) -> None:
        """Wait until the lines are on their way; raises `OSError`."""
        await self._writer.drain()

    def close(self) -> None:
        """Close at once; what `read` waits for does not come any more."""
        self._writer.transport.abort()

    async def aclose(self) -> None:
        """Say good-bye, and close."""
        if not self._writer.is_closing():
            self.write("QUIT")
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(2.0):
                await self._writer.wait_closed()
        self.close()

    async def _register(self) -> None:
        access = self._access
        self.write("CAP", "LS", "302")
        if access.password:
            self.write("PASS", access.password)
        self.write("NICK", self.nick)
        self.write("USER", "steersman", "0", "*", "steersman")
        while True:
            try:
                line = await self.read()
            except ConnectionAbortedError as error:
                if _WRONG_PASSWORD.search(str(error)):
                    raise self._refused(str(error)) from error
                raise
            try:
                if self._step(line):
                    return
            except (IndexError, ValueError) as error:  # words are missing
                raise ConnectionError("the server does not speak IRC") from error

    def _step(self, line: Line) -> bool:
        """Take a line of the registration; true when it is over."""
        words = line.params
        match line.command:
            case "CAP" if len(words) >= 3:
                self._negotiate(words[1], words[-1], is_last=words[2] != "*" or len(words) == 3)
            case "AUTHENTICATE":
                self._authenticate()
            case "903":
                self.write("CAP", "END")
            case "902" | "904" | "905" | "906":
                raise ConfigError(
                    f"the server refuses the account `{self._access.account}`: {_said(line)}",
                    "Check `sasl_account` and the variable that `sasl_password_env` names.",
                )
            case "432":
                raise ConfigError(f"the server refuses the nick `{self.nick}`: {_said(line)}")
            case "433" | "436" | "437":
                self._next_nick()
            case "464" | "465":
                raise self._refused(_said(line))
            case "376" | "422":
                return True
            case _:
                self.note(line)
        return False

    def note(self, line: Line) -> None:
        """Take over what a line says of the server, at any time."""
        match line.command:
            case "001":
                self.nick = line.params[0]
                self.server = washed(line.source or "")
            case "005":
                for token in line.params[1:-1]:
                    name, _, value = token.partition("=")
                    self.supports[name] = value
            case _:
                pass

    def _negotiate(self, verb: str, words: str, *, is_last: bool) -> None:
        caps = [word.partition("=") for word in words.split()]
        match verb.upper():
            case "LS":
                self._offered |= {name: value for name, _, value in caps}
                if is_last:
                    self._ask_for_caps()
            case "ACK":
                self.caps |= {name for name, _, _ in caps}
                self.write(*(("AUTHENTICATE", "PLAIN") if "sasl" in self.caps else ("CAP", "END")))
            case "NAK":
                self.write("CAP", "END")
            case _:
                pass

    def _ask_for_caps(self) -> None:
        asked = [name for name in WANTED if name in self._offered]
        if self._access.account:
            if "sasl" not in self._offered:
                raise ConnectionError("the server offers no login with SASL at this moment")
            asked.append("sasl")
        self.write(*(("CAP", "REQ", " ".join(asked)) if asked else ("CAP", "END")))

    def _authenticate(self) -> None:
        access = self._access
        word = f"{access.account}\0{access.account}\0{access.account_password}".encode()
        coded = base64.b64encode(word).decode()
        for begin in range(0, len(coded) + 1, 400):  # the last piece is shorter than 400, or "+"
            self.write("AUTHENTICATE", coded[begin : begin + 400] or "+")

    def _next_nick(self) -> None:
        self._tries += 1
        if self._tries > NICK_TRIES:
            raise ConnectionError(f"the nick `{self._access.nick}` and those like it are in use")
        self.nick = self._access.nick + "_" * self._tries
        self.write("NICK", self.nick)

    def _refused(self, reason: str) -> ConfigError:
        return ConfigError(
            f"`{self._access.host}` refuses the connection: {reason}",
            "Check the variable that `password_env` names, and whether this address is banned.",
        )


def _said(line: Line) -> str:
    return washed(line.params[-1]) if line.params else ""
