"""IRC: channels and private chats of one server.

`irctokens` reads and writes the lines, and asyncio carries them. Of the whole clients, `irc` ends at a
byte that is not UTF-8, `pydle` splits by characters instead of bytes, `bottom` drops what it cannot
decode; `ircstates` fails at a case mapping that it does not know. None confirms what was sent.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator

from irctokens.line import Line

from ...gateway.chat.platform import Inbound, Memory, NotSent, Outgoing, PlatformLimits
from ...gateway.chat.platform_parts import BackgroundTasks, Contact, pauses
from ...machines.errors import ConfigError, SteersmanError
from .connection import IrcAccess, IrcConnection, IrcSettings, washed
from .history import IrcHistory
from .reader import IrcIds, IrcInbox, IrcReader
from .room import NEVER_JOINED, NOT_JOINED, IrcRooms
from .sender import CONFIRM_SECONDS, PREFIX_BYTES, IrcPace, IrcSender

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between two connections
SETTLED_SECONDS = 20.0  # a server answers each JOIN by then, or is taken not to
NAME_BYTES = 34  # of a nick that is mentioned, with ": "


class IrcLink:
    """The connection of this moment, if there is one, and why there will be none."""

    def __init__(self, server: str) -> None:
        self.contact = Contact(server)
        self.is_ready = asyncio.Event()
        self.is_closed = False
        self.connection: IrcConnection | None = None
        self.failure: BaseException | None = None

    def begin(self, connection: IrcConnection) -> None:
        """Use a connection; it is ready when its rooms are joined."""
        self.connection = connection
        self.contact.made()

    def end(self) -> None:
        """Note that there is none."""
        self.connection = None
        if self.failure is None:
            self.is_ready.clear()

    def fail(self, failure: BaseException) -> None:
        """Note why there will be none."""
        self.failure = failure
        self.is_ready.set()

    async def live(self) -> IrcConnection:
        """Wait for a connection that is ready. Raises `NotSent` if there will be none."""
        while True:
            await self.is_ready.wait()
            if self.failure is not None or self.is_closed:
                raise NotSent("not connected to the IRC server", seconds=60.0)
            if self.connection is not None:
                return self.connection


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
        # What a line has for text when the server's longest prefix is before it.
        longest = max([32, *(len(name.encode()) for name in rooms)])
        around = len("\r\n") + len("PRIVMSG  :") + longest + len(settings.nick) + 4
        room_for_text = 512 - PREFIX_BYTES - around - NAME_BYTES
        self.limits = PlatformLimits(bytes=room_for_text, lines=1, interval=settings.interval)
        ids = IrcIds()
        self._settings = settings
        self._access = settings.access()
        self._rooms = IrcRooms(rooms)
        self._reader = IrcReader(settings.nick, self._rooms, ids)
        self._inbox = IrcInbox(self._rooms)
        self._sender = IrcSender(self._reader, ids, IrcPace(settings.interval, settings.burst))
        self._link = IrcLink(settings.server)
        self._turn = asyncio.Lock()
        self._tasks = BackgroundTasks()

    @property
    def own_name(self) -> str:
        """The nick."""
        connection = self._link.connection
        return connection.nick if connection is not None else self._settings.nick

    def sender_of(self, name: str) -> str:
        """Return a nick or account in lower case, as the server sees it."""
        connection = self._link.connection
        return connection.fold(name) if connection is not None else name.lower()

    # Reading --------------------------------------------------------------------------------------

    async def inbound(self, memory: Memory) -> AsyncGenerator[Inbound, None]:
        """Yield what people say in the rooms, see `Platform.inbound`."""
        self._inbox.recall(memory)
        self._tasks.start(self._serve()).add_done_callback(self._ended)
        while not self._link.is_closed:
            try:
                received = await self._inbox.take()
            except TimeoutError:
                if self._link.failure is not None:
                    break
                await self._inbox.remember_seen()
                continue
            if received is None:
                break
            yield received.item
            await self._inbox.taken()
        if self._link.failure is not None:
            raise self._link.failure

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Hand the error that ends the gateway to the callers that wait for a connection."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._link.fail(error)
            self._inbox.end()

    async def _serve(self) -> None:
        """Stay connected until `aclose`, or until there is a reason that no waiting repairs."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        while not self._link.is_closed:
            began = time.monotonic()
            try:
                await self._stay()
            except OSError as fault:
                self._link.contact.lost(washed(str(fault)) or type(fault).__name__)
            if time.monotonic() - began > LONGEST_PAUSE:
                waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
            await asyncio.sleep(next(waits) * random.uniform(0.75, 1.25))

    async def _stay(self) -> None:
        """Connect, and read lines until the connection breaks."""
        connection = await IrcConnection.open(self._access)
        history = IrcHistory(
            connection, self._rooms, self._reader, self._inbox, account=self._access.account
        )
        watch = asyncio.create_task(self._watch(connection))
        try:
            await self._begin(connection, history)
            while True:
                line = await connection.read()
                self._inbox.note_line()
                try:
                    await self._take(connection, history, line)
                except (IndexError, ValueError):  # words or a sender are missing
                    continue
        finally:
            watch.cancel()
            self._end(connection)

    async def _begin(self, connection: IrcConnection, history: IrcHistory) -> None:
        self._link.begin(connection)
        self._inbox.note_line()
        for room in self._rooms:
            room.attempts = 0
            if room.is_channel:
                room.join(connection)
            else:
                await history.catch_up(room)
        self._settle()

    def _end(self, connection: IrcConnection) -> None:
        connection.close()
        self._link.end()
        for room in self._rooms:
            for received in room.broke(self._inbox.received_at):
                self._reader.forget(received)  # it is fetched with the rest
        self._sender.broke()

    async def _watch(self, connection: IrcConnection) -> None:
        """Notice a dead connection, return to rooms, and take the nick back when it is free."""
        longest = self._settings.ping_seconds
        began, asked, regain = time.monotonic(), 0.0, time.monotonic()
        while True:
            await asyncio.sleep(min(longest / 2, 1.0))
            now, silent = time.monotonic(), time.time() - self._inbox.received_at
            if silent > longest and now - asked > longest:
                if asked and silent > longest * 2:
                    connection.close()
                    return
                connection.write("PING", "steersman")
                asked = now
            if now - began > SETTLED_SECONDS:
                self._link.is_ready.set()
            for room in self._rooms:
                if room.is_due:
                    room.join(connection)
            if now - regain > 60.0:
                regain = now
                self._regain(connection)

    def _regain(self, connection: IrcConnection) -> None:
        if connection.fold(connection.nick) != connection.fold(self._settings.nick):
            connection.write("NICK", self._settings.nick)

    def _settle(self) -> None:
        if self._rooms.is_settled:
            self._link.is_ready.set()

    async def _take(self, connection: IrcConnection, history: IrcHistory, line: Line) -> None:
        if line.command == "BATCH":
            await history.take_batch(line)
            return
        if history.keep(line):
            return
        connection.note(line)
        self._sender.take(connection, line)
        nick = line.hostmask.nickname if line.source else ""
        is_own = connection.fold(nick) == connection.fold(connection.nick)
        match line.command:
            case "PRIVMSG" if not is_own:
                await self._take_message(connection, line)
            case "JOIN" if is_own:
                connection.prefix = line.source or ""
                await self._joined(connection, history, line.params[0])
            case "KICK" if connection.fold(line.params[1]) == connection.fold(connection.nick):
                self._left(connection, line.params[0], washed(line.params[-1]))
            case "PART" if is_own:
                self._left(connection, line.params[0], "left")
            case "NICK":
                self._renamed(connection, nick, line.params[-1], is_own=is_own)
            case "QUIT" if connection.fold(nick) == connection.fold(self._settings.nick):
                self._regain(connection)
            case "FAIL" if line.params[:1] == ["CHATHISTORY"]:
                await history.caught_up([], is_failed=True)
            case _:
                self._rooms.not_joined(connection, line)
                self._settle()

    async def _take_message(self, connection: IrcConnection, line: Line) -> None:
        received = self._reader.read(connection, line)
        if received is None:
            return
        held = self._rooms[received.item.room].held if received.item.room in self._rooms else None
        if held is not None:
            held.append(received)
        else:
            await self._inbox.put(received)

    async def _joined(self, connection: IrcConnection, history: IrcHistory, name: str) -> None:
        room = self._rooms.find(connection, name)
        if room is None:  # an operator forced us: nothing there is for us
            connection.write("PART", name)
            return
        room.joined()
        self._settle()
        await history.catch_up(room)

    def _left(self, connection: IrcConnection, name: str, reason: str) -> None:
        room = self._rooms.find(connection, name)
        if room is not None:
            room.left(reason)

    def _renamed(self, connection: IrcConnection, old: str, new: str, *, is_own: bool) -> None:
        if is_own:
            connection.nick = new
        elif connection.fold(old) == connection.fold(self._settings.nick):
            self._regain(connection)
        self._reader.renamed(connection, old, new)

    # Sending --------------------------------------------------------------------------------------

    async def send(self, message: Outgoing) -> str:
        """Send one line, see `Platform.send`; the id is the server's, or made here if it has none."""
        async with self._turn:
            connection = await self._link.live()
            room = self._rooms.find(connection, message.room)
            if room is not None and room.is_channel and not room.is_joined:
                pause = max(1.0, room.retry - time.monotonic())
                raise NotSent(f"not in `{room.name}`: {room.refusal}", seconds=pause)
            await self._sender.pace.wait()
            return await self._sender.deliver(connection, message)

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Refuse: nothing on IRC can be changed."""
        raise NotSent("a message on IRC cannot be changed")

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Do nothing: it would count against the number of lines that a server takes."""

    # The rest -------------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        """Connect and join once, see `Platform.check`."""
        try:
            connection = await IrcConnection.open(self._access)
        except OSError as error:
            raise SteersmanError(
                f"no connection to `{self._settings.server}`: {washed(repr(error))}",
                "Check `server` and `tls`, and whether the server runs.",
            ) from error
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                lines = _found(self._access, connection)
                return lines + [await _tried(connection, name) for name in self._rooms.names]
        except OSError as error:
            raise SteersmanError(
                f"the server closed the connection: {washed(str(error))}"
            ) from error
        finally:
            await connection.aclose()

    async def aclose(self) -> None:
        """Disconnect. Idempotent."""
        if self._link.is_closed:
            return
        self._link.is_closed = True
        await self._inbox.remember_seen()
        connection = self._link.connection
        await self._tasks.aclose()
        if connection is not None:
            await connection.aclose()
        self._link.is_ready.set()
        self._inbox.close()


def _found(access: IrcAccess, connection: IrcConnection) -> list[str]:
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


async def _tried(connection: IrcConnection, name: str) -> str:
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
        elif line.command in NEVER_JOINED | NOT_JOINED and wanted in words[1:2]:
            raise ConfigError(
                f"the room `{name}` cannot be joined: {washed(line.params[-1])}",
                "Correct its name under `rooms`, or let the nick in.",
            )
