"""Real IRC servers on loopback, in a scratch folder, and a client that is a plain socket."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from support.patience import seconds
from support.server_program import ServerProgram

NGIRCD = """
[Global]
Name = irc.test.local
Info = test
Ports = {port}
Listen = 127.0.0.1
MotdPhrase = hello
AdminEMail = a@test.local
{password}
[Limits]
PongTimeout = 120
PingTimeout = 120
MaxConnectionsIP = 0
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
SyslogFacility = local0
"""

ERGO = """
network: {{name: TestNet}}
server:
  name: ergo.test.local
  listeners: {{"127.0.0.1:{port}": {{}}}}
  casemapping: ascii
  enforce-utf8: true
  lookup-hostnames: false
  max-sendq: 1M
  ip-limits: {{count: false, throttle: false}}
  ip-cloaking: {{enabled: false}}
{password}
accounts:
  authentication-enabled: true
  registration:
    enabled: true
    allow-before-connect: true
    throttling: {{enabled: false}}
    bcrypt-cost: 4
    email-verification: {{enabled: false}}
  login-throttling: {{enabled: false}}
  nick-reservation: {{enabled: false}}
  multiclient: {{enabled: false}}
channels:
  default-modes: +nt
  registration: {{enabled: true}}
datastore: {{path: "{folder}/ircd.db"}}
languages: {{enabled: false}}
limits: {{nicklen: 32, identlen: 20, channellen: 64, awaylen: 390, kicklen: 390, topiclen: 390,
  monitor-entries: 100, whowas-entries: 100, chan-list-modes: 60, registration-messages: 1024,
  multiline: {{max-bytes: 4096, max-lines: 100}}}}
fakelag: {{enabled: {fakelag}, window: 1s, burst-limit: 5, messages-per-window: 2, cooldown: 2s}}
history:
  enabled: true
  channel-length: 2048
  client-length: 256
  autoresize-window: 3d
  autoreplay-on-join: 0
  chathistory-maxmessages: 100
  znc-maxmessages: 2048
  restrictions: {{expire-time: 1w, query-cutoff: none, grace-period: 1h}}
  retention: {{allow-individual-delete: false, enable-account-indexing: false}}
  tagmsg-storage: {{default: false}}
"""


def program(name: str) -> str:
    """Return the path of a server's program, empty where it is not installed.

    `ergo` is also the name of a program for chemistry; `STEERSMAN_TEST_ERGO` names the IRC server.
    """
    if name == "ergo":
        return os.environ.get("STEERSMAN_TEST_ERGO", "")
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""


class IrcServer(ServerProgram):
    """A server; `address` is its host and port, which stay the same when it is started again."""

    def __init__(self, kind: str, folder: Path, password: str = "", fakelag: bool = False) -> None:
        super().__init__(folder)
        self.kind = kind
        self.address = f"127.0.0.1:{self.port}"
        self._write(password, fakelag)

    def _write(self, password: str, fakelag: bool) -> None:
        if self.kind == "ngircd":
            text = NGIRCD.format(
                port=self.port, password=f"Password = {password}" if password else ""
            )
        else:
            hashed = self._hashed(password) if password else ""
            said = f'  password: "{hashed}"' if password else ""
            text = ERGO.format(
                port=self.port, folder=self.folder, password=said, fakelag=str(fakelag).lower()
            )
        (self.folder / "config").write_text(text)

    def _hashed(self, password: str) -> str:
        given = f"{password}\n{password}\n".encode()
        ran = subprocess.run(
            [program("ergo"), "genpasswd"], input=given, capture_output=True, check=True
        )
        return ran.stdout.decode().strip().splitlines()[-1]

    def start(self) -> None:
        """Start it, and wait until it listens."""
        config = str(self.folder / "config")
        words = ["-n", "-f", config] if self.kind == "ngircd" else ["run", "--conf", config]
        if self.kind == "ergo" and not (self.folder / "ircd.db").exists():
            subprocess.run(
                [program("ergo"), "initdb", "--conf", config], check=True, capture_output=True
            )
        self.launch(program(self.kind), *words)


class RawClient:
    """A person with a socket and nothing else; every wait is bounded."""

    def __init__(self, server: IrcServer, nick: str, account: str = "", caps: str = "") -> None:
        self.nick = nick
        self._socket = socket.create_connection(("127.0.0.1", server.port), seconds(10))
        self._rest = b""
        self.seen: list[str] = []
        if account or caps:
            self.say(f"CAP REQ :{caps or 'account-tag'}")
        self.say(f"NICK {nick}", f"USER {nick} 0 * :{nick}")
        if account or caps:
            self.say("CAP END")
        self.wait(lambda line: " 376 " in line or " 422 " in line)
        if account:
            self.say("PRIVMSG NickServ :REGISTER secret-word")
            if account != nick:
                raise ValueError("an account has the name of the nick that registers it")
            self.wait(lambda line: " 900 " in line or "logged in" in line)

    def say(self, *lines: str | bytes) -> None:
        """Send lines as they are."""
        for line in lines:
            self._socket.sendall((line if isinstance(line, bytes) else line.encode()) + b"\r\n")

    def join(self, room: str) -> None:
        """Join a room, and wait until that is so."""
        self.say(f"JOIN {room}")
        self.wait(lambda line: " 366 " in line and room.lower() in line.lower())

    def wait(self, wanted: Callable[[str], bool]) -> str:
        """Return the next line that is wanted; fails if none comes."""
        until = time.monotonic() + seconds(15)
        while time.monotonic() < until:
            line = self._line(until)
            self.seen.append(line)
            if wanted(line):
                return line
        raise AssertionError(f"{self.nick} waits in vain; it saw {self.seen}")

    def hears(self, text: str) -> str:
        """Wait for a line that contains a text."""
        return self.wait(lambda line: text in line)

    def barrier(self) -> None:
        """Wait until the server has done all that was asked."""
        token = f"b{len(self.seen)}"
        self.say(f"PING {token}")
        self.wait(lambda line: " PONG " in line and token in line)

    def _line(self, until: float) -> str:
        while b"\n" not in self._rest:
            self._socket.settimeout(max(0.01, until - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                raise AssertionError(f"{self.nick} waits in vain; it saw {self.seen}") from None
            if not data:
                raise AssertionError(f"the server closed {self.nick}; it saw {self.seen}")
            self._rest += data
        raw, _, self._rest = self._rest.partition(b"\n")
        line = raw.rstrip(b"\r").decode("utf-8", "replace")
        if line.startswith("PING"):
            self.say("PONG" + line[4:])
        return line if " " in line else f"{line} -"

    def close(self) -> None:
        """Leave without a word. Idempotent."""
        self._socket.close()
