"""Many people in the rooms of a real chat server, which can be cut off, and killed and started again."""

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from support.irc_server import IrcServer, RawClient
from support.matrix_server import MatrixServer
from support.telegram_server import TOKEN, TelegramServer

__all__ = ["CROWDS", "Crowd", "Tunnel"]

PEOPLE = tuple(f"p{number:02}" for number in range(20))
_GATEWAY = "steers"


class Tunnel:
    """Carries the connections of a gateway to its server; they can be cut, and refused for a while."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._ends = set[socket.socket]()
        self._is_open = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break all connections, with what is on its way."""
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def shut(self) -> None:
        """Let no connection through any more."""
        self._is_open = False
        self.cut()

    def open(self) -> None:
        """Let connections through again."""
        self._is_open = True

    def close(self) -> None:
        """End all. Idempotent."""
        self.shut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client:
            if not self._is_open:
                return
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._server)) as server:
                self._ends |= {client, server}
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()
                self._ends -= {client, server}


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes, until one of both is closed."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Crowd(Protocol):
    """Twenty people in some rooms. `gaps`: whether what is said while the gateway is away may be lost."""

    rooms: tuple[str, ...]
    environ: dict[str, str]
    config: str
    gaps: bool
    tunnel: Tunnel

    def say(self, who: int, room: int, text: str) -> None:
        """Say something, so that the server has it."""
        ...

    def texts(self, room: int) -> list[str]:
        """Return what the gateway has said in a room, as it stands there now, the oldest first."""
        ...

    def is_joined(self) -> bool:
        """Whether the gateway is in all rooms."""
        ...

    def restart(self, meanwhile: Callable[[], None]) -> None:
        """Kill the server, and start it again; `meanwhile` is done while there is none."""
        ...

    def close(self) -> None:
        """End the server."""
        ...


def people_of(platform: str, names: list[str]) -> str:
    """Return the table of people, by their names on a platform."""
    lines = [
        f'{name} = {{ {platform} = "{known}" }}' for name, known in zip(PEOPLE, names, strict=True)
    ]
    return "[people]\n" + "\n".join(lines) + "\n"


def rooms_of(names: tuple[str, ...]) -> str:
    """Return the rooms of a gateway's table: what waited goes on when the gateway is started again."""
    rooms = ", ".join(f'"{name}" = {{ on_restart = "resume" }}' for name in names)
    return f"rooms = {{ {rooms} }}\n"


class IrcCrowd:
    """Channels of ngircd, which keeps nothing: what is said while the gateway is away is lost."""

    gaps = True

    def __init__(self, folder: Path) -> None:
        self.server = IrcServer("ngircd", folder)
        self.server.start()
        self.tunnel = Tunnel(self.server.port)
        self.rooms = tuple(f"#dev{number}" for number in range(4))
        self.environ: dict[str, str] = {}
        self.config = people_of("irc", list(PEOPLE)) + (
            f'[gateways.irc]\nserver = "127.0.0.1:{self.tunnel.port}"\nnick = "{_GATEWAY}"\n'
            f"interval = 0.0\n{rooms_of(self.rooms)}"
        )
        self._said: dict[str, list[str]] = {room: [] for room in self.rooms}
        self._read = 0
        self._people: list[RawClient] = []
        self._watcher: RawClient | None = None
        self._enter()

    def _enter(self) -> None:
        self._read = 0
        self._watcher = RawClient(self.server, "watcher")
        self._people = [RawClient(self.server, name) for name in PEOPLE]
        for client in (self._watcher, *self._people):
            for room in self.rooms:
                client.join(room)

    def say(self, who: int, room: int, text: str) -> None:
        self._people[who].say(f"PRIVMSG {self.rooms[room]} :{text}")
        self._people[who].barrier()

    def texts(self, room: int) -> list[str]:
        self._take()
        return list(self._said[self.rooms[room]])

    def _take(self) -> None:
        """Take over what the watcher has seen."""
        assert self._watcher is not None
        self._watcher.barrier()
        for line in self._watcher.seen[self._read :]:
            found = re.fullmatch(rf":{_GATEWAY}_*!\S+ PRIVMSG (\S+) :(.*)", line)
            if found:
                self._said[found[1]].append(found[2])
        self._read = len(self._watcher.seen)

    def is_joined(self) -> bool:
        assert self._watcher is not None
        for room in self.rooms:
            self._watcher.say(f"NAMES {room}")
            names = self._watcher.wait(lambda line: " 353 " in line or " 366 " in line)
            if " 353 " in names:
                self._watcher.hears(" 366 ")
            if _GATEWAY not in names:
                return False
        return True

    def restart(self, meanwhile: Callable[[], None]) -> None:
        self.tunnel.shut()
        self._take()
        self._leave()
        self.server.kill()
        meanwhile()
        self.server.start()
        self._enter()
        self.tunnel.open()

    def _leave(self) -> None:
        for client in (self._watcher, *self._people):
            if client is not None:
                client.close()

    def close(self) -> None:
        self._leave()
        self.tunnel.close()
        self.server.close()


class _LastingCrowd:
    """People of a server that keeps what is said while the gateway is away."""

    gaps = False
    server: MatrixServer | TelegramServer
    tunnel: Tunnel

    def restart(self, meanwhile: Callable[[], None]) -> None:
        self.server.kill()
        meanwhile()
        self.server.start()

    def close(self) -> None:
        self.tunnel.close()
        self.server.close()


class MatrixCrowd(_LastingCrowd):
    """Rooms of Synapse."""

    def __init__(self, folder: Path) -> None:
        self.server = MatrixServer(folder)
        self.server.start()
        self.tunnel = Tunnel(self.server.port)
        self._people = [self.server.person(name) for name in PEOPLE]
        self._bot = self.server.person(_GATEWAY)
        self.rooms = tuple(self._room() for _ in range(10))
        self.environ = {"STEERSMAN_MATRIX_TOKEN": self._bot.token}
        self.config = people_of("matrix", [person.id for person in self._people]) + (
            f'[gateways.matrix]\nserver = "http://127.0.0.1:{self.tunnel.port}"\n'
            f'account = "{self._bot.id}"\ntoken_env = "STEERSMAN_MATRIX_TOKEN"\n{rooms_of(self.rooms)}'
        )

    def _room(self) -> str:
        first, *others = self._people
        room = first.room(*others, self._bot, preset="public_chat")
        for person in others:
            person.join(room)
        return room

    def say(self, who: int, room: int, text: str) -> None:
        self._people[who].send(self.rooms[room], text)

    def texts(self, room: int) -> list[str]:
        shown: dict[str, str] = {}
        for event in self._people[0].read(self.rooms[room], 1_000):
            content: dict[str, Any] = event["content"]
            if event.get("sender") != self._bot.id or event["type"] != "m.room.message":
                continue
            about = content.get("m.relates_to", {})
            if about.get("rel_type") == "m.replace":
                shown[about["event_id"]] = content["m.new_content"]["body"]
            elif "body" in content:
                shown.setdefault(event["event_id"], content["body"])
        return list(shown.values())

    def is_joined(self) -> bool:
        return all(self._bot.id in self._members(room) for room in self.rooms)

    def _members(self, room: str) -> list[str]:
        return list(self._people[0].ask(f"rooms/{quote(room)}/joined_members")["joined"])


class TelegramCrowd(_LastingCrowd):
    """Groups of a server that implements the documented Bot API; a group takes a message in 3 seconds."""

    def __init__(self, folder: Path) -> None:
        self.server = TelegramServer(folder)
        self.server.start()
        self.tunnel = Tunnel(self.server.port)
        for number, name in enumerate(PEOPLE, 1):
            self.server.act("person", id=number, first_name=name)
        self.rooms = tuple(str(-100_100 - number) for number in range(20))
        for room in self.rooms:
            self.server.act("chat", id=int(room), type="supergroup", title="Team")
        self.environ = {"STEERSMAN_TELEGRAM_TOKEN": TOKEN}
        numbers = [str(number) for number in range(1, len(PEOPLE) + 1)]
        self.config = people_of("telegram", numbers) + (
            f'[gateways.telegram]\nserver = "http://127.0.0.1:{self.tunnel.port}"\n'
            f"{rooms_of(self.rooms)}"
        )

    def say(self, who: int, room: int, text: str) -> None:
        self.server.act("say", chat=int(self.rooms[room]), user=who + 1, text=text)

    def texts(self, room: int) -> list[str]:
        said = self.server.act("messages", chat=int(self.rooms[room]))
        return [sent["text"] for sent in said if sent.get("from", {}).get("is_bot")]

    def is_joined(self) -> bool:
        return any(call["method"] == "getUpdates" for call in self.server.act("calls"))


CROWDS: dict[str, Callable[[Path], Crowd]] = {
    "irc": IrcCrowd,
    "matrix": MatrixCrowd,
    "telegram": TelegramCrowd,
}
