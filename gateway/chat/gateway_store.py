"""What a gateway remembers: a small database beside the store, written before anything is done.

What people do is kept when it arrives, and done once. What is to be said is kept together with the place
in the session's journal that it comes from, so that after a crash nothing is missing or comes twice.
Sending a message is an intent, then a result; where the program ended in between, its state is `sending`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import apsw
from msgspec import DecodeError, ValidationError, json
from msgspec.structs import astuple

from ...machines.value import Value
from ...workflows.paths import make_private
from .platform import Inbound, Outgoing
from .platform_parts import pauses

log = logging.getLogger("steersman.chat")

T = TypeVar("T")
State = Literal["waiting", "sending", "sent", "unknown", "refused", "held"]
_Statement = tuple[Any, ...]  # SQL, and its values
KEPT = 10_000
"""Messages in each direction that are remembered of a room, to know one that comes again."""
_AHEAD = 20  # damaged rows that are passed over
CLOSED = "closed"
"""Stands in a subject instead of the id of a question that is not open any more."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before what could not be written is tried again
_PASSING = (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.CantOpenError)

_TABLES = """
CREATE TABLE IF NOT EXISTS memory (name TEXT PRIMARY KEY, word TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rooms (
    room TEXT PRIMARY KEY, session TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, room TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
    data BLOB NOT NULL, is_done INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS inbox_open ON inbox (room, id) WHERE NOT is_done;
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, room TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
    data BLOB NOT NULL, replaces TEXT NOT NULL, state TEXT NOT NULL, message TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS outbox_open ON outbox (room, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX IF NOT EXISTS outbox_message ON outbox (room, message);
CREATE TABLE IF NOT EXISTS subjects (
    room TEXT NOT NULL, message TEXT NOT NULL, item TEXT NOT NULL, number INTEGER,
    question TEXT NOT NULL, thread TEXT NOT NULL, sender TEXT NOT NULL,
    PRIMARY KEY (room, message));
CREATE INDEX IF NOT EXISTS subjects_item ON subjects (room, item);
"""


class OutboxMessage(Value):
    """A message that is to be sent: `replaces` is the key of one that it takes the place of.

    `item` and `question` are what it is about: people who answer it mean that. `is_held`: it is sent when
    a person asks for it.
    """

    outgoing: Outgoing
    replaces: str = ""
    item: str = ""
    number: int | None = None
    question: str = ""
    is_held: bool = False


class Unwritten(OSError):
    """The database cannot be written now: the disk is full, or fails."""


class OutboxRow(Value):
    """A message in the outbox; `id_there` is the platform's id of it, or of the one it replaces."""

    id: int
    message: OutboxMessage
    state: State
    id_there: str


class Subject(Value, kw_only=False):
    """What a message in a room is about: an item of the queue or a question, and who sent it."""

    message: str
    item: str = ""
    number: int | None = None
    question: str = ""
    thread: str = ""
    sender: str = ""


class InboxRow(Value):
    """Something that a person did, in the inbox."""

    id: int
    event: Inbound


class GatewayStore:
    """The database of one gateway, used from one asyncio loop; its work is done in one thread.

    While it cannot be written, whatever writes waits; only `receive` says so, because a person waits.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._thread = ThreadPoolExecutor(1, "steersman-chat")
        self._memory: dict[str, str] = {}
        self._database: Any = None

    async def open(self) -> None:
        """Open or create it. Raises `OSError` or `apsw.Error`."""

        def open() -> None:
            make_private(self._file.parent)
            self._database = database = cast("Any", apsw.Connection(str(self._file)))
            database.set_busy_timeout(5_000)
            database.pragma("journal_mode", "wal")
            database.pragma("synchronous", "full")
            database.execute(_TABLES)
            self._memory = dict(database.execute("SELECT name, word FROM memory"))

        await self._do(open)

    async def aclose(self) -> None:
        """Close it. Idempotent."""

        def close() -> None:
            if self._database is not None:
                self._database.close()
                self._database = None

        await self._do(close)
        self._thread.shutdown()

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _write(self, *statements: _Statement) -> None:
        """Carry statements out together; returns when that is on disk, however long that takes."""
        for pause in pauses(FIRST_PAUSE, LONGEST_PAUSE):
            try:
                return await self._try_to_write(*statements)
            except Unwritten as fault:
                log.warning("%s cannot be written, and is tried again: %s", self._file, fault)
                await asyncio.sleep(pause)

    async def _try_to_write(self, *statements: _Statement) -> None:
        """Carry statements out together. Raises `Unwritten` if that fails now and may succeed later."""

        def write() -> None:
            with self._database as database:
                for text, *values in statements:
                    database.execute(text, values)

        try:
            await self._do(write)
        except _PASSING as fault:
            raise Unwritten(str(fault)) from fault

    async def _read(self, text: str, *values: Any) -> list[Any]:
        return await self._do(lambda: list(self._database.execute(text, values)))

    # The platform's memory ------------------------------------------------------------------------

    def get(self, name: str) -> str:
        """Return a word of the platform's memory."""
        return self._memory.get(name, "")

    async def put(self, name: str, word: str) -> None:
        """Keep a word of the platform's memory."""
        await self._write(("INSERT OR REPLACE INTO memory VALUES (?, ?)", name, word))
        self._memory[name] = word

    # Rooms ----------------------------------------------------------------------------------------

    async def room(self, room: str) -> tuple[str, int]:
        """Return the session of a room, and the last entry that it has; empty and 0 if none."""
        rows = await self._read("SELECT session, seq FROM rooms WHERE room = ?", room)
        return rows[0] if rows else ("", 0)

    async def begin(self, room: str, session: str, seq: int) -> None:
        """Give a room its session, of which it needs nothing up to an entry."""
        await self._write(("INSERT OR REPLACE INTO rooms VALUES (?, ?, ?)", room, session, seq))

    # What people do -------------------------------------------------------------------------------

    async def receive(self, room: str, key: str, event: Inbound) -> None:
        """Keep what a person did, unless it came before. Raises `Unwritten`."""
        insert = "INSERT OR IGNORE INTO inbox (room, key, data) VALUES (?, ?, ?)"
        await self._try_to_write((insert, room, key, json.encode(event)), _forget("inbox", room))

    async def next_received(self, room: str) -> InboxRow | None:
        """Return the oldest of what was not dealt with and can be read."""
        rows = await self._read(
            f"SELECT id, data FROM inbox WHERE room = ? AND NOT is_done ORDER BY id LIMIT {_AHEAD}",
            room,
        )
        for id, data in rows:
            with suppress(ValidationError, DecodeError):
                return InboxRow(id=id, event=json.decode(data, type=Inbound))
        return None

    async def done(self, row: InboxRow, *messages: OutboxMessage) -> None:
        """Note that something was dealt with, with what is to be said about it."""
        await self._write(
            ("UPDATE inbox SET is_done = 1 WHERE id = ?", row.id), *map(_insert, messages)
        )

    # What is said ---------------------------------------------------------------------------------

    async def write(self, *messages: OutboxMessage, room: str = "", seq: int = 0) -> None:
        """Keep what is to be said; with `seq`, that the room has everything up to that entry."""
        known = [("UPDATE rooms SET seq = ? WHERE room = ?", seq, room)] if seq else []
        forgotten = [_forget("outbox", message.outgoing.room) for message in messages[:1]]
        await self._write(*map(_insert, messages), *known, *forgotten)

    async def next_outgoing(self, room: str) -> OutboxRow | None:
        """Return the oldest that was not sent, or whose sending was cut off, and can be read."""
        rows = await self._read(
            "SELECT id, data, state, replaces FROM outbox WHERE room = ? "
            f"AND state IN ('waiting', 'sending') ORDER BY id LIMIT {_AHEAD}",
            room,
        )
        for id, data, state, replaces in rows:
            with suppress(ValidationError, DecodeError):
                message = json.decode(data, type=OutboxMessage)
                id_there = await self.id_there(replaces) if replaces else ""
                return OutboxRow(id=id, message=message, state=state, id_there=id_there)
        return None

    async def id_there(self, key: str) -> str:
        """Return the platform's id of a message that was sent; empty if there is none."""
        rows = await self._read("SELECT message FROM outbox WHERE key = ?", key)
        return rows[0][0] if rows else ""

    async def mark(self, row: OutboxRow, state: State, id_there: str = "") -> None:
        """Note what became of a message; what it is about is known under its id from now on."""
        sent = row.message
        about = Subject(id_there, sent.item, sent.number, sent.question, sent.outgoing.thread)
        is_found = bool(id_there and (sent.item or sent.question))
        await self._write(
            ("UPDATE outbox SET state = ?, message = ? WHERE id = ?", state, id_there, row.id),
            *([_note(sent.outgoing.room, about)] if is_found else []),
        )

    async def again(self, room: str) -> int:
        """Let everything be sent of which it is not known whether it arrived; return how much that is."""
        rows = await self._read("SELECT id FROM outbox WHERE room = ? AND state = 'unknown'", room)
        await self._wait_again([id for (id,) in rows])
        return len(rows)

    async def more(self, room: str, most: int) -> tuple[int, int]:
        """Have the next messages of the newest cut text sent; return how many, and how many are left."""
        rows = await self._read(
            "SELECT id, key FROM outbox WHERE room = ? AND state = 'held' ORDER BY id", room
        )
        # All messages of one text have the same key but for its last part.
        held = [id for id, key in rows if key.rpartition(":")[0] == rows[-1][1].rpartition(":")[0]]
        await self._wait_again(held[:most])
        return len(held[:most]), len(held[most:])

    async def _wait_again(self, ids: list[int]) -> None:
        await self._write(*(("UPDATE outbox SET state = 'waiting' WHERE id = ?", id) for id in ids))

    # What messages are about ----------------------------------------------------------------------

    async def note(self, room: str, subject: Subject) -> None:
        """Remember who sent a message; what it became is added when that is known (`became`)."""
        await self._write(_note(room, subject, "INSERT OR IGNORE"))

    async def became(self, room: str, message: str, item: str, number: int | None) -> None:
        """Remember which item a message of a person became."""
        update = "UPDATE subjects SET item = ?, number = ? WHERE room = ? AND message = ?"
        await self._write((update, item, number, room, message))

    async def close(self, room: str, question: str) -> None:
        """Remember that a question is not open any more: its id may be that of another one later."""
        update = "UPDATE subjects SET question = ? WHERE room = ? AND question = ?"
        await self._write((update, CLOSED, room, question))

    async def subject(self, room: str, message: str) -> Subject | None:
        """Return what a message is about, of a person or of this gateway."""
        return await self._subject("room = ? AND message = ?", room, message)

    async def said(self, room: str, item: str) -> Subject | None:
        """Return the message of a person that became an item."""
        return await self._subject("room = ? AND item = ? AND sender != ''", room, item)

    async def _subject(self, where: str, *values: str) -> Subject | None:
        columns = "message, item, number, question, thread, sender"
        rows = await self._read(f"SELECT {columns} FROM subjects WHERE {where}", *values)
        return Subject(*rows[0]) if rows else None


def _insert(message: OutboxMessage) -> _Statement:
    sent, state = message.outgoing, "held" if message.is_held else "waiting"
    return (
        "INSERT OR IGNORE INTO outbox (room, key, data, replaces, state, message) "
        "VALUES (?, ?, ?, ?, ?, '')",
        *(sent.room, sent.key, json.encode(message), message.replaces, state),
    )


def _note(room: str, subject: Subject, verb: str = "INSERT OR REPLACE") -> _Statement:
    return (f"{verb} INTO subjects VALUES (?, ?, ?, ?, ?, ?, ?)", room, *astuple(subject))


def _forget(table: Literal["inbox", "outbox"], room: str) -> _Statement:
    """Forget what is older than the newest `KEPT` of a room and is over."""
    is_over = "is_done" if table == "inbox" else "state NOT IN ('waiting', 'sending')"
    return (
        f"DELETE FROM {table} WHERE room = ? AND {is_over} AND id <= "
        f"(SELECT id FROM {table} WHERE room = ? ORDER BY id DESC LIMIT 1 OFFSET {KEPT})",
        room,
        room,
    )
