"""IRC: channels and private chats of one server.

`irctokens` reads and writes the lines, and asyncio carries them. Of the whole clients, `irc` ends at a
byte that is not UTF-8, `pydle` splits by characters instead of bytes, `bottom` drops what it cannot
decode; `ircstates` fails at a case mapping that it does not know. None confirms what was sent.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import ssl
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TypeVar

from irctokens.line import Line
from pydantic import BaseModel, ConfigDict, Field

from ...machines.errors import ConfigError, SteersmanError
from .irc_connection import Access, Connection, washed
from .irc_line import moment, refuses, said_text, seconds, stamp
from .platform import Gap, Inbound, Limits, Memory, NotSent, Outgoing, Said

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between two connections
LONGEST_REJOIN = 300.0  # seconds between two attempts to join a room
SETTLED_SECONDS = 20.0  # a server answers each JOIN by then, or is taken not to
CONFIRM_SECONDS = 30.0  # a connection that does not confirm a line by then is dead
ECHO_SECONDS = 5.0  # an echo that has not come by then is asked after
SEEN_SECONDS = 30.0  # how often the time of the last line is remembered, at most
WAITING = 1000  # messages that wait for the reader; then the server waits
NAME_BYTES = 34  # of a nick that is mentioned, with ": "
PREFIX_BYTES = 1 + 1 + 20 + 1 + 64 + 1  # ":", "!", the user, "@", the host, and the space
OWN_ID = "~"  # begins ids that are made here; no server's id begins so

_NEVER_JOINED = frozenset(("403", "448", "476", "479"))
_NOT_JOINED = frozenset("405 437 470 471 473 474 475 477 480 489 520".split())


V = TypeVar("V")


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

    def access(self) -> Access:
        """Return where and as whom to connect; raises `ConfigError`, also for a missing secret."""
        host, _, port = self.server.rpartition(":")
        host = host.strip("[]")
        is_encrypted = not _is_here(host) if self.tls is None else self.tls
        if bool(self.sasl_account) != bool(self.sasl_password_env):
            raise ConfigError("`sasl_account` and `sasl_password_env` go together")
        secrets = (_secret(self.password_env), _secret(self.sasl_password_env))
        if any(secrets) and not is_encrypted and not _is_here(host):
            raise ConfigError(
                f"a password would go to `{host}` unencrypted",
                "Leave `tls` out, and use the port for TLS.",
            )
        return Access(
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


@dataclass
class _Room:
    """A room as it is at this moment.

    `since`: from when on nothing was heard in it, nothing if that is not so; `held` are messages that
    wait for older ones; `refusal` is why we are not in it, until `retry` on the loop's clock.
    """

    name: str
    is_channel: bool
    is_joined: bool = False
    is_asked: bool = False
    since: float | None = None
    joined_at: float = 0.0
    attempts: int = 0
    refusal: str = ""
    retry: float = 0.0
    held: list[_Heard] | None = None


@dataclass
class _Heard:
    """Something for the reader: when it came, and what of it has to be remembered once it is on disk."""

    item: Inbound
    at: float
    mark: str = ""


@dataclass
class _Sending:
    """A line that the server has not confirmed."""

    target: str
    text: str
    label: str
    token: str
    confirmed: asyncio.Future[str]
    refusal: NotSent | None = None


@dataclass
class _History:
    """What is fetched of the rooms' histories: one page at a time, in the order that it was asked for."""

    is_first: bool = True
    asked: deque[str] = field(default_factory=deque[str])
    batches: dict[str, tuple[str, list[Line]]] = field(
        default_factory=dict[str, tuple[str, list[Line]]]
    )


class Irc:
    """A nick on an IRC server.

    Who a `sender` is, by what the server supports:

    | server                               | person        | `sender`                                |
    |--------------------------------------|---------------|-----------------------------------------|
    | has accounts (`account-tag`)         | logged in     | `account`, in lower case                |
    | has accounts (`account-tag`)         | not logged in | `~nick`, which is never an account      |
    | none (`check` says so)               | anybody       | the nick in lower case; **anybody can   |
    |                                      |               | take it when its owner is away**        |

    Lower case is by the server's case mapping. Each line is judged by what the server says with that
    line, so that a change of nick or account counts at once. A private chat has the name of the nick:
    what is sent there reaches who has the nick at that moment.

    Not supported: threads, changes, reactions, and deletions, as IRC has none; CTCP but ACTION, and
    notices, which are neither read nor answered so that two programs do not talk without end.
    """

    def __init__(self, settings: IrcSettings, rooms: tuple[str, ...]) -> None:
        for name in rooms:
            if re.search(r"[\s,\0\a:]", name) or not name or len(name.encode()) > 64:
                raise ConfigError(f"`{washed(name)}` is not the name of a room on IRC")
        self._settings = settings
        self._access = settings.access()
        self._names = rooms
        self.limits = Limits(
            bytes=_room_for_text(len(settings.nick) + 4, rooms),
            lines=1,
            interval=settings.interval,
        )
        self._rooms: dict[str, _Room] = {}
        self._connection: Connection | None = None
        self._is_ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._items: asyncio.Queue[_Heard | None] = asyncio.Queue(WAITING)
        self._in_hand: _Heard | None = None
        self._memory: Memory | None = None
        self._marks: dict[str, str] = {}
        self._history = _History()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._nicks: OrderedDict[str, str] = OrderedDict()
        self._heard_at = 0.0  # seconds since 1970 of the last line
        self._seen_at = 0.0  # what of it is remembered
        self._began = f"{time.time_ns():x}"
        self._count = 0
        self._turn = asyncio.Lock()
        self._sending: _Sending | None = None
        self._tokens, self._filled_at = float(settings.burst), time.monotonic()

    @property
    def own_name(self) -> str:
        """The nick."""
        return self._connection.nick if self._connection is not None else self._settings.nick

    def sender_of(self, name: str) -> str:
        """Return a nick or account in lower case, as the server sees it."""
        return self._connection.fold(name) if self._connection is not None else name.lower()

    # Reading --------------------------------------------------------------------------------------

    async def inbound(self, memory: Memory) -> AsyncGenerator[Inbound, None]:
        """Yield what people say in the rooms, see `Platform.inbound`."""
        self._recall(memory)
        self._start(self._serve())
        while not self._is_closed:
            try:
                async with asyncio.timeout(SEEN_SECONDS):
                    heard = await self._items.get()
            except TimeoutError:
                if self._failure is not None:
                    break
                await self._remember_seen()
                continue
            if heard is None:
                break
            self._in_hand = heard
            yield heard.item
            self._in_hand = None
            if heard.mark and isinstance(heard.item, Said):
                await memory.put(f"mark {heard.item.room}", heard.mark)
            if self._heard_at - self._seen_at > SEEN_SECONDS:
                await self._remember_seen()
        if self._failure is not None:
            raise self._failure

    def _recall(self, memory: Memory) -> None:
        self._memory = memory
        word = memory.get("seen")
        since = float(word) if re.fullmatch(r"\d+(\.\d+)?", word) else None
        for name in self._names:
            self._rooms[name] = _Room(name, name[:1] in "#&+!", since=since)
            self._marks[name] = memory.get(f"mark {name}")

    async def _remember_seen(self) -> None:
        """Remember when we last heard the server, but nothing after what waits for the reader."""
        at = self._heard_at
        is_behind = any(
            room.since is not None or room.held is not None for room in self._rooms.values()
        )
        if is_behind or not self._items.empty():
            return
        if self._in_hand is not None:
            at = min(at, self._in_hand.at)
        if self._memory is not None and at > self._seen_at:
            self._seen_at = at
            await self._memory.put("seen", f"{at:.3f}")

    async def _serve(self) -> None:
        """Stay connected until `aclose`, or until there is a reason that no waiting repairs."""
        pause = FIRST_PAUSE
        while not self._is_closed:
            began = time.monotonic()
            try:
                await self._stay()
            except OSError:
                pass
            pause = FIRST_PAUSE if time.monotonic() - began > LONGEST_PAUSE else pause
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _stay(self) -> None:
        connection = await Connection.open(self._access)
        watch = asyncio.create_task(self._watch(connection))
        try:
            await self._begin(connection)
            while True:
                line = await connection.read()
                self._heard_at = time.time()
                try:
                    await self._take(connection, line)
                except (IndexError, ValueError):  # words or a sender are missing
                    continue
        finally:
            watch.cancel()
            self._end(connection)

    async def _begin(self, connection: Connection) -> None:
        self._connection = connection
        self._heard_at = time.time()
        self._history = _History()
        for room in self._rooms.values():
            room.attempts = 0
            if room.is_channel:
                self._join(connection, room)
            else:
                await self._catch_up(connection, room)
        self._settle()

    def _end(self, connection: Connection) -> None:
        connection.close()
        self._connection = None
        if self._failure is None:
            self._is_ready.clear()
        for room in self._rooms.values():
            if room.held is not None:  # the server has them still: they are fetched with the rest
                for heard in room.held:
                    if isinstance(heard.item, Said):
                        self._known.pop(heard.item.id, None)
            elif room.since is None and (room.is_joined or not room.is_channel):
                room.since = self._heard_at
            room.is_joined, room.is_asked, room.held = False, False, None
        if self._sending is not None and not self._sending.confirmed.done():
            self._sending.confirmed.set_exception(
                ConnectionResetError("the connection broke before the server confirmed the line")
            )

    async def _watch(self, connection: Connection) -> None:
        """Notice a dead connection, return to rooms, and take the nick back when it is free."""
        step = min(self._settings.ping_seconds / 2, 1.0)
        began, asked, regain = time.monotonic(), 0.0, time.monotonic()
        while True:
            await asyncio.sleep(step)
            now, silent = time.monotonic(), time.time() - self._heard_at
            if silent > self._settings.ping_seconds and now - asked > self._settings.ping_seconds:
                if asked and silent > self._settings.ping_seconds * 2:
                    connection.close()
                    return
                connection.write("PING", "steersman")
                asked = now
            if now - began > SETTLED_SECONDS:
                self._is_ready.set()
            for room in self._rooms.values():
                if (
                    room.is_channel
                    and not room.is_joined
                    and not room.is_asked
                    and now >= room.retry
                ):
                    self._join(connection, room)
            if now - regain > 60.0:
                regain = now
                self._regain(connection)

    def _join(self, connection: Connection, room: _Room) -> None:
        room.is_asked = True
        connection.write("JOIN", room.name)

    def _regain(self, connection: Connection) -> None:
        if connection.fold(connection.nick) != connection.fold(self._settings.nick):
            connection.write("NICK", self._settings.nick)

    def _settle(self) -> None:
        if all(room.is_joined or not room.is_asked for room in self._rooms.values()):
            self._is_ready.set()

    async def _take(self, connection: Connection, line: Line) -> None:
        tags = line.tags or {}
        if line.command == "BATCH":
            await self._take_batch(connection, line)
            return
        if tags.get("batch", "") in self._history.batches:
            self._history.batches[tags["batch"]][1].append(line)
            return
        connection.note(line)
        self._confirm(connection, line)
        nick = line.hostmask.nickname if line.source else ""
        is_own = connection.fold(nick) == connection.fold(connection.nick)
        match line.command:
            case "PRIVMSG" if not is_own:
                await self._take_message(connection, line)
            case "JOIN" if is_own:
                connection.prefix = line.source or ""
                await self._joined(connection, line.params[0])
            case "KICK" if connection.fold(line.params[1]) == connection.fold(connection.nick):
                self._left(connection, line.params[0], washed(line.params[-1]))
            case "PART" if is_own:
                self._left(connection, line.params[0], "left")
            case "NICK":
                self._renamed(connection, nick, line.params[-1], is_own=is_own)
            case "QUIT":
                if connection.fold(nick) == connection.fold(self._settings.nick):
                    self._regain(connection)
            case "FAIL" if line.params[:1] == ["CHATHISTORY"]:
                await self._caught_up(connection, [], is_failed=True)
            case _:
                self._not_joined(connection, line)

    async def _take_message(self, connection: Connection, line: Line) -> None:
        heard = self._heard(connection, line)
        if heard is None:
            return
        room = self._rooms.get(heard.item.room)
        if room is not None and room.held is not None:
            room.held.append(heard)
        else:
            await self._hand_over(heard)

    def _heard(self, connection: Connection, line: Line) -> _Heard | None:
        """Return what a line says, nothing if it is not for us or was heard before."""
        text = said_text(line)
        nick = washed(line.hostmask.nickname)
        room, is_private = self._room_of(connection, line.params[0], nick)
        tags = line.tags or {}
        id = tags.get("msgid", "")
        if not text or not room or id in self._known:
            return None
        sender = self._sender(connection, line)
        if id:
            _keep(self._known, id, None)
        _keep(self._nicks, sender, nick)
        said = Said(
            id=id or self._next_id(),
            room=room,
            sender=sender,
            text=text,
            name=nick,
            to=washed(tags.get("+draft/reply", "") or tags.get("+reply", "")),
            is_private=is_private,
        )
        mark = f"{tags['time']} {id}" if id and "time" in tags and room in self._rooms else ""
        return _Heard(said, time.time(), mark)

    def _room_of(self, connection: Connection, target: str, nick: str) -> tuple[str, bool]:
        is_private = connection.fold(target) == connection.fold(connection.nick)
        if not is_private and connection.fold(target) == connection.fold(self._settings.nick):
            is_private = True  # from the history, where we had the other nick
        wanted = connection.fold(nick if is_private else target)
        for name in self._names:
            if connection.fold(name) == wanted:
                return name, is_private
        return (wanted if is_private else ""), is_private

    def _sender(self, connection: Connection, line: Line) -> str:
        nick = connection.fold(line.hostmask.nickname)
        if "account-tag" not in connection.caps:
            return nick
        account = connection.fold((line.tags or {}).get("account", ""))
        return account if account and account[0] not in "~*" else f"~{nick}"

    async def _hand_over(self, heard: _Heard) -> None:
        if heard.mark and isinstance(heard.item, Said):
            self._marks[heard.item.room] = heard.mark
        await self._items.put(heard)

    def _renamed(self, connection: Connection, old: str, new: str, *, is_own: bool) -> None:
        if is_own:
            connection.nick = new
        elif connection.fold(old) == connection.fold(self._settings.nick):
            self._regain(connection)
        for sender, nick in self._nicks.items():
            if connection.fold(nick) == connection.fold(old):
                self._nicks[sender] = washed(new)

    # Rooms ----------------------------------------------------------------------------------------

    def _room(self, connection: Connection, name: str) -> _Room | None:
        wanted = connection.fold(name)
        return next((r for r in self._rooms.values() if connection.fold(r.name) == wanted), None)

    async def _joined(self, connection: Connection, name: str) -> None:
        room = self._room(connection, name)
        if room is None:  # somebody forced us: nothing there is for us
            connection.write("PART", name)
            return
        room.is_joined, room.is_asked, room.refusal = True, False, ""
        room.joined_at = time.monotonic()
        self._settle()
        await self._catch_up(connection, room)

    def _left(self, connection: Connection, name: str, reason: str) -> None:
        room = self._room(connection, name)
        if room is not None:
            if room.joined_at and time.monotonic() - room.joined_at > LONGEST_REJOIN:
                room.attempts = 0
            if room.held is None:
                room.since = room.since or time.time()
            room.is_joined, room.refusal = False, reason
            self._retry(room)

    def _not_joined(self, connection: Connection, line: Line) -> None:
        if line.command not in _NEVER_JOINED | _NOT_JOINED or len(line.params) < 2:
            return
        room = self._room(connection, line.params[1])
        if room is None or not room.is_asked:
            return
        reason = washed(line.params[-1])
        if line.command in _NEVER_JOINED:
            raise ConfigError(
                f"the room `{room.name}` cannot be joined: {reason}",
                "Correct its name under `rooms`.",
            )
        room.is_asked, room.refusal = False, reason
        self._retry(room)
        self._settle()

    def _retry(self, room: _Room) -> None:
        room.retry = time.monotonic() + min(2.0**room.attempts, LONGEST_REJOIN)
        room.attempts += 1

    # What was missed ------------------------------------------------------------------------------

    async def _catch_up(self, connection: Connection, room: _Room) -> None:
        since, room.since = room.since, None
        if since is None and not self._marks[room.name]:
            return
        if "draft/chathistory" not in connection.caps or "batch" not in connection.caps:
            if since is not None:
                await self._hand_over(_Heard(Gap(room=room.name, since=since), since))
            return
        room.held, room.since = [], since
        self._history.asked.append(room.name)
        if len(self._history.asked) == 1:
            self._ask(connection, room)

    def _ask(self, connection: Connection, room: _Room, after: str = "") -> None:
        """Ask for the messages after one, at first for those after the last one known, with itself.

        A server that was started anew does not have that one any more, and so says that more may be lost.
        """
        if not after:
            mark = self._marks[room.name].partition(" ")[0]
            at = moment(mark) if mark else datetime.fromtimestamp(room.since or 0.0).astimezone()
            after = f"timestamp={stamp(at - timedelta(milliseconds=1))}"
        connection.write("CHATHISTORY", "AFTER", room.name, after, str(self._page(connection)))

    def _page(self, connection: Connection) -> int:
        most = connection.supports.get("CHATHISTORY", "")
        return min(int(most) if most.isdigit() and int(most) else 100, 100)

    async def _take_batch(self, connection: Connection, line: Line) -> None:
        reference = line.params[0]
        if reference.startswith("+") and line.params[1:2] == ["chathistory"]:
            self._history.batches[reference[1:]] = (line.params[-1], [])
        elif reference.startswith("-") and reference[1:] in self._history.batches:
            _, lines = self._history.batches.pop(reference[1:])
            await self._caught_up(connection, lines)

    async def _caught_up(
        self, connection: Connection, lines: list[Line], *, is_failed: bool = False
    ) -> None:
        """Take a page of a room's history, and ask for the next one, or for that of the next room."""
        if not self._history.asked:
            return
        room = self._rooms[self._history.asked[0]]
        ids = [(line.tags or {}).get("msgid", "") for line in lines]
        known = self._marks[room.name].partition(" ")[2]
        is_whole = not self._history.is_first or bool(known and known in ids)
        if is_failed or not is_whole:
            since = (
                room.since if not known else moment(self._marks[room.name].split()[0]).timestamp()
            )
            if since is not None:
                await self._hand_over(_Heard(Gap(room=room.name, since=since), since))
        room.since = None
        for line in lines:
            is_known = known and (line.tags or {}).get("msgid", "") == known
            if line.command == "PRIVMSG" and not is_known and not self._is_own(connection, line):
                heard = self._heard(connection, line)
                if heard is not None:
                    await self._hand_over(heard)
        if len(lines) >= self._page(connection) and ids[-1]:
            self._history.is_first = False
            self._ask(connection, room, f"msgid={ids[-1]}")
            return
        await self._release(connection, room)

    async def _release(self, connection: Connection, room: _Room) -> None:
        held, room.held = room.held or [], None
        for heard in held:
            await self._hand_over(heard)
        self._history.asked.popleft()
        self._history.is_first = True
        if self._history.asked:
            self._ask(connection, self._rooms[self._history.asked[0]])

    def _is_own(self, connection: Connection, line: Line) -> bool:
        """Tell whether we said a line of the history, perhaps with another nick."""
        if self._access.account and "account-tag" in connection.caps:
            account = (line.tags or {}).get("account", "")
            return connection.fold(account) == connection.fold(self._access.account)
        own = (connection.nick, self._settings.nick)
        return connection.fold(line.hostmask.nickname) in {connection.fold(nick) for nick in own}

    # Sending --------------------------------------------------------------------------------------

    async def send(self, message: Outgoing) -> str:
        """Send one line, see `Platform.send`; the id is the server's, or made here if it has none."""
        async with self._turn:
            connection = await self._connected()
            room = self._room(connection, message.room)
            if room is not None and room.is_channel and not room.is_joined:
                pause = max(1.0, room.retry - time.monotonic())
                raise NotSent(f"not in `{room.name}`: {room.refusal}", seconds=pause)
            await self._pace()
            return await self._deliver(connection, message)

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Refuse: nothing on IRC can be changed."""
        raise NotSent("a message on IRC cannot be changed")

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Do nothing: it would count against the number of lines that a server takes."""

    async def _connected(self) -> Connection:
        while True:
            await self._is_ready.wait()
            if self._failure is not None or self._is_closed:
                raise NotSent("not connected to the IRC server", seconds=60.0)
            if self._connection is not None:
                return self._connection

    async def _pace(self) -> None:
        settings = self._settings
        if settings.interval:
            now = time.monotonic()
            filled = self._tokens + (now - self._filled_at) / settings.interval
            self._tokens, self._filled_at = min(filled, float(settings.burst)) - 1, now
            if self._tokens < 0:
                await asyncio.sleep(-self._tokens * settings.interval)

    def _text(self, message: Outgoing) -> str:
        text = washed(message.text).strip()
        if not text:
            raise NotSent("a line without text is not taken by IRC")
        if not message.mentions:
            return text
        nick = self._nicks.get(message.mentions, washed(message.mentions.lstrip("~")))
        return f"{nick}: {text}" if nick and " " not in nick else text

    async def _deliver(self, connection: Connection, message: Outgoing) -> str:
        text, target = self._text(message), message.room
        if re.search(r"[\s,\0:]", target) or not target:
            raise NotSent(f"`{washed(target)}` is not the name of a room on IRC")
        prefix = len(connection.prefix.encode()) + 2 if connection.prefix else PREFIX_BYTES + 34
        if prefix + len(f"PRIVMSG {target} :{text}\r\n".encode()) > 512:
            raise NotSent("the line is longer than IRC takes")
        self._count += 1
        sending = _Sending(
            connection.fold(target),
            text,
            f"s{self._count}",
            f"steersman-{self._began}-{self._count}",
            asyncio.get_running_loop().create_future(),
        )
        self._sending = sending
        try:
            connection.write("PRIVMSG", target, text, tags=self._tags(connection, message, sending))
            await connection.drain()
            return await self._confirmed(connection, sending)
        finally:
            self._sending = None

    def _tags(
        self, connection: Connection, message: Outgoing, sending: _Sending
    ) -> dict[str, str] | None:
        tags: dict[str, str] = {}
        if {"labeled-response", "echo-message"} <= connection.caps:
            tags["label"] = sending.label
        if (
            "message-tags" in connection.caps
            and 0 < len(message.to) <= 200
            and message.to[0] != OWN_ID
        ):
            tags["+draft/reply"] = message.to
        return tags or None

    async def _confirmed(self, connection: Connection, sending: _Sending) -> str:
        """Wait for the server's echo, else for its answer to a question that came after the line."""
        if "echo-message" in connection.caps:
            done, _ = await asyncio.wait((sending.confirmed,), timeout=ECHO_SECONDS)
            if done:
                return await sending.confirmed
        connection.write("PING", sending.token)
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                return await sending.confirmed
        except TimeoutError:
            connection.close()
            raise

    def _confirm(self, connection: Connection, line: Line) -> None:
        """See whether a line says what became of the one that is being sent."""
        sending = self._sending
        if sending is None or sending.confirmed.done():
            return
        words, tags = line.params, line.tags or {}
        if line.command == "PONG" and sending.token in words:
            self._answered(connection, sending)
        elif line.command == "PRIVMSG" and self._is_echo(connection, line, sending):
            sending.confirmed.set_result(tags.get("msgid", "") or self._next_id())
        elif refuses(line) and (
            tags.get("label", "") == sending.label
            or any(connection.fold(word) in (sending.target, "privmsg") for word in words[:-1])
        ):
            refusal = NotSent(
                f"refused by the IRC server: {washed(words[-1])}", seconds=seconds(line)
            )
            sending.confirmed.set_exception(refusal)

    def _answered(self, connection: Connection, sending: _Sending) -> None:
        if "echo-message" in connection.caps:
            sending.confirmed.set_exception(NotSent("the IRC server did not pass the line on"))
        else:
            sending.confirmed.set_result(self._next_id())

    def _is_echo(self, connection: Connection, line: Line, sending: _Sending) -> bool:
        nick = line.hostmask.nickname if line.source else ""
        if "echo-message" not in connection.caps or connection.fold(nick) != connection.fold(
            connection.nick
        ):
            return False
        label = (line.tags or {}).get("label", "")
        is_same = (
            connection.fold(line.params[0]) == sending.target and line.params[-1] == sending.text
        )
        return label == sending.label if label else is_same

    def _next_id(self) -> str:
        self._count += 1
        return f"{OWN_ID}{self._began}.{self._count}"

    # The rest -------------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        """Connect and join once, see `Platform.check`."""
        try:
            connection = await Connection.open(self._access)
        except OSError as error:
            raise SteersmanError(
                f"no connection to `{self._settings.server}`: {washed(repr(error))}",
                "Check `server` and `tls`, and whether the server runs.",
            ) from error
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                lines = _found(self._access, connection)
                return lines + [await _tried(connection, name) for name in self._names]
        except OSError as error:
            raise SteersmanError(
                f"the server closed the connection: {washed(str(error))}"
            ) from error
        finally:
            await connection.aclose()

    async def aclose(self) -> None:
        """Disconnect. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._remember_seen()
        connection = self._connection
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if connection is not None:
            await connection.aclose()
        self._is_ready.set()
        while not self._items.empty():
            self._items.get_nowait()
        self._items.put_nowait(None)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Hand what ended the connection for good to those who wait for it."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = error
            self._is_ready.set()
            with suppress(asyncio.QueueFull):  # then the reader is not waiting
                self._items.put_nowait(None)


def _secret(variable: str) -> str:
    """Return what an environment variable holds; raises `ConfigError` if it is named but not set."""
    if variable and not os.environ.get(variable):
        raise ConfigError(
            f"the environment variable `{variable}` is not set",
            f"Set `{variable}` to the password.",
        )
    return os.environ.get(variable, "") if variable else ""


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _room_for_text(nick: int, rooms: tuple[str, ...]) -> int:
    """Return the bytes that a line has for text when the server's longest prefix is before it."""
    longest = max((len(name.encode()) for name in rooms), default=0)
    around = len("\r\n") + len("PRIVMSG  :") + max(longest, 32)
    return 512 - PREFIX_BYTES - nick - around - NAME_BYTES


def _keep(words: OrderedDict[str, V], word: str, value: V) -> None:
    """Keep a word, and drop the oldest of too many."""
    words[word] = value
    words.move_to_end(word)
    if len(words) > 2 * WAITING:
        words.popitem(last=False)


def _found(access: Access, connection: Connection) -> list[str]:
    network = washed(connection.supports.get("NETWORK", "")) or connection.server
    with_tls = "TLS" if access.tls else "no TLS"
    account = f", account `{access.account}`" if access.account else ""
    if "account-tag" in connection.caps:
        people = "people are known by their account, and as `~nick` without one"
    else:
        people = "no accounts here: people are known by their nick, which anybody can take"
    history = "draft/chathistory" in connection.caps
    return [
        f"server: {network} ({connection.server}), {with_tls}",
        f"nick: {washed(connection.nick)}{account}",
        f"people: {people}",
        "history: " + ("what is missed is fetched" if history else "none; what is missed is lost"),
    ]


async def _tried(connection: Connection, name: str) -> str:
    """Join a room and say how that went; raises `ConfigError` if it cannot be joined."""
    if name[:1] not in "#&+!":
        return f"room {name}: a private chat"
    connection.write("JOIN", name)
    wanted = connection.fold(name)
    while True:
        line = await connection.read()
        words = [connection.fold(word) for word in line.params]
        if line.command == "JOIN" and words[:1] == [wanted]:
            nick = line.hostmask.nickname if line.source else ""
            if connection.fold(nick) == connection.fold(connection.nick):
                return f"room {name}: joined"
        elif line.command in _NEVER_JOINED | _NOT_JOINED and wanted in words[1:2]:
            raise ConfigError(
                f"the room `{name}` cannot be joined: {washed(line.params[-1])}",
                "Correct its name under `rooms`, or let the nick in.",
            )
