"""Joins the rooms of a chat platform to sessions.

Each room has three tasks: one deals with what people do, in the order in which it came; one follows the
session and writes down what the room is to be told; one sends that. What is between them is on disk
(`book.py`), so each may be cut off anywhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Never

from pydantic import BaseModel, ConfigDict, ValidationError

from ...journal.folder import PrivateFolder
from ...journal.lock import Lock, Owner
from ...machines.errors import ConfigError, SteersmanError, UsageError
from ...machines.people import Person
from ...workflows.document import is_table
from ...workflows.paths import make_private
from ..commands.command import Reply
from ..commands.registry import NAMES
from ..library import Home, Receipt, Rejected, SessionHandle
from .book import Book, Letter, Received, Stored, Subject
from .narrator import Narrator, client_id, notes, stream_key
from .parts import parts
from .platform import Chosen, Gap, Inbound, NotSent, Outgoing, Platform, Removed, Said

log = logging.getLogger("steersman.chat")

NOT_HERE = ("exit", "quit", "detach", "new", "resume")
"""Commands that are about a terminal."""
AGAIN = "again"
"""The command of a room that says once more what may not have arrived."""
STEER, REMOVE = ("steer",), ("remove", "drop", "pop")
"""What a reply to a message that waits says, to do something else than change it."""
_TYPING = 4.0  # seconds between two signs that the agent is at work
_BURST = 3  # messages that may follow each other at once
_LONGEST_PAUSE = 60.0  # seconds before a failed message is tried again
_STRANGERS = 1_000  # names that are remembered as refused
_YES = {"yes": "allow", "ok": "allow", "no": "deny"}


class RoomOptions(BaseModel):
    """What a gateway's table says of one room.

    `on_restart` says what happens to what waited when the gateway ended: it waits, or is resumed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str = ""
    folder: str = "."
    busy: Literal["queue", "steer", "interrupt"] = "queue"
    on_restart: Literal["wait", "resume"] = "wait"
    only_addressed: bool = False


def room_options(gateway: str, settings: dict[str, Any]) -> dict[str, RoomOptions]:
    """Take the rooms out of a gateway's table. Raises `ConfigError`."""
    rooms: Any = settings.pop("rooms", {})
    if not is_table(rooms) or not rooms:
        raise ConfigError(
            f"gateway `{gateway}`: it has no rooms",
            f'add them: rooms = {{ "NAME" = {{ folder = "." }} }} in [gateways.{gateway}]',
        )
    found: dict[str, RoomOptions] = {}
    for name, options in rooms.items():
        try:
            found[str(name)] = RoomOptions.model_validate(options)
        except ValidationError as error:
            known = f"there are: {', '.join(RoomOptions.model_fields)}"
            raise _mistake(f"gateway `{gateway}`: room `{name}`", error, known) from error
    return found


def _mistake(where: str, error: ValidationError, hint: str) -> ConfigError:
    """Return the first mistake of a table in words."""
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    return ConfigError(f"{where}: {f'`{key}`: ' if key else ''}{first['msg']}", hint)


class ChatGateway:
    """A gateway to a chat platform, as an entry point of the group `steersman.gateways` gives it.

    `make` makes the platform of the table `[gateways.NAME]`, without `rooms`, and of the names of the
    rooms. It raises `ConfigError` for a wrong key or a missing secret.
    """

    def __init__(
        self, name: str, make: Callable[[dict[str, Any], tuple[str, ...]], Platform]
    ) -> None:
        self.name = name
        self._make = make

    async def __call__(self, home: Home, settings: dict[str, Any]) -> None:
        """Join rooms to sessions until this is cancelled.

        Raises `SteersmanError` for what waiting does not repair.
        """
        options, platform = self._read(settings)
        try:
            await _join(home, self.name, options, platform)
        finally:
            await platform.aclose()

    async def check(self, settings: dict[str, Any]) -> list[str]:
        """Connect once, and return what was found, in lines. Raises `SteersmanError`."""
        _, platform = self._read(settings)
        try:
            return await platform.check()
        finally:
            await platform.aclose()

    def _read(self, settings: dict[str, Any]) -> tuple[dict[str, RoomOptions], Platform]:
        own = dict(settings)
        options = room_options(self.name, own)
        try:
            return options, self._make(own, tuple(options))
        except ValidationError as error:
            raise _mistake(f"gateway `{self.name}`", error, "docs/gateways.md") from error
        except ModuleNotFoundError as error:
            raise UsageError(
                f"gateway `{self.name}` needs the package `{error.name}`",
                f"pip install 'steersman[{self.name}]'",
            ) from error


async def _join(
    home: Home, gateway: str, options: dict[str, RoomOptions], platform: Platform
) -> None:
    people = home.people(gateway)
    for name, chosen in options.items():
        if not Path(chosen.folder).expanduser().is_dir():
            raise ConfigError(
                f"gateway `{gateway}`: room `{name}`: no folder `{chosen.folder}`",
                "make it first, or give another one",
            )
    if not people:
        raise ConfigError(
            f"gateway `{gateway}`: nobody may talk here",
            f'add who may: [people] ann = {{ {gateway} = "NAME" }}',
        )
    book = Book(home.state / "gateways" / f"{gateway}.sqlite")
    with _alone(home.state, gateway):
        await book.open()
        rooms = {
            name: Room(home, gateway, name, chosen, platform, book, people)
            for name, chosen in options.items()
        }
        try:
            async with asyncio.TaskGroup() as tasks:
                for room in rooms.values():
                    tasks.create_task(room.run())
                tasks.create_task(_listen(platform, book, rooms))
        except* SteersmanError as faults:
            raise _first(faults) from None
        finally:
            await book.aclose()


@contextmanager
def _alone(state: Path, gateway: str) -> Generator[None]:
    """Be the one program that runs a gateway. Raises `UsageError` if another one does."""
    with closing(PrivateFolder.open(make_private(state / "gateways"), create=True)) as folder:
        lock = Lock(folder, gateway)
        if not lock.take():
            other = lock.owner()
            who = f"process {other.pid}" if other is not None else "another process"
            raise UsageError(f"{who} runs the gateway `{gateway}` already", "end it first")
        try:
            lock.sign(Owner(pid=os.getpid(), node="", started=time.time()))
            yield
        finally:
            lock.release()


def _first(faults: BaseExceptionGroup[SteersmanError]) -> SteersmanError:
    fault = faults.exceptions[0]
    return _first(fault) if isinstance(fault, BaseExceptionGroup) else fault


async def _listen(platform: Platform, book: Book, rooms: dict[str, Room]) -> None:
    """Keep what people do, and wake the room that deals with it."""
    async for event in platform.inbound(book):
        room = rooms.get(event.room)
        if room is not None:
            await book.receive(event.room, _key(event), event)
            room.came.set()


def _key(event: Inbound) -> str:
    """Return what tells an event of a room from every other, also when it comes again."""
    match event:
        case Said():
            return f"{event.room}\0{'edit' if event.replaces else 'said'}\0{event.id}"
        case Chosen():
            return f"{event.room}\0chosen\0{event.id}"
        case Removed():
            return f"{event.room}\0removed\0{event.sender}\0{event.message}"
        case Gap():
            return f"{event.room}\0gap\0{event.since}"


class Room:
    """One room and its session."""

    def __init__(
        self,
        home: Home,
        gateway: str,
        name: str,
        options: RoomOptions,
        platform: Platform,
        book: Book,
        people: dict[str, Person],
    ) -> None:
        self.name = name
        self.came, self._posted = asyncio.Event(), asyncio.Event()
        self._home, self._gateway = home, gateway
        self._options, self._platform, self._book = options, platform, book
        self._people = people
        self._refused = set[str]()
        self._session: SessionHandle | None = None
        self._is_ready = asyncio.Event()
        self._told = ""

    async def run(self) -> Never:
        """Join the room to its session, until this is cancelled. Raises `SteersmanError`."""
        session, _ = await self._book.room(self.name)
        if session:
            await self._take_up(session)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._deal())
            tasks.create_task(self._tell())
            tasks.create_task(self._send())
        raise AssertionError("these tasks do not end")

    # The session ----------------------------------------------------------------------------------

    async def _take_up(self, session: str) -> None:
        """Resume the room's session; one that is finalized, or gone, is forgotten."""
        try:
            self._session = await self._home.resume(session)
        except UsageError as error:
            log.info("room %s: session %s is not taken up: %s", self.name, session, error.message)
            return
        self._is_ready.set()
        if self._options.on_restart == "resume":
            await self._session.resume_queue()

    async def _open(self) -> SessionHandle:
        """Return the room's session; begin it if there is none."""
        if self._session is None or not self._session.is_open:
            agent, folder = self._options.agent or None, Path(self._options.folder)
            session = await self._home.start(agent, folder=folder)
            await session.enter(f"/busy {self._options.busy}")
            await self._book.begin(self.name, session.id, 0)
            self._session = session
            self._is_ready.set()
        return self._session

    # What people do -------------------------------------------------------------------------------

    async def _deal(self) -> Never:
        """Deal with what people did, one after another."""
        while True:
            self.came.clear()
            received = await self._book.next_received(self.name)
            if received is None:
                await self.came.wait()
                continue
            await self._deal_with(received)
            self._posted.set()

    async def _deal_with(self, received: Received) -> None:
        match received.event:
            case Gap(since=since):
                at = datetime.fromtimestamp(since, UTC).strftime("%H:%M:%S UTC")
                text = f"I was away: what was said here since {at} I did not hear."
                await self._book.done(received, *self._note(received, text))
            case Said() as said:
                await self._said(received, said)
            case Removed() as removed:
                await self._removed(received, removed)
            case Chosen() as chosen:
                await self._chosen(received, chosen)

    async def _said(self, received: Received, said: Said) -> None:
        text, is_addressed = self._addressed(said)
        if not (is_addressed or said.is_private) and self._options.only_addressed:
            await self._book.done(received)
            return
        person = self._person(said.sender)
        about = Subject(message=said.id, thread=said.thread, sender=said.sender)
        if person is None:
            await self._book.done(received, *self._refuse(received, about))
            return
        text = "\n\n".join([text, *map(_file_text, said.files)]).strip()
        session = await self._open()
        line = await self._meant(session, said, text)
        if line == f"/{AGAIN}":
            count = await self._book.again(self.name)
            found = "Nothing is uncertain." if not count else ""
            await self._book.done(received, *self._note(received, found, about))
        elif line is None:
            note = "That is at work already, and was not changed: say what is different."
            await self._book.done(received, *self._note(received, note, about))
        elif line.startswith("/"):
            await self._book.note(self.name, about)
            await self._book.done(received)  # before, because a command is carried out at most once
            await self._command(session, received, line, person, about)
        else:
            await self._book.note(self.name, about)
            key = client_id(self._gateway, self.name, said.id)
            letters: list[Letter] = []
            try:
                if said.thread:
                    await session.side_talk(line, person, key=key)
                else:
                    await session.enter(line, person, key=key)
            except Rejected as refusal:
                letters = self._note(received, _in_words(refusal), about)
            await self._book.done(received, *letters)

    def _person(self, sender: str) -> Person | None:
        """Return who a sender is; which names are the same may be known only when connected."""
        known = self._people.items()
        return next((one for name, one in known if self._platform.sender_of(name) == sender), None)

    def _addressed(self, said: Said) -> tuple[str, bool]:
        """Return what somebody said without the name of this gateway, and whether that was there."""
        name = self._platform.own_name
        lead = re.compile(rf"@?{re.escape(name)}(?:[:,]\s*|\s+)", re.IGNORECASE) if name else None
        found = lead.match(said.text) if lead is not None else None
        return (said.text[found.end() :] if found else said.text), found is not None

    async def _meant(self, session: SessionHandle, said: Said, text: str) -> str | None:
        """Return what a message comes to: a command, or a text; none for an edit that comes too late."""
        target = said.replaces or said.to
        about = await self._book.subject(self.name, target) if target else None
        is_waiting = about is not None and _waits(session, about.item)
        word = text.strip().lower()
        if about is not None and about.question and not said.replaces:
            return f"/answer {about.question} {_YES.get(word, text)}"
        if about is not None and is_waiting and said.replaces:
            return f"/queue edit {about.number} {text}"
        if about is not None and is_waiting:
            if word in STEER:
                return f"/queue steer {about.number}"
            return (
                f"/queue pop {about.number}"
                if word in REMOVE
                else (f"/queue edit {about.number} {text}")
            )
        if said.replaces:
            return None if about is not None else text
        name = re.match(r"[!/]([A-Za-z][A-Za-z-]*)(?=\s|$)", text)
        if name is not None and (name[1].lower() in NAMES or name[1].lower() == AGAIN):
            return f"/{text[1:]}"
        return text if not text.startswith("/") else f" {text}"

    async def _command(
        self, session: SessionHandle, received: Received, line: str, person: Person, about: Subject
    ) -> None:
        """Carry a command out, and say what came of it."""
        name = line[1:].split(None, 1)[0].lower()
        if name in NOT_HERE:
            text = f"/{name} is for a terminal, not for a room."
        else:
            try:
                done: Receipt | Reply = await session.enter(
                    line, person, key=client_id(self._gateway, self.name, about.message)
                )
                text = done.text if isinstance(done, Reply) else ""
            except Rejected as refusal:
                text = _in_words(refusal)
        await self._book.write(*self._note(received, text, about))

    async def _removed(self, received: Received, removed: Removed) -> None:
        """Take a message back that waits."""
        person = self._person(removed.sender)
        about = await self._book.subject(self.name, removed.message)
        await self._book.done(received)
        session = self._session
        if person is None or about is None or session is None or about.sender != removed.sender:
            return
        if _waits(session, about.item):
            await self._command(session, received, f"/queue pop {about.number}", person, about)

    async def _chosen(self, received: Received, chosen: Chosen) -> None:
        """Answer a question by a button or a reaction."""
        person = self._person(chosen.sender)
        about = await self._book.subject(self.name, chosen.message)
        choice = chosen.choice.strip()
        if person is None or about is None or not about.question or self._session is None:
            await self._book.done(received)
            return
        reply_to = Subject(message=chosen.message, sender=chosen.sender)
        await self._book.done(received)
        if choice:
            line = f"/answer {about.question} {choice}"
            await self._command(self._session, received, line, person, reply_to)

    def _refuse(self, received: Received, about: Subject) -> list[Letter]:
        """Tell somebody once that they are not heard."""
        if about.sender in self._refused or len(self._refused) >= _STRANGERS:
            return []
        self._refused.add(about.sender)
        text = "I do not know you, so I do not hear you: whoever runs me can add you to [people]."
        return self._note(received, text, about)

    def _note(self, received: Received, text: str, about: Subject | None = None) -> list[Letter]:
        """Answer something of the inbox."""
        key, limits = f"{self.name}:{received.id}", self._platform.limits
        return notes(key, self.name, text, limits, about)

    # What the room is told ------------------------------------------------------------------------

    async def _tell(self) -> Never:
        """Follow one session after another."""
        while True:
            await self._is_ready.wait()
            session = self._session
            if session is None or session.id == self._told:
                self._is_ready.clear()
                continue
            self._told = session.id
            await self._follow(session)

    async def _follow(self, session: SessionHandle) -> None:
        """Write down what the room is to be told of a session, until that ends."""
        limits, book = self._platform.limits, self._book
        narrator = Narrator(book, self._gateway, self.name, session.id, limits, session.outcome)
        _, seq = await book.room(self.name)
        live = LiveAnswer(self._platform, book, self.name, session.id, self._posted)
        try:
            async for event in session.events(after=seq):
                live.hear(event.data)
                if event.seq is None:
                    continue
                if letters := await narrator.letters(event):
                    # the entry may have more events: they are looked at again, and known by their keys
                    await book.write(*letters, room=self.name, seq=event.seq - 1)
                    self._posted.set()
        finally:
            await live.aclose()

    # What is sent ---------------------------------------------------------------------------------

    async def _send(self) -> Never:
        """Send what is to be said, in order, no faster than the platform takes it."""
        pause, clock, free = 1.0, asyncio.get_running_loop().time, 0.0
        interval = self._platform.limits.interval
        while True:
            self._posted.clear()
            stored = await self._book.next_letter(self.name)
            if stored is None:
                await self._posted.wait()
                continue
            free = max(free, clock() - _BURST * interval) + interval
            await asyncio.sleep(max(0.0, free - clock()))
            wait = await self._send_one(stored)
            if wait is None:
                pause = 1.0
                continue
            await asyncio.sleep(wait or pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _send_one(self, stored: Stored) -> float | None:
        """Send one message; return the seconds to wait before it is tried again, 0 for some time."""
        book, sent = self._book, stored.letter.outgoing
        can_repeat = self._platform.limits.is_idempotent or bool(stored.message)
        if stored.state == "sending" and not can_repeat:
            await self._is_unknown(stored)
            return None
        await book.mark(stored, "sending", stored.message)
        try:
            if stored.message and self._platform.limits.can_edit:
                message = stored.message
                await self._platform.change(self.name, message, sent)
            else:
                message = await self._platform.send(sent)
        except NotSent as refusal:
            if refusal.seconds:
                await book.mark(stored, "waiting", stored.message)
                return refusal.seconds
            log.warning("room %s: a message was refused: %s", self.name, refusal.message)
            await book.mark(stored, "refused")
            return None
        except OSError as error:
            log.info("room %s: a message may not have arrived: %s", self.name, error)
            if not can_repeat:
                await self._is_unknown(stored)
                return None
            await book.mark(stored, "waiting", stored.message)
            return 0.0
        await book.mark(stored, "sent", message)
        return None

    async def _is_unknown(self, stored: Stored) -> None:
        """Say that it is not known whether a message arrived; it is not said twice unasked."""
        await self._book.mark(stored, "unknown")
        key = stored.letter.outgoing.key
        if not key.endswith(":unknown"):
            text = f"My last message may not have arrived: `!{AGAIN}` says it again."
            unknown = Outgoing(key=f"{key}:unknown", room=self.name, text=text)
            await self._book.write(Letter(outgoing=unknown))


class LiveAnswer:
    """Shows that the agent is at work, and its answer as it is written, if messages can be changed."""

    def __init__(
        self, platform: Platform, book: Book, room: str, session: str, posted: asyncio.Event
    ) -> None:
        self._platform, self._book = platform, book
        self._room, self._session, self._posted = room, session, posted
        self._text = ""
        self._shown = ""
        self._showing = set[asyncio.Task[None]]()

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take in an event of the session."""
        kind = event["type"]
        if kind in ("turn_started", "turn_ended"):
            self._stop()
        if kind == "turn_started":
            task = asyncio.create_task(self._show(str(event["turn"])))
            self._showing.add(task)
            task.add_done_callback(self._showing.discard)
        elif kind == "text":
            self._text += event["delta"]
        elif kind == "tool_started":
            self._text = ""

    def _stop(self) -> None:
        for task in self._showing:
            task.cancel()
        self._text = self._shown = ""

    async def aclose(self) -> None:
        """Show nothing any more."""
        self._stop()
        if self._showing:
            await asyncio.wait(self._showing)

    async def _show(self, turn: str) -> None:
        try:
            await self._show_at_work(turn)
        finally:
            await self._platform.typing(self._room, is_typing=False)

    async def _show_at_work(self, turn: str) -> Never:
        """Show what has come, at the rate of the platform."""
        limits = self._platform.limits
        key, last = stream_key(self._session, turn), 0.0
        while True:
            now = time.monotonic()
            if now - last >= _TYPING:
                await self._platform.typing(self._room, is_typing=True)
                last = now
            await asyncio.sleep(max(limits.edit_interval, 0.05))
            begun = parts(self._text, limits)[:1] if limits.can_edit else []
            if not begun or begun[0] == self._shown:
                continue
            self._shown = begun[0]
            sent = Outgoing(key=key, room=self._room, text=self._shown, kind="answer")
            if message := await self._book.message(key):
                with suppress(NotSent, OSError):  # the end of the turn brings the whole
                    await self._platform.change(self._room, message, sent)
            else:
                await self._book.write(Letter(outgoing=sent))
                self._posted.set()


def _waits(session: SessionHandle, item: str) -> bool:
    """Whether a message waits in the queue."""
    return any(one["id"] == item and one["state"] != "running" for one in session.queue()["items"])


def _in_words(refusal: Rejected) -> str:
    """Say why something was not accepted."""
    text = refusal.message[:1].upper() + refusal.message[1:]
    return f"{text}. {refusal.hint}" if refusal.hint else f"{text}."


def _file_text(file: Any) -> str:
    """Write a file that came with a message as a part of its text."""
    if file.text is None:
        return f"[`{file.name}`, {file.size} bytes, is no text or too long, and is left out]"
    return f"`{file.name}` holds:\n```\n{file.text}\n```"
