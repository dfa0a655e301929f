"""What was missed on IRC: fetched from the history of the server, if it has one; else a gap is noted."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from irctokens.line import Line

from ...gateway.chat.platform import Gap
from .connection import IrcConnection
from .reader import IrcInbox, IrcReader, moment, stamp
from .room import IrcReceived, IrcRoom, IrcRooms


class IrcHistory:
    """Fetches what was missed, over one connection: one page at a time, one room after another."""

    def __init__(
        self,
        connection: IrcConnection,
        rooms: IrcRooms,
        reader: IrcReader,
        inbox: IrcInbox,
        account: str,
    ) -> None:
        self._connection = connection
        self._rooms = rooms
        self._reader = reader
        self._inbox = inbox
        self._account = account
        self._is_first = True
        self._asked = deque[str]()
        self._batches = dict[str, tuple[str, list[Line]]]()

    async def catch_up(self, room: IrcRoom) -> None:
        """Fetch what was missed in a room, or note that something was."""
        since, room.since = room.since, None
        if since is None and not self._inbox.marks[room.name]:
            return
        if not {"draft/chathistory", "batch"} <= self._connection.caps:
            if since is not None:
                await self._inbox.put(IrcReceived(Gap(room=room.name, since=since), since))
            return
        room.held, room.since = [], since
        self._asked.append(room.name)
        if len(self._asked) == 1:
            self._ask(room)

    def _ask(self, room: IrcRoom, after: str = "") -> None:
        """Ask for the messages after one, at first for those after the last one known, with itself.

        A server that was restarted does not have that one any more, and so says that more may be lost.
        """
        if not after:
            mark = self._inbox.marks[room.name].partition(" ")[0]
            at = moment(mark) if mark else datetime.fromtimestamp(room.since or 0.0).astimezone()
            after = f"timestamp={stamp(at - timedelta(milliseconds=1))}"
        self._connection.write("CHATHISTORY", "AFTER", room.name, after, str(self._page))

    @property
    def _page(self) -> int:
        most = self._connection.supports.get("CHATHISTORY", "")
        return min(int(most) if most.isdigit() and int(most) else 100, 100)

    def keep(self, line: Line) -> bool:
        """Keep a line if it belongs to a batch that is on its way; return whether it does."""
        batch = (line.tags or {}).get("batch", "")
        if batch not in self._batches:
            return False
        self._batches[batch][1].append(line)
        return True

    async def take_batch(self, line: Line) -> None:
        """Take in that a batch begins or ends."""
        reference = line.params[0]
        if reference.startswith("+") and line.params[1:2] == ["chathistory"]:
            self._batches[reference[1:]] = (line.params[-1], [])
        elif reference.startswith("-") and reference[1:] in self._batches:
            _, lines = self._batches.pop(reference[1:])
            await self.caught_up(lines)

    async def caught_up(self, lines: list[Line], *, is_failed: bool = False) -> None:
        """Take a page of a room's history, and ask for the next one, or for that of the next room."""
        if not self._asked:
            return
        room = self._rooms[self._asked[0]]
        mark = self._inbox.marks[room.name]
        ids = [(line.tags or {}).get("msgid", "") for line in lines]
        known = mark.partition(" ")[2]
        is_whole = not self._is_first or bool(known and known in ids)
        if is_failed or not is_whole:
            since = room.since if not known else moment(mark.split()[0]).timestamp()
            if since is not None:
                await self._inbox.put(IrcReceived(Gap(room=room.name, since=since), since))
        room.since = None
        for line in lines:
            is_known = known and (line.tags or {}).get("msgid", "") == known
            if line.command != "PRIVMSG" or is_known:
                continue
            if self._reader.is_own(self._connection, line, self._account):
                continue
            received = self._reader.read(self._connection, line)
            if received is not None:
                await self._inbox.put(received)
        if len(lines) >= self._page and ids[-1]:
            self._is_first = False
            self._ask(room, f"msgid={ids[-1]}")
            return
        await self._release(room)

    async def _release(self, room: IrcRoom) -> None:
        """Hand on what came in a room meanwhile, and go on with the next room."""
        held, room.held = room.held or [], None
        for received in held:
            await self._inbox.put(received)
        self._asked.popleft()
        self._is_first = True
        if self._asked:
            self._ask(self._rooms[self._asked[0]])
